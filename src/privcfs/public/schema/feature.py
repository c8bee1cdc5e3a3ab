"""What all kinds of features have in common: a name, columns, levels, and what of them a person can change."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.schema.amounts import show_amount

Floats = NDArray[np.float64]
Level = Fraction


@final
@dataclass(frozen=True, slots=True)
class Freedom:
    """How a person can change a feature.

    Attributes:
        changes: Whether it can change at all. Default: yes.
        direction: 1 for upwards alone, -1 for downwards alone, 0, the default, for both.
        largest: By how much at most; None, the default, for any amount.
        cost: What any change costs. Default: 1.
        cost_per_step: What each step of a change costs in addition. Default: 0.
    """

    changes: bool = True
    direction: int = 0
    largest: Fraction | None = None
    cost: int = 1
    cost_per_step: int = 0

    @property
    def depends_on_present(self) -> bool:
        """Whether what can be reached depends on the present level."""
        return self.direction != 0 or self.largest is not None

    def permits(self, present: Level, level: Level) -> bool:
        """Whether a person at one level can reach another one."""
        moved = level - present
        within = self.largest is None or abs(moved) <= self.largest
        return self.changes and moved != 0 and within and moved * self.direction >= 0

    def to_dict(self) -> dict[str, Any]:
        """As digests and JSON have it."""
        return {
            "changes": self.changes,
            "direction": {1: "up", -1: "down"}.get(self.direction, "any"),
            "largest_change": None if self.largest is None else show_amount(self.largest),
            "cost": self.cost,
            "cost_per_step": self.cost_per_step,
        }


class Feature(ABC):
    """One feature of a schema. Subclasses are final values."""

    name: str
    columns: tuple[int, ...]
    freedom: Freedom
    unit: str

    @property
    @abstractmethod
    def kind(self) -> str:
        """The word for it in a schema file."""

    @property
    @abstractmethod
    def levels(self) -> Sequence[Level]:
        """All public levels, ascending."""

    @abstractmethod
    def encoded(self, level: Level) -> tuple[float, ...]:
        """The numbers of the feature table for a level, one for each column, in 32-bit precision."""

    @abstractmethod
    def present(self, values: Floats) -> Level | None:
        """The level that a row's numbers stand for, or None if they stand for none."""

    @abstractmethod
    def fits(self, values: Floats) -> NDArray[np.bool_]:
        """Which rows of (rows, columns) have a level within the range."""

    @abstractmethod
    def show(self, level: Level) -> str:
        """A level in words, without its unit."""

    @abstractmethod
    def parse(self, text: str) -> Level | None:
        """The public level that some words name; None where they name none."""

    @abstractmethod
    def steps(self, present: Level, level: Level) -> Fraction:
        """How many steps lie between two levels."""

    @property
    def step_in_words(self) -> str:
        """How far two levels of a number are apart; empty, the default, for other kinds."""
        return ""

    def permits(self, present: Level | None, level: Level) -> bool:
        """Whether a person at one level can reach another one; where her level is secret, whether anyone can."""
        if present is None:
            return self.freedom.changes and not self.freedom.depends_on_present
        return self.freedom.permits(present, level)

    def reachable(self, present: Level | None) -> tuple[Level, ...]:
        """The public levels that a person can change to, ascending; a secret present level may be one of them."""
        return tuple(level for level in self.levels if self.permits(present, level))

    def price(self, present: Level | None, level: Level) -> int:
        """What a change costs; where the present level is secret, as if it were as far away as possible."""
        origin = self.levels if present is None else (present,)
        far = max(self.steps(one, level) for one in (origin[0], origin[-1]))
        return self.freedom.cost + self.freedom.cost_per_step * (-(-far.numerator // far.denominator))

    def to_dict(self) -> dict[str, Any]:
        """As digests and JSON have it."""
        return {
            "name": self.name,
            "kind": self.kind,
            "columns": list(self.columns),
            "unit": self.unit,
            **self.freedom.to_dict(),
        }
