"""A feature with a number: a unit, a range, steps, and the scaling that the model was trained with."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.schema.amounts import parse_amount, show_amount
from privcfs.public.schema.feature import Feature, Floats, Freedom, Level

# A number of the table counts as a step if it is nearer to it than this share of a step: the table is in 32 bits.
NEAR = Fraction(1, 1000)
# A present value between two steps has as few digits after the point as lead to its number in the table, to within
# this share of it or of 1; at most so many.
EXACT, MOST_DIGITS = 5e-7, 6


@final
@dataclass(frozen=True, slots=True)
class Number(Feature):
    """A number from `low` to `high` in steps. The table holds (number - offset) / scale."""

    name: str
    columns: tuple[int, ...]
    low: Fraction
    high: Fraction
    step: Fraction
    scale: Fraction = Fraction(1)
    offset: Fraction = Fraction(0)
    unit: str = ""
    freedom: Freedom = Freedom()

    @property
    def kind(self) -> str:
        return "number"

    @property
    def levels(self) -> Sequence[Level]:
        return [self.low + number * self.step for number in range((self.high - self.low) // self.step + 1)]

    def encoded(self, level: Level) -> tuple[float, ...]:
        return (float(np.float32((level - self.offset) / self.scale)),)

    def present(self, values: Floats) -> Level | None:
        exact = Fraction(float(values[0])) * self.scale + self.offset
        nearest = self.low + round((exact - self.low) / self.step) * self.step
        if abs(exact - nearest) <= NEAR * self.step:
            return nearest
        close = EXACT * max(abs(float(values[0])), 1)
        for digits in range(MOST_DIGITS):
            rounded = Fraction(round(exact * 10**digits), 10**digits)
            if abs(self.encoded(rounded)[0] - float(values[0])) <= close:
                return rounded
        return Fraction(round(exact * 10**MOST_DIGITS), 10**MOST_DIGITS)

    def fits(self, values: Floats) -> NDArray[np.bool_]:
        numbers = values[:, 0] * float(self.scale) + float(self.offset)
        slack = float(NEAR * self.step)
        within: NDArray[np.bool_] = (numbers >= float(self.low) - slack) & (numbers <= float(self.high) + slack)
        return within

    def show(self, level: Level) -> str:
        return show_amount(level)

    def parse(self, text: str) -> Level | None:
        level = parse_amount(text)
        is_public = level is not None and self.low <= level <= self.high and not (level - self.low) % self.step
        return level if is_public else None

    @property
    def step_in_words(self) -> str:
        return show_amount(self.step)

    def steps(self, present: Level, level: Level) -> Fraction:
        return abs(level - present) / self.step

    def to_dict(self) -> dict[str, Any]:
        numbers = {"low": self.low, "high": self.high, "step": self.step, "scale": self.scale, "offset": self.offset}
        return {**Feature.to_dict(self), **{key: str(value) for key, value in numbers.items()}}
