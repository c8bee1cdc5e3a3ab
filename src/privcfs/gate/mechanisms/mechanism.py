"""How one candidate is chosen from sealed scores.

Zone: gate
Claim: for any two score vectors on one public grid whose entries differ by at most its span, the probabilities of each
    candidate differ by a factor of at most e**epsilon.
Why: each mechanism proves it in its own header.
Check: tests/contracts/test_mechanisms.py::test_hostile_scores_never_pass_the_bound
"""

from abc import ABC, abstractmethod
from dataclasses import replace
from fractions import Fraction
from math import exp, log
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SettingsError
from privcfs.gate.randomness import Randomness
from privcfs.private.utilities.utility import Scores

LONGEST = 1 << 62  # whole numbers of a line stay below this, so that sums of 64 bits are exact


def check_base(base: tuple[int, ...], unit: int = 1) -> None:
    """Refuses a base measure that could not be drawn from exactly."""
    if not {*map(type, base)} <= {int} or min(base, default=0) < 0:
        raise SettingsError("a base measure has whole weights of 0 or more.")
    if base and not 0 < sum(base) * unit < LONGEST:
        raise SettingsError("a base measure must have some weight, and less than 2**62 in all.")


def lengths_of(base: tuple[int, ...], count: int) -> NDArray[np.int64]:
    """A public base measure as whole numbers, one for each candidate; all 1 where there is none."""
    if not base:
        return np.ones(count, np.int64)
    if len(base) != count:
        raise ValueError("a base measure has one weight for each candidate")
    return np.array(base, np.int64)


class Mechanism(ABC):
    """Never sees a graph. `draw` uses whole numbers only; `probabilities` is for reports."""

    name: ClassVar[str]

    @abstractmethod
    def draw(self, scores: Scores, epsilon: Fraction, randomness: Randomness) -> int:
        """The position of the drawn candidate."""

    @abstractmethod
    def probabilities(self, scores: Scores, epsilon: Fraction) -> NDArray[np.float64]:
        """The law of `draw`, rounded to floats."""

    @abstractmethod
    def exact_probabilities(self, scores: Scores, epsilon: Fraction) -> list[Fraction]:
        """The law of `draw` without rounding, for supports of at most a few hundred candidates."""

    @abstractmethod
    def advantage(self, epsilon: Fraction) -> float:
        """The most by which anyone's true-positive rate can exceed their false-positive rate after one release."""

    def auc(self, epsilon: Fraction) -> float:
        """The highest area under the curve of any attack on one release: here, with two values of the odds at worst."""
        return (1 + self.advantage(epsilon)) / 2

    def renyi(self, order: float, epsilon: Fraction) -> float:
        """Upper bound on the Rényi divergence of order `order` between two graphs: here, that of any pure release."""
        e = float(epsilon)
        return max(log((exp(order * e) + exp((1 - order) * e)) / (1 + exp(e))) / (order - 1), 0.0)

    def concentration(self, epsilon: Fraction) -> Fraction:
        """A proven rho in closed form: here, that of any pure release (Bun and Steinke 2016)."""
        return epsilon**2 / 2


class Weighed(Mechanism):
    """Draws under a public base measure."""

    __slots__ = ()

    base: tuple[int, ...]  # a weight for each candidate; all alike where there is none

    def under(self, base: tuple[int, ...]) -> Self:
        """The same mechanism under another base measure."""
        return replace(self, base=base)  # type: ignore[type-var]
