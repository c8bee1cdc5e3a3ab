"""Draws by rank: a public density over the candidates in order of their scores.

Zone: gate
Claim: pure epsilon-DP for any two private graphs, under any public base measure; a base of 0 is never drawn.
Why: candidates are laid along a line in order of score, each as long as its public base, and a point of the line is
    drawn from a public density whose values differ by a factor of at most e**epsilon. Wherever a graph puts a
    candidate, its probability lies between its length times the lowest and times the highest density: nothing else
    moves, the total least of all. A candidate across a step of the density takes part of both.
Check: tests/contracts/test_mechanisms.py::test_hostile_scores_never_pass_the_bound
"""

from abc import abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, expm1, isqrt, log, tanh
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SettingsError
from privcfs.gate.mechanisms.decay import ROUNDING, SCALE, bits_for, exponential_above, spread
from privcfs.gate.mechanisms.mechanism import Weighed, check_base, lengths_of
from privcfs.gate.randomness import Randomness
from privcfs.private.utilities.utility import Scores

FINEST_SHARE = 1 << 20
FINE = 1 << 64  # steps of the odds of a matched profile


class RankProfile(Weighed):
    """Scores enter through their order alone; ties follow the public order of the list."""

    __slots__ = ()

    def draw(self, scores: Scores, epsilon: Fraction, randomness: Randomness) -> int:
        order, ends = self._line(scores)
        point = self._point(int(ends[-1]), epsilon, randomness)
        return int(order[np.searchsorted(ends, point, side="right")])

    def probabilities(self, scores: Scores, epsilon: Fraction) -> NDArray[np.float64]:
        order, ends = self._line(scores)
        law = np.empty(len(order))
        law[order] = self._between(np.concatenate([[0], ends[:-1]]), ends, epsilon)
        return law

    def exact_probabilities(self, scores: Scores, epsilon: Fraction) -> list[Fraction]:
        order, ends = self._line(scores)
        length = int(ends[-1])
        steps = [Fraction(0), *(self._chance_below(int(end), length, epsilon) for end in ends)]
        law = [Fraction(0)] * len(order)
        for position, low, high in zip(order, steps[:-1], steps[1:], strict=True):
            law[position] = high - low
        return law

    def _line(self, scores: Scores) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Candidates from the best score to the worst, and where the interval of each ends."""
        values = scores.unseal()
        order: NDArray[np.int64] = np.argsort(-values, kind="stable")
        return order, np.cumsum(lengths_of(self.base, len(values))[order] * self._unit)

    @property
    @abstractmethod
    def _unit(self) -> int:
        """How many points a base of 1 has."""

    @abstractmethod
    def _point(self, length: int, epsilon: Fraction, randomness: Randomness) -> int:
        """A point from 0 to below the length, drawn from the density."""

    @abstractmethod
    def _chance_below(self, point: int, length: int, epsilon: Fraction) -> Fraction:
        """How likely the drawn point is to lie below this one."""

    @abstractmethod
    def _between(self, starts: NDArray[np.int64], ends: NDArray[np.int64], epsilon: Fraction) -> NDArray[np.float64]:
        """How likely the drawn point is to lie in each interval of the line, rounded to floats."""


@final
@dataclass(frozen=True, slots=True)
class SubsetSelection(RankProfile):
    """A public share of the line in front has e**epsilon times the density of the rest.

    Under some base measure this is the best that any pure epsilon-DP selection can do (docs/promise.md).
    """

    name: ClassVar[str] = "subset-selection"

    share: Fraction = Fraction(1, 4)
    base: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not (isinstance(self.share, Fraction) and 0 <= self.share <= 1 and self.share.denominator <= FINEST_SHARE):
            raise SettingsError("share must be a fraction from 0 to 1 with a denominator of at most 2**20.")
        check_base(self.base, self.share.denominator)

    def advantage(self, epsilon: Fraction) -> float:
        """Two graphs at most exchange what is in front for as much of the rest."""
        odds = 1 / float(exponential_above(epsilon))
        least = float(min(self.share, 1 - self.share))
        return least * (odds - 1) / (float(self.share) * (odds - 1) + 1)

    def auc(self, epsilon: Fraction) -> float:
        """What moves to the front, what moves back and what stays have three different odds."""
        odds, share = 1 / float(exponential_above(epsilon)), float(self.share)
        moved = min(share, 1 - share) / (share * (odds - 1) + 1)
        ahead, behind = moved * odds, moved
        stays = 1 - ahead - behind
        return ahead * (ahead + 2 * stays + behind) + stays**2 / 2

    def renyi(self, order: float, epsilon: Fraction) -> float:
        """The exact divergence: what moves to the front, what moves back and what stays have three different odds."""
        e, share = float(epsilon), float(self.share)
        moved = min(share, 1 - share)
        stays = (share - moved) * exp(e) + 1 - share - moved
        changed = moved * (exp(order * e) + exp((1 - order) * e))
        return max(log((changed + stays) / (share * expm1(e) + 1)) / (order - 1), 0.0)

    @property
    def _unit(self) -> int:
        return self.share.denominator

    def _front(self, length: int) -> int:
        return length // self.share.denominator * self.share.numerator

    def _point(self, length: int, epsilon: Fraction, randomness: Randomness) -> int:
        front, low = self._front(length), lowest_density(epsilon)
        total = front * SCALE + (length - front) * low
        bits = bits_for(total)
        drawn = spread(bits, randomness.integer(bits), total)
        ahead, behind = drawn // SCALE, front + (drawn - front * SCALE) // low
        return ahead if drawn < front * SCALE else behind

    def _chance_below(self, point: int, length: int, epsilon: Fraction) -> Fraction:
        front, low = self._front(length), lowest_density(epsilon)
        total = front * SCALE + (length - front) * low
        return Fraction(min(point, front) * SCALE + max(point - front, 0) * low, total)

    def _between(self, starts: NDArray[np.int64], ends: NDArray[np.int64], epsilon: Fraction) -> NDArray[np.float64]:
        front, low = self._front(int(ends[-1])), lowest_density(epsilon) / SCALE
        ahead = np.minimum(ends, front) - np.minimum(starts, front)
        masses: NDArray[np.float64] = ahead + (ends - starts - ahead) * low
        total = front + (int(ends[-1]) - front) * low
        return masses / total


@final
@dataclass(frozen=True, slots=True)
class MatchedProfile(RankProfile):
    """For every number of good candidates at least as likely to hit one as the exponential mechanism.

    The first k of n points are hit with probability k a / (k a + n - k), as if each of them weighed a. The odds a are
    the largest for which the first point is at most e**epsilon times as likely as the last.
    """

    name: ClassVar[str] = "matched-profile"

    base: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_base(self.base)

    def advantage(self, epsilon: Fraction) -> float:
        """The ceiling of every pure epsilon-DP release, reached by a list of two."""
        return tanh(epsilon / 2)

    @property
    def _unit(self) -> int:
        return 1

    def _point(self, length: int, epsilon: Fraction, randomness: Randomness) -> int:
        odds = matched_odds(epsilon, length)
        bits = bits_for(odds * length)
        drawn = randomness.integer(bits)
        return bisect_right(
            range(1, length), drawn, key=lambda k: (k * odds << bits) // (k * odds + (length - k) * FINE)
        )

    def _chance_below(self, point: int, length: int, epsilon: Fraction) -> Fraction:
        odds = matched_odds(epsilon, length)
        return Fraction(point * odds, point * odds + (length - point) * FINE)

    def _between(self, starts: NDArray[np.int64], ends: NDArray[np.int64], epsilon: Fraction) -> NDArray[np.float64]:
        odds = matched_odds(epsilon, int(ends[-1])) / FINE
        before, after = (points * odds + (ends[-1] - points) for points in (starts, ends))
        masses: NDArray[np.float64] = odds * (ends - starts) / before * (ends[-1] / after)
        return masses


@lru_cache(maxsize=256)
def lowest_density(epsilon: Fraction) -> int:
    """Over 2**96: at least e**-epsilon, rounded up, with the reserve for a fixed number of random bits."""
    return ceil(exponential_above(epsilon - ROUNDING) * SCALE)


@lru_cache(maxsize=256)
def matched_odds(epsilon: Fraction, count: int) -> int:
    """Over 2**64: the largest a with a ((n - 1) a + 1) <= r (a + n - 1), r being the rational below e**epsilon."""
    if count == 1:
        return FINE
    low, rest = lowest_density(epsilon), count - 1
    linear = (SCALE - low) * FINE
    root = isqrt(linear * linear + 4 * rest * rest * SCALE * low * FINE * FINE)
    return (linear + root) // (2 * rest * low)
