"""Permute-and-flip (McKenna and Sheldon 2020), drawn exactly.

Zone: gate
Claim: pure epsilon-DP for any two private graphs; never a lower expected score than the exponential mechanism.
Why: visiting candidates in random order and stopping at the first head is the same as tossing every candidate's coin
    and choosing uniformly among the heads. A coin's chance is (p/q)**(best - score) with p / q from `decay`: the
    published mechanism at 2 span ln(q/p) <= epsilon. Coins compare 64 random bits with the chance's first 64; where
    these are equal, the remaining bits are drawn too, so no chance is rounded.
Check: tests/contracts/test_mechanisms.py::test_hostile_scores_never_pass_the_bound
"""

from dataclasses import dataclass
from fractions import Fraction
from math import tanh
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.mechanisms.decay import SCALE_BITS, bits_for, decay, spread
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.randomness import Randomness
from privcfs.private.utilities.utility import Scores

WORD_BITS = 64


@final
@dataclass(frozen=True, slots=True)
class PermuteAndFlip(Mechanism):
    """Better than the exponential mechanism on small supports, equal to it on large ones."""

    name: ClassVar[str] = "permute-and-flip"

    def draw(self, scores: Scores, epsilon: Fraction, randomness: Randomness) -> int:
        values, levels = scores.unseal(), scores.grid.levels
        best = int(values.max())
        p = decay(epsilon, scores.grid.span)
        words = randomness.words(len(values))
        heads = values == best
        for level in levels:
            here = np.flatnonzero(values == level)
            if level < best:
                heads[here] = _toss(words[here], p, best - level, randomness)
        chosen = np.flatnonzero(heads)
        bits = bits_for(len(values))
        return int(chosen[spread(bits, randomness.integer(bits), len(chosen))])

    def probabilities(self, scores: Scores, epsilon: Fraction) -> NDArray[np.float64]:
        """Chance times the integral of the others' tails, chance x ∫ ∏ (1 - chance t) dt, on dyadic panels."""
        values, grid = scores.unseal(), scores.grid
        levels, member, counts = np.unique(values, return_inverse=True, return_counts=True)
        p = Fraction(decay(epsilon, grid.span), 2**SCALE_BITS)
        chances = np.array([float(p ** int(levels[-1] - level)) for level in levels])
        t, weight = _panels(len(values))
        tails = np.log1p(-np.outer(chances, t))
        others = counts @ tails - tails
        shares = chances * (np.exp(others) @ weight)
        return shares[member]

    def exact_probabilities(self, scores: Scores, epsilon: Fraction) -> list[Fraction]:
        values = [int(value) for value in scores.unseal()]
        p = Fraction(decay(epsilon, scores.grid.span), 2**SCALE_BITS)
        chances = [p ** (max(values) - value) for value in values]
        share = {chance: _exact_share(chance, chances) for chance in set(chances)}
        return [share[chance] for chance in chances]

    def advantage(self, epsilon: Fraction) -> float:
        """The ceiling of every pure epsilon-DP release."""
        return tanh(epsilon / 2)


def _toss(words: NDArray[np.uint64], p: int, power: int, randomness: Randomness) -> NDArray[np.bool_]:
    """One coin per word with the exact chance (p / 2**96)**power."""
    chance, bits = p**power, SCALE_BITS * power
    lead, rest = divmod(chance, 1 << (bits - WORD_BITS))
    if lead >> WORD_BITS:
        return np.ones(len(words), np.bool_)
    heads = words < np.uint64(lead)
    for tie in np.flatnonzero(words == np.uint64(lead)):
        heads[tie] = randomness.integer(bits - WORD_BITS) < rest
    return heads


def _exact_share(chance: Fraction, chances: list[Fraction]) -> Fraction:
    """chance x ∫ ∏ (1 - other t) dt over t in [0, 1], the product expanded as a polynomial."""
    others = list(chances)
    others.remove(chance)
    zero = Fraction(0)
    polynomial = [Fraction(1)]
    for other in others:
        polynomial = [a - other * b for a, b in zip([*polynomial, zero], [zero, *polynomial], strict=True)]
    return chance * sum((term / (power + 1) for power, term in enumerate(polynomial)), zero)


def _panels(count: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Gauss-Legendre points on [0, 1], denser towards 0, where the product of many tails falls fastest."""
    nodes, weights = np.polynomial.legendre.leggauss(48)
    edges = np.concatenate([[0.0], 0.5 ** np.arange(count.bit_length() + 6, -1, -1)])
    widths = np.diff(edges)
    points = edges[:-1, None] + widths[:, None] * (nodes + 1) / 2
    return points.ravel(), (widths[:, None] * weights / 2).ravel()
