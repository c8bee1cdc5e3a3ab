"""Follows one default release and lists the files of the package that it enters, in the order of the release.

`python -m tools.walk` prints the list; tests/test_walk.py keeps its length from growing. A file counts where one of its
functions runs, whether in the first answer about a node, which also prepares the draw from public data, or in a further
answer about the same node, which finds the draw prepared.
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

SOURCE = Path(privcfs.__file__).parent
TARGET, PRICE = 100, "1"


@dataclass
class Walk:
    """Files in the order in which they were first entered, each with the functions that ran there."""

    files: dict[str, dict[str, None]] = field(default_factory=dict)

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
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(SOURCE):
            functions = self.files.setdefault(str(path.relative_to(SOURCE)), {})
            functions.setdefault(frame.f_code.co_name)


def walks() -> tuple[Walk, Walk]:
    """The first release about a node of embedded data with the default method, and a second one about the same node."""
    data = load_dataset("cora")
    with TemporaryDirectory() as folder:
        vault = Vault(
            data.private_graph(),
            data.context(),
            ledger=f"sqlite:///{folder}/budget.db",
            limit="10",
            simulation=True,
        )
        first = Walk().follow(lambda: vault.release(TARGET, PRICE))
        again = Walk().follow(lambda: vault.release(TARGET, PRICE))
    return first, again


def main() -> None:
    for title, walk in zip(("first release about a node", "a further one"), walks(), strict=True):
        functions = sum(len(names) for names in walk.files.values())
        print(f"{title}: {len(walk.files)} files, {functions} functions")
        for name, names in walk.files.items():
            print(f"  {name}: {', '.join(one for one in names if not one.startswith('<'))}")


if __name__ == "__main__":
    main()
