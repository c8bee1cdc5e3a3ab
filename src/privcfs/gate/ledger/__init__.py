"""Ledgers: where spending is written down. One file per database, one line in the table.

Zone: gate
Claim: every ledger in the table satisfies the contract of ledger.py.
Why: the contract suite runs over this table.
Check: tests/contracts/test_ledgers.py::test_processes_that_race_and_die_never_pass_the_limit
"""

from privcfs.errors import SettingsError
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger.ledger import Head, Ledger
from privcfs.gate.ledger.sqlite import SqliteLedger

SQLITE = "sqlite:///"


def open_ledger(
    url: str, limit: Limit | None = None, *, graph_id: str | None = None, known: Head | None = None
) -> Ledger:
    """The ledger at a URL such as sqlite:///budget.db (relative) or sqlite:////var/lib/budget.db."""
    if not url.startswith(SQLITE) or url == SQLITE:
        raise SettingsError(f"ledger is {url!r}; write sqlite:///budget.db.")
    return SqliteLedger(url.removeprefix(SQLITE), limit, graph_id=graph_id, known=known)
