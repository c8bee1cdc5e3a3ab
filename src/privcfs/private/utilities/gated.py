"""The paper's validity-gated utility (its Eq. 6).

Zone: private
Claim: flipping candidates score flip + size + plausibility terms, the empty set scores the size weight, the rest 0;
    on any two graphs one candidate's scores differ by at most flip + size (1 - 1/k_max) + plausibility, or by the
    size weight where that is more.
Why: the empty set never flips, so it scores the size weight, or 0 after a failed evaluation; any other candidate has
    at least one element, so its size term is at most size (1 - 1/k_max), and its smallest score is 0.
Check: tests/contracts/test_utilities.py::test_no_pair_of_graphs_on_five_nodes_moves_a_score_by_more_than_the_span
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.private.evaluators.outcomes import Outcomes
from privcfs.private.utilities.utility import Scores, Utility
from privcfs.private.utilities.weights import Weights, size_and_plausibility
from privcfs.public.candidates.candidates import Candidates, Caps
from privcfs.public.goals import Goal
from privcfs.public.grid import Grid


@final
@dataclass(frozen=True, slots=True)
class Gated(Utility):
    """Validity first, then small, then plausible. With `desired`, only a change to such a class counts as a flip."""

    weights: Weights = Weights()
    desired: Goal = None

    def grid(self, caps: Caps) -> Grid:
        return _grid(self.weights, caps)

    def score(self, outcomes: Outcomes) -> Scores:
        grid = self.grid(outcomes.candidates.caps)
        rewards = int(grid.denominator * self.weights.flip) + size_and_plausibility(
            outcomes, self.weights, grid.denominator
        )
        values = np.where(self.valid(outcomes), rewards, 0)
        values[0] = int(grid.denominator * self.weights.size)
        return Scores(values, grid)

    def valid(self, outcomes: Outcomes) -> NDArray[np.bool_]:
        return outcomes.flips(self.desired)

    def towards(self, desired: Goal) -> "Gated":
        return replace(self, desired=desired)

    def failed(self, candidates: Candidates) -> Scores:
        """Every candidate scores 0."""
        return Scores(np.zeros(len(candidates), np.int64), self.grid(candidates.caps))


@lru_cache(maxsize=64)
def _grid(w: Weights, caps: Caps) -> Grid:
    unit = w.denominator(caps)
    flips = {w.flip + w.size_term(caps, size) + w.plausibility * share for size, share in w.shapes(caps)}
    levels = {0, int(unit * w.size)} | {int(unit * value) for value in flips}
    return Grid(unit, tuple(sorted(levels)), int(unit * max(flips | {w.size})) if caps.largest else 0)
