"""How far two release distributions of one mechanism can lie apart, exactly: for authors of mechanisms and for audits.

Zone: gate
Claim: `below_bound` says yes only if a ratio is at most e**epsilon; no rounding decides it.
Why: the comparison is made in rational numbers, with a rational that is never below e**-epsilon.
Check: tests/contracts/test_mechanisms.py::test_hostile_scores_reject_the_twin_with_half_the_sensitivity
"""

from fractions import Fraction

import numpy as np

from privcfs.gate.mechanisms.decay import exponential_above
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.private.utilities.utility import Scores
from privcfs.public.grid import Grid

ENDS = Grid(2, (0, 2), 2)  # hostile scores use the two ends of a grid; few levels keep exact fractions short


def hostile_ratio(mechanism: Mechanism, epsilon: Fraction, grid: Grid = ENDS, others: int = 100) -> Fraction:
    """The exact ratio on hostile scores: one candidate falls by the whole span while `others` rise by it, or back."""
    low = grid.levels[0]
    high = low + grid.span
    falls = np.full(others + 1, high), np.full(others + 1, low)
    falls[0][0], falls[1][0] = low, high
    first, second = (mechanism.exact_probabilities(Scores(values, grid), epsilon) for values in falls)
    return max(max(a / b, b / a) for a, b in zip(first, second, strict=True))


def below_bound(ratio: Fraction, epsilon: Fraction) -> bool:
    """Whether ratio <= e**epsilon, decided in rationals."""
    return ratio * exponential_above(epsilon) <= 1
