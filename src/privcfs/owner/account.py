"""The account that a vault file names: its ledger, its limits, and the head file that guards it.

Zone: owner
Claim: edges are opened with one ledger only; a ledger that lacks the row in the head file is refused.
Why: before a ledger is made, ties and the list of graphs are searched for another one; the head file is handed to the
    ledger, which checks it before every charge. Neither reads an edge except for the owner's keyed fingerprint.
Check: tests/owner/test_ties.py::test_a_second_vault_file_cannot_open_a_second_budget
"""

import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import final

from privcfs.errors import LedgerMissing, SettingsError
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger import POSTGRES, SQLITE, open_ledger
from privcfs.gate.ledger.heads import HeadFile
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.ledger.records import describe
from privcfs.owner.ties import enlist, refuse_second_budget, tie
from privcfs.private.graph import PrivateGraph
from privcfs.public.epsilon import show
from privcfs.public.head import Head


@final
@dataclass(frozen=True, slots=True)
class Account:
    """Where the ledger of one graph is, what it begins with, and where its newest row is kept."""

    url: str
    graph_id: str
    edges: Path
    first_limit: Limit  # what a new ledger begins with
    head_file: HeadFile | None
    vault_file: Path

    def open(self, graph: PrivateGraph | None = None) -> Ledger:
        """The ledger, made on first use with the limits of the vault file; afterwards its own limits hold.

        With the graph that will be read, edges that spend from another ledger are refused before anything is made.
        """
        known, there = self._known(), self.exists()
        if known is None and not there:
            refuse_second_budget(self.edges, graph)
        ledger = self._open(None if there or known is not None else self.first_limit, known)
        if ledger.limit.contract != self.first_limit.contract:
            raise SettingsError(
                f"vault file: the contract differs from the ledger's, which counts {ledger.limit.contract.unit}; a "
                "ledger keeps its contract."
            )
        if graph is not None:
            enlist(self.edges, graph, ledger, self.url if self.url.startswith(SQLITE) else "a ledger in PostgreSQL")
            tie(self.edges, ledger)
        return ledger

    def open_as_it_is(self, known: Head | None = None, trusting: HeadFile | None = None) -> Ledger:
        """The existing ledger, whatever limit the file says: for changing it, or for exporting its head.

        A lost head file is an error unless the owner writes that very file anew (`trusting`).
        """
        own = self.head_file
        if own is None or trusting is None or own.path.resolve() != trusting.path.resolve():
            self._known()
        return self._open(None, known)

    def other_limit(self, ledger: Ledger) -> str:
        """A sentence where the vault file names other limits than the ledger's, which hold; otherwise nothing."""
        if self.first_limit == ledger.limit:
            return ""
        return (
            f"The limits in {self.vault_file.name} are for a new ledger; those of this one hold: "
            f"{describe(ledger.limit)}. Change them with: privcfs budget --set-limit, "
            "--set-analyst-limit or --set-node-limit."
        )

    def write_limit(self, limit: Limit) -> None:
        """Brings the limits in the vault file up to date, where each stands in a line of its own."""
        text = self.vault_file.read_text(encoding="utf-8")
        for key, value in (
            ("limit", limit.total),
            ("limit_per_analyst", limit.per_analyst),
            ("limit_per_node", limit.per_node),
        ):
            line = re.compile(rf'^({key}\s*=\s*)"[^"]*"', re.MULTILINE)
            if value is not None and len(line.findall(text)) == 1:
                text = line.sub(rf'\g<1>"{show(value)}"', text)
        with suppress(OSError):  # the ledger's limits hold whatever the file says
            self.vault_file.write_text(text, encoding="utf-8")

    def exists(self) -> bool:
        """Whether the ledger has been made."""
        try:
            there = exists(Path(self.url.removeprefix(SQLITE)))
            return there or (self.url.startswith(POSTGRES) and bool(open_ledger(self.url)))
        except LedgerMissing:
            return False

    def _known(self) -> Head | None:
        """The head that the head file keeps; none before first use."""
        kept = None if self.head_file is None else self.head_file.read()
        if kept is None and self.head_file is not None and self.exists():
            path = self.head_file.path
            raise SettingsError(
                f"head file {path} is missing, but the ledger exists; restore it, or trust the ledger as it is: "
                f"privcfs budget --export-head {path}."
            )
        return kept

    def _open(self, limit: Limit | None, known: Head | None) -> Ledger:
        return open_ledger(self.url, limit, graph_id=self.graph_id, known=known, head_file=self.head_file)


def exists(path: Path) -> bool:
    """Whether a file is there; a path that cannot even be looked up is the owner's mistake."""
    try:
        return path.exists()
    except (OSError, ValueError) as error:
        raise SettingsError(f"path {str(path)[:80]!r} cannot be looked up: {error}.") from None
