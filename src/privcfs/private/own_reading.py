"""A candidate list scored by the own edges of its target, with everything else public or imagined.

Zone: private
Claim: outcomes are a function of public data and of the target's own edges; they are the same, not merely close, for
    two graphs that agree at the target. Whether an evaluation is given up depends on the same alone.
Why: the own edges come as a value that holds nothing else. Graphs around them are imagined with a public seed, and the
    work is counted from the number of own edges and from public sizes before it is done. Nothing is kept, and no
    floating-point batch mixes the own edges of two targets.
Check: tests/claims/test_own_edges.py::test_pairs_elsewhere_leave_the_law_of_a_release_identical
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.private.allowance import Allowance
from privcfs.private.evaluators.gcn_work import work
from privcfs.private.evaluators.imagined import evaluate_on_imagined
from privcfs.private.graph import OwnEdges
from privcfs.private.sealed import Sealed
from privcfs.private.utilities.utility import Scores
from privcfs.public.beliefs.belief import Belief
from privcfs.public.beliefs.imagined import Sampling
from privcfs.public.beliefs.learned import Learned
from privcfs.public.candidates.candidates import CandidateRule, Candidates
from privcfs.public.context import PublicContext
from privcfs.public.goals import Goal
from privcfs.public.grid import Grid
from privcfs.public.interventions import pair

# Scores are counted in thousandths of the graphs.
SHARES = Grid(1000, tuple(range(1001)), 1000)
# The empty set ranks before everything that is valid on less than this share of the graphs, in thousandths.
NO_CHANGE = 500
# A margin is believed to be off by the doubt that was learned. What decision the person was told weighs each graph;
# a graph that says otherwise keeps this weight, because the graph is imagined.
OTHERWISE = 0.02


@final
@dataclass(frozen=True, slots=True, eq=False)
class FarGraphs:
    """How graphs around own edges are imagined and judged: public settings.

    Attributes:
        context: The public context.
        learned: Beliefs, doubt and calibration.
        worth: What each candidate of the list is worth if it is valid.
        number: How many graphs are imagined.
        desired: The class or classes that a valid candidate leads to; None for any other than the original one.
        told: The decision that the person says she was told: an input of hers, never read from the graph; None where
            she says nothing.
    """

    context: PublicContext
    learned: Learned
    worth: NDArray[np.float32]
    number: int
    desired: Goal = None
    told: int | None = None


@final
class OwnOutcomes(Sealed):
    """What is believed about a list, given own edges. `original` has the class of the target on each graph."""

    __slots__ = ("belief", "original")

    def __init__(self, belief: Belief, original: NDArray[np.int64]) -> None:
        self.belief, self.original = belief, original

    def scores(self) -> Scores:
        """For each candidate its expected worth: the share of graphs on which it is valid, times what it is worth."""
        expected = (self.belief.likelihood @ self.belief.valid) * self.belief.worth
        values = np.clip(np.rint(SHARES.denominator * expected), 0, SHARES.denominator).astype(np.int64)
        values[0] = NO_CHANGE
        return Scores(values, SHARES)

    def closeness(self) -> float:
        """How close the decision is to flipping, from 0 to 1: the mean over graphs of exp(-margin) without a change."""
        return float(self.belief.likelihood @ np.exp(-np.clip(self.belief.margins[:, 0], 0, 30)))


def personal_list(own: OwnEdges, rule: CandidateRule, context: PublicContext) -> Candidates:
    """The list for the person concerned: she may delete the edges that she has, in the place of public pairs.

    Whom she may be joined to is judged by these edges, too.
    """
    pairs = tuple(pair(own.node, other) for other in own.neighbours.tolist())
    return rule.knowing(pairs).propose(context, own.node)


def failed_scores(candidates: Candidates) -> Scores:
    """The public scores that a failed evaluation is drawn from."""
    return Scores(np.zeros(len(candidates), np.int64), SHARES)


def evaluate_own(own: OwnEdges, far: FarGraphs, candidates: Candidates, allowance: Allowance) -> OwnOutcomes:
    """Evaluates a list on graphs that hold the target's own edges and imagined ones elsewhere."""
    if own.node != candidates.target:
        raise ValueError("own edges are not those of the target")
    units = max(far.context.model.number_of_features, far.context.number_of_classes)
    entries = far.number * (len(own.neighbours) + len(candidates)) * far.context.number_of_classes
    allowance.spend(work(read=far.number * len(own.neighbours), entries=entries + units * len(own.neighbours)))
    lesson, sampling = far.learned, Sampling(far.number)
    found = evaluate_on_imagined(
        far.context, lesson.beliefs, candidates, sampling, far.desired, own, blend=lesson.blend
    )
    evidence = None if far.told is None else np.where(found.original == far.told, 1.0, OTHERWISE).astype(np.float32)
    belief = Belief(
        found.margins, far.worth, candidates.sizes, lesson.doubt, lesson.trust, lesson.calibration, evidence
    )
    return OwnOutcomes(belief, found.original)
