"""A feature that nobody changes: it is fixed, such as a birth date, or follows from others."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.schema.feature import Feature, Floats, Freedom, Level


@final
@dataclass(frozen=True, slots=True)
class Fixed(Feature):
    """Has a name and columns, and no level that anybody could choose. `word` is fixed or derived."""

    name: str
    columns: tuple[int, ...]
    word: str = "fixed"
    unit: str = ""
    freedom: Freedom = Freedom(changes=False)

    @property
    def kind(self) -> str:
        return self.word

    @property
    def levels(self) -> Sequence[Level]:
        return ()

    def encoded(self, level: Level) -> tuple[float, ...]:
        raise ValueError(f"a fixed feature has no level {level}")

    def present(self, values: Floats) -> Level | None:  # noqa: ARG002
        return None

    def fits(self, values: Floats) -> NDArray[np.bool_]:
        return np.ones(len(values), np.bool_)

    def show(self, level: Level) -> str:
        return str(level)

    def parse(self, text: str) -> Level | None:  # noqa: ARG002
        return None

    def steps(self, present: Level, level: Level) -> Fraction:  # noqa: ARG002
        return Fraction(0)
