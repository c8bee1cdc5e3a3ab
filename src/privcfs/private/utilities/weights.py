"""The weights of a utility's three terms, and what both shipped utilities share.

Zone: private
Claim: flip, size and plausibility weights are exact rationals that sum to 1.
Why: checked when made; no float is accepted.
Check: tests/private/test_utilities.py::test_weights_must_be_exact_and_sum_to_one
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import lcm
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SettingsError
from privcfs.private.evaluators.outcomes import Outcomes
from privcfs.public.candidates.candidates import Candidates, Caps, lengths


@final
@dataclass(frozen=True, slots=True)
class Weights:
    """The paper's w_f, w_c, w_p."""

    flip: Fraction = Fraction(7, 10)
    size: Fraction = Fraction(2, 10)
    plausibility: Fraction = Fraction(1, 10)

    def __post_init__(self) -> None:
        terms = (self.flip, self.size, self.plausibility)
        if any(not isinstance(term, Fraction) or term < 0 for term in terms) or sum(terms) != 1:
            raise SettingsError("utility weights must be three non-negative fractions that sum to 1.")

    def denominator(self, caps: Caps, grain: int = 1) -> int:
        """The smallest unit in which every score is whole."""
        parts = [self.flip / grain, self.size, self.size / max(caps.largest, 1), self.plausibility]
        parts += [self.plausibility / count for count in range(1, caps.pairs + 1)]
        return lcm(*(part.denominator for part in parts))

    def size_term(self, caps: Caps, size: int) -> Fraction:
        """The size term of a candidate of this size: the larger the candidate, the less."""
        return self.size * (1 - Fraction(size, max(caps.largest, 1)))

    def shapes(self, caps: Caps) -> set[tuple[int, Fraction]]:
        """Every attainable (size, plausibility) of a non-empty candidate; no pairs at all counts as plausible."""
        found = set()
        for pairs in range(caps.pairs + 1):
            shares = {Fraction(real, pairs) for real in range(pairs + 1)} if pairs else {Fraction(1)}
            found |= {(pairs + masks, share) for masks in range(caps.features + 1) for share in shares}
        return {(size, share) for size, share in found if 0 < size <= caps.largest}


def size_terms(candidates: Candidates, weights: Weights, unit: int) -> NDArray[np.int64]:
    """The public size term of each candidate, in units."""
    by_size = [int(unit * weights.size_term(candidates.caps, size)) for size in range(candidates.caps.largest + 1)]
    terms: NDArray[np.int64] = np.array(by_size)[candidates.sizes]
    return terms


def size_and_plausibility(outcomes: Outcomes, weights: Weights, unit: int) -> NDArray[np.int64]:
    """The size and plausibility terms of each candidate, in units."""
    shares = _shares(unit * weights.plausibility, outcomes.candidates.caps.pairs)
    counts = lengths(outcomes.candidates.pair_sets)
    terms = size_terms(outcomes.candidates, weights, unit)
    terms += np.repeat(shares[outcomes.effective, counts], outcomes.candidates.feature_set_counts)
    return terms


@lru_cache(maxsize=16)
def _shares(whole: Fraction, most: int) -> NDArray[np.int64]:
    """The plausibility term by the number of real operations and the number of operations; a function of settings."""
    counts = range(most + 1)
    table = np.array([[_share(whole, real, count) for count in counts] for real in counts])
    table.flags.writeable = False
    return table


def _share(whole: Fraction, real: int, count: int) -> int:
    """`whole`, times the share of pair operations that change the graph, which is 1 where there are none."""
    return int(whole * Fraction(min(real, count), count)) if count else int(whole)
