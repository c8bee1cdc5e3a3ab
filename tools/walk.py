"""Follows one default release and lists the files of the package that it enters, in the order of the release.

`python -m tools.walk` prints the lists; tests/test_walk.py keeps their lengths from growing. A file counts where one of
its functions runs, whether in the first answer about a node, which also prepares the draw from public data, or in a
further answer about the same node, which finds the draw prepared. A reader's walk follows the first answer of a new
vault, but goes only as far as the interfaces of the extension points: it enters the file of a ledger, a candidate rule,
a guide, a mechanism, a utility, a model or an evaluator, which counts, and takes what happens behind that call at its
word, as somebody does who reads one release.
"""

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import privcfs
from privcfs import Vault
from privcfs.embedded import load_dataset
from privcfs.gate.guidance import Guide
from privcfs.gate.ledger.ledger import Claim, Ledger
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.private.utilities.utility import Utility
from privcfs.public.candidates.candidates import CandidateRule
from privcfs.public.models.model import Model

SOURCE = Path(privcfs.__file__).parent
INTERFACES = (Ledger, Claim, CandidateRule, Guide, Mechanism, Utility, Model)
EVALUATE = "private/evaluators/__init__.py"  # the table of evaluators is an interface, too
TARGET, PRICE = 100, "1"
TITLES = ("first release about a node", "a further one", "a reader's walk, to the interfaces")


@dataclass
class Walk:
    """Files in the order in which they were first entered, each with the functions that ran there."""

    to_interfaces: bool = False
    files: dict[str, dict[str, None]] = field(default_factory=dict)
    _behind: FrameType | None = None  # the call of an interface that is under way

    def follow(self, work: Callable[[], object]) -> "Walk":
        """Runs some work and notes every function of the package that it calls, in any thread that it starts."""
        sys.setprofile(self._note)
        threading.setprofile(self._note)
        try:
            work()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
        return self

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        if event == "return" and frame is self._behind:
            self._behind = None
        path = Path(frame.f_code.co_filename)
        if event != "call" or self._behind is not None or not path.is_relative_to(SOURCE):
            return
        name = str(path.relative_to(SOURCE))
        self.files.setdefault(name, {}).setdefault(frame.f_code.co_name)
        if self.to_interfaces and (name == EVALUATE or _is_interface(frame)):
            self._behind = frame


def _is_interface(frame: FrameType) -> bool:
    """Whether a call is one of a public method of an extension point."""
    one, name = frame.f_locals.get("self"), frame.f_code.co_name
    return isinstance(one, INTERFACES) and not name.startswith("_")


def walks() -> tuple[Walk, Walk, Walk]:
    """The first release about a node of embedded data with the default method, a second one, and a reader's walk."""
    with TemporaryDirectory() as folder:
        vault, anew = (new_vault(f"sqlite:///{folder}/{name}.db") for name in ("budget", "another"))
        first = Walk().follow(lambda: vault.release(TARGET, PRICE))
        again = Walk().follow(lambda: vault.release(TARGET, PRICE))
        read = Walk(to_interfaces=True).follow(lambda: anew.release(TARGET, PRICE))
    return first, again, read


def new_vault(ledger: str) -> Vault:
    """A vault on embedded data whose context nothing was computed for yet."""
    data = load_dataset("cora")
    return Vault(data.private_graph(), data.context(), ledger=ledger, limit="10", simulation=True)


def main() -> None:
    for title, walk in zip(TITLES, walks(), strict=True):
        functions = sum(len(names) for names in walk.files.values())
        print(f"{title}: {len(walk.files)} files, {functions} functions")
        for name, names in walk.files.items():
            print(f"  {name}: {', '.join(one for one in names if not one.startswith('<'))}")


if __name__ == "__main__":
    main()
