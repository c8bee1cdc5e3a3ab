"""The exponential mechanism (McSherry and Talwar 2007), drawn exactly.

Zone: gate
Claim: pure epsilon-DP for any two private graphs; probabilities are ratios of whole numbers.
Why: a candidate at level k weighs q**k p**(top - k) with p / q from `decay`. If no score moves by more than the span,
    its weight moves by at most (q/p)**span and so does the total: together by at most (q/p)**(2 span) <= e**epsilon.
    One fixed-length random number picks level and candidate; every level is visited whatever it picks.
Check: tests/contracts/test_mechanisms.py::test_hostile_scores_never_pass_the_bound
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import tanh
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.mechanisms.decay import SCALE_BITS, bits_for, decay, spread
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.randomness import Randomness
from privcfs.private.utilities.utility import Scores
from privcfs.public.grid import Grid


@final
@dataclass(frozen=True, slots=True)
class Exponential(Mechanism):
    """Weighs a candidate by e**(epsilon score / 2 range)."""

    name: ClassVar[str] = "exponential"

    def draw(self, scores: Scores, epsilon: Fraction, randomness: Randomness) -> int:
        values, grid = scores.unseal(), scores.grid
        weights = level_weights(grid, epsilon)
        masses = [int(count) * weight for count, weight in zip(_counts(values, grid), weights, strict=True)]
        bits = bits_for(len(values) * weights[-1])
        left = spread(bits, randomness.integer(bits), sum(masses))
        level = inside = 0
        for position, mass in enumerate(masses):
            if 0 <= left < mass:
                level, inside = grid.levels[position], left // weights[position]
            left -= mass
        return int(np.flatnonzero(values == level)[inside])

    def probabilities(self, scores: Scores, epsilon: Fraction) -> NDArray[np.float64]:
        weights, total = self._weights(scores, epsilon)
        shares = np.array([weight / total for weight in weights])
        return shares[np.searchsorted(scores.grid.levels, scores.unseal())]

    def exact_probabilities(self, scores: Scores, epsilon: Fraction) -> list[Fraction]:
        weights, total = self._weights(scores, epsilon)
        shares = [Fraction(weight, total) for weight in weights]
        return [shares[position] for position in np.searchsorted(scores.grid.levels, scores.unseal())]

    def advantage(self, epsilon: Fraction) -> float:
        """Log-ratios of one release lie in an interval of length epsilon, which allows tanh(epsilon / 4) at most."""
        return tanh(epsilon / 4)

    def _weights(self, scores: Scores, epsilon: Fraction) -> tuple[tuple[int, ...], int]:
        """The weight of one candidate at each level, and the sum over all candidates."""
        weights = level_weights(scores.grid, epsilon)
        counts = _counts(scores.unseal(), scores.grid)
        return weights, sum(int(count) * weight for count, weight in zip(counts, weights, strict=True))


@lru_cache(maxsize=64)
def level_weights(grid: Grid, epsilon: Fraction) -> tuple[int, ...]:
    """The whole weight of a candidate at each level of the grid."""
    low, high = grid.levels[0], grid.levels[-1]
    p = decay(epsilon, grid.span)
    return tuple(p ** (high - level) << (SCALE_BITS * (level - low)) for level in grid.levels)


def _counts(values: NDArray[np.int64], grid: Grid) -> NDArray[np.int64]:
    """How many candidates stand at each level."""
    counts: NDArray[np.int64] = np.bincount(values, minlength=grid.levels[-1] + 1)[list(grid.levels)]
    return counts
