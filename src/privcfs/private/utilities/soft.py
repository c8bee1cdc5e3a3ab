"""The soft utility: partial credit for a smaller margin.

Zone: private
Claim: a candidate scores flip x credit + size term + plausibility term, the empty set among them; credit is 1 for a
    flip, otherwise the share of the original margin that is gone, rounded down to tenths, from 0 to 9/10, and 0 where
    the original margin is 0. The margin is the probability of the originally predicted class minus that of its best
    rival. The empty set has credit 0 and counts as plausible. One candidate's scores on any two graphs differ by at
    most flip + plausibility.
Why: the size term is public and the same on every graph, after a failed evaluation too; the other two terms lie
    between 0 and their weights.
Check: tests/contracts/test_utilities.py::test_no_pair_of_graphs_on_five_nodes_moves_a_score_by_more_than_the_span
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.private.evaluators.outcomes import Outcomes
from privcfs.private.utilities.utility import Scores, Utility
from privcfs.private.utilities.weights import Weights, size_and_plausibility, size_terms
from privcfs.public.candidates.candidates import Candidates, Caps
from privcfs.public.grid import Grid

GRAIN = 10


@final
@dataclass(frozen=True, slots=True)
class Soft(Utility):
    """Rewards coming closer, where flipping is out of reach."""

    weights: Weights = Weights()

    def grid(self, caps: Caps) -> Grid:
        return _grid(self.weights, caps)

    def score(self, outcomes: Outcomes) -> Scores:
        grid = self.grid(outcomes.candidates.caps)
        values = size_and_plausibility(outcomes, self.weights, grid.denominator)
        values += _credit(outcomes) * int(grid.denominator * self.weights.flip / GRAIN)
        return Scores(values, grid)

    def failed(self, candidates: Candidates) -> Scores:
        """Every candidate scores its size term alone: plain zeros would lie further away than the span."""
        grid = self.grid(candidates.caps)
        return Scores(size_terms(candidates, self.weights, grid.denominator), grid)


@lru_cache(maxsize=64)
def _grid(w: Weights, caps: Caps) -> Grid:
    unit = w.denominator(caps, GRAIN)
    fixed = {(w.size_term(caps, size), share) for size, share in w.shapes(caps)} | {(w.size, Fraction(1))}
    fixed |= {(size, Fraction(0)) for size, _ in fixed}
    levels = {
        int(unit * (w.flip * credit / GRAIN + size + w.plausibility * share))
        for size, share in fixed
        for credit in range(GRAIN + 1)
    }
    return Grid(unit, tuple(sorted(levels)), int(unit * (w.flip + w.plausibility)) if caps.largest else 0)


def _credit(outcomes: Outcomes) -> NDArray[np.int64]:
    """By how many tenths each candidate lowers the margin; ten tenths only for a flip."""
    margins = outcomes.margins()
    before = margins[0]
    gone = 1 - margins / before if before > 0 else np.zeros_like(margins)
    tenths: NDArray[np.int64] = np.clip(np.floor(gone * GRAIN), 0, GRAIN - 1).astype(np.int64)
    tenths[outcomes.flips()] = GRAIN
    tenths[0] = 0
    return tenths
