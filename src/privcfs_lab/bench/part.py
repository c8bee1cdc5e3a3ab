"""What a benchmark is made of: how much is measured, and what each part of it adds to the page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, final

from privcfs_lab.figures.page import Picture

SMALLEST = 10**4  # nodes of the graph that larger ones are compared with
Row = tuple[str, str, str]  # what, its value, what was asked for


@final
@dataclass(frozen=True, slots=True)
class Extent:
    """How much is measured: repetitions, and the nodes of the largest graph that is made."""

    repeats: int = 60
    largest: int = 10**6

    def sizes(self) -> list[int]:
        """Ten times as many, from the smallest to the largest."""
        return [SMALLEST * 10**power for power in range(12) if SMALLEST * 10**power <= self.largest]


@final
class Part(NamedTuple):
    """Rows of the table, and pictures."""

    rows: Sequence[Row]
    pictures: Sequence[Picture] = ()
