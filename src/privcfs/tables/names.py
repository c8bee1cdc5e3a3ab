"""The nodes: how many there are, and their public names where they have names."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import final

from privcfs.tables.parsing import Fault, read_text, shown

WHOLE_NUMBER = re.compile(r"-?[0-9]{1,18}")


@final
@dataclass(frozen=True, slots=True)
class Nodes:
    """How many nodes there are and, where they have names, the public table from name to number."""

    count: int
    numbers: Mapping[str, int] | None = None

    def number(self, text: str) -> int:
        """The node that `text` names; KeyError where there is none."""
        if self.numbers is not None:
            return self.numbers[text]
        if not WHOLE_NUMBER.fullmatch(text):
            raise KeyError(text)
        return int(text)

    def show(self, number: int) -> str:
        """A node as errors name it: its quoted name where nodes have names and it is one of them, or its number."""
        known = self.numbers is not None and 0 <= number < self.count
        return shown(next(islice(self.numbers or (), number, None))) if known else str(number)


def read_node_ids(source: str | Path | Sequence[str], fault: Fault) -> tuple[str, ...]:
    """Names of the nodes in order: a sequence, or a file with one name per line."""
    if isinstance(source, str | Path):
        source = read_text(Path(source), "node_ids", fault).splitlines()
    try:
        names = tuple(str(name).strip() for name in source)
    except TypeError:
        raise fault("node_ids must be a list of names or a file with one name per line.") from None
    seen: set[str] = set()
    for position, name in enumerate(names):
        if not name or not name.isprintable():
            raise fault(
                f"node_ids has an empty or unprintable name, {shown(name)}, at position {position} (counted from 0); "
                "give every node a plain name."
            )
        if name in seen:
            raise fault(f"node_ids names {shown(name)} twice; every node needs a name of its own.")
        seen.add(name)
    return names
