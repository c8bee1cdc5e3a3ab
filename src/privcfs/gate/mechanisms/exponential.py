"""The exponential mechanism (McSherry and Talwar 2007), drawn exactly.

Zone: gate
Claim: pure epsilon-DP for any two private graphs; probabilities are ratios of whole numbers.
Why: a candidate at level k weighs q**k p**(top - k) with p / q from `decay`. If no score moves by more than the span,
    its weight moves by at most (q/p)**span and so does the total: together by at most (q/p)**(2 span) <= e**epsilon.
    A public base multiplies both sides alike. One fixed-length random number picks level and candidate; every level is
    visited whatever it picks.
Check: tests/contracts/test_mechanisms.py::test_hostile_scores_never_pass_the_bound
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import expm1, log1p, tanh
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.mechanisms.decay import SCALE_BITS, bits_for, decay, spread
from privcfs.gate.mechanisms.mechanism import Weighed, check_base, lengths_of
from privcfs.gate.randomness import Randomness
from privcfs.private.utilities.utility import Scores
from privcfs.public.grid import Grid


@final
@dataclass(frozen=True, slots=True)
class Exponential(Weighed):
    """Weighs a candidate by its public base, 1 where there is none, times e**(epsilon score / 2 range)."""

    name: ClassVar[str] = "exponential"

    base: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_base(self.base)

    def draw(self, scores: Scores, epsilon: Fraction, randomness: Randomness) -> int:
        values, grid = scores.unseal(), scores.grid
        lengths, weights = lengths_of(self.base, len(values)), level_weights(grid, epsilon)
        masses = [length * weight for length, weight in zip(_by_level(scores, lengths), weights, strict=True)]
        bits = bits_for(int(lengths.sum()) * weights[-1])
        left = spread(bits, randomness.integer(bits), sum(masses))
        level = inside = 0
        for position, mass in enumerate(masses):
            if 0 <= left < mass:
                level, inside = grid.levels[position], left // weights[position]
            left -= mass
        return int(np.searchsorted(np.cumsum(np.where(values == level, lengths, 0)), inside, side="right"))

    def probabilities(self, scores: Scores, epsilon: Fraction) -> NDArray[np.float64]:
        lengths, weights, total = self._weights(scores, epsilon)
        shares = np.array([weight / total for weight in weights])
        return shares[np.searchsorted(scores.grid.levels, scores.unseal())] * lengths

    def exact_probabilities(self, scores: Scores, epsilon: Fraction) -> list[Fraction]:
        lengths, weights, total = self._weights(scores, epsilon)
        shares = [Fraction(weight, total) for weight in weights]
        levels = np.searchsorted(scores.grid.levels, scores.unseal())
        return [shares[level] * int(length) for level, length in zip(levels, lengths, strict=True)]

    def advantage(self, epsilon: Fraction) -> float:
        """Log-ratios of one release lie in an interval of length epsilon, which allows tanh(epsilon / 4) at most."""
        return tanh(epsilon / 4)

    def renyi(self, order: float, epsilon: Fraction) -> float:
        """That of a likelihood ratio with two values whose quotient is e**epsilon, at its worst."""
        one, many = expm1(epsilon), expm1(order * float(epsilon))
        worst = (many - order * one) / ((order - 1) * many * one)
        return max((log1p(worst * many) - order * log1p(worst * one)) / (order - 1), 0.0)

    def concentration(self, epsilon: Fraction) -> Fraction:
        """Its log-ratios lie in an interval of length epsilon (Cesar and Rogers 2021)."""
        return epsilon**2 / 8

    def _weights(self, scores: Scores, epsilon: Fraction) -> tuple[NDArray[np.int64], tuple[int, ...], int]:
        """The base of each candidate, the weight of a base of 1 at each level, and the sum over all candidates."""
        lengths, weights = lengths_of(self.base, len(scores.unseal())), level_weights(scores.grid, epsilon)
        masses = _by_level(scores, lengths)
        return lengths, weights, sum(mass * weight for mass, weight in zip(masses, weights, strict=True))


@lru_cache(maxsize=64)
def level_weights(grid: Grid, epsilon: Fraction) -> tuple[int, ...]:
    """The whole weight of a candidate at each level of the grid."""
    low, high = grid.levels[0], grid.levels[-1]
    p = decay(epsilon, grid.span)
    return tuple(p ** (high - level) << (SCALE_BITS * (level - low)) for level in grid.levels)


def _by_level(scores: Scores, lengths: NDArray[np.int64]) -> list[int]:
    """The base of all candidates together that stand at each level."""
    masses = np.zeros(scores.grid.levels[-1] + 1, np.int64)
    np.add.at(masses, scores.unseal(), lengths)
    return [int(mass) for mass in masses[list(scores.grid.levels)]]
