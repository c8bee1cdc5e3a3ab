"""A feature with named options, which are patterns of columns that are on: one-hot, cumulative, or a single flag."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.schema.feature import Feature, Floats, Freedom, Level

NEAR = 1e-3  # how far a number of the table may be from on or off
FLAG = ("no", "yes")


@final
@dataclass(frozen=True, slots=True)
class Category(Feature):
    """Options in a public order; the level of an option is its position.

    `patterns` says which columns each option switches on. A column that is on is encoded as (1 - offset) / scale, one
    that is off as -offset / scale. With `transitions`, only the options named there can be reached from each option.
    """

    name: str
    columns: tuple[int, ...]
    options: tuple[str, ...]
    patterns: tuple[tuple[bool, ...], ...]
    scales: tuple[Fraction, ...]
    offsets: tuple[Fraction, ...]
    transitions: tuple[tuple[int, ...], ...] | None = None
    freedom: Freedom = Freedom()
    unit: str = ""

    @property
    def kind(self) -> str:
        return "flag" if self.options == FLAG else "category"

    @property
    def levels(self) -> Sequence[Level]:
        return [Fraction(position) for position in range(len(self.options))]

    def encoded(self, level: Level) -> tuple[float, ...]:
        parts = zip(self.patterns[int(level)], self.offsets, self.scales, strict=True)
        return tuple(float(np.float32((int(is_on) - offset) / scale)) for is_on, offset, scale in parts)

    def present(self, values: Floats) -> Level | None:
        (found,) = np.nonzero(self._matches(values[None])[0])
        return Fraction(int(found[0])) if len(found) else None

    def fits(self, values: Floats) -> NDArray[np.bool_]:
        fits: NDArray[np.bool_] = np.any(self._matches(values), axis=1)
        return fits

    def _matches(self, values: Floats) -> NDArray[np.bool_]:
        """(rows, options): whether each row shows the pattern of each option."""
        decoded = values * np.array(self.scales, np.float64) + np.array(self.offsets, np.float64)
        patterns = np.array(self.patterns, np.float64)
        matches: NDArray[np.bool_] = np.all(np.abs(decoded[:, None] - patterns) <= NEAR, axis=2)
        return matches

    def show(self, level: Level) -> str:
        return self.options[int(level)]

    def parse(self, text: str) -> Level | None:
        return Fraction(self.options.index(text)) if text in self.options else None

    def steps(self, present: Level, level: Level) -> Fraction:
        return abs(level - present)

    def permits(self, present: Level | None, level: Level) -> bool:
        if self.transitions is None:
            return Feature.permits(self, present, level)
        is_allowed = present is not None and int(level) in self.transitions[int(present)]
        return is_allowed and Feature.permits(self, present, level)

    def to_dict(self) -> dict[str, Any]:
        return {
            **Feature.to_dict(self),
            "options": list(self.options),
            "patterns": [[int(is_on) for is_on in pattern] for pattern in self.patterns],
            "scales": [str(scale) for scale in self.scales],
            "offsets": [str(offset) for offset in self.offsets],
            "transitions": None if self.transitions is None else [list(one) for one in self.transitions],
        }
