"""Prepares a draw from public data alone: the method rehearsed on imagined graphs.

Zone: gate
Claim: the prepared mechanism is a function of the public context, the candidates, the utility and epsilon.
Why: a guide is never given the private graph; the graphs that it evaluates are imagined from public data.
Check: tests/gate/test_guidance.py::test_the_prepared_draw_is_the_same_whatever_the_private_graph
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SettingsError
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.private.deadline import Deadline
from privcfs.private.graph import PrivateGraph
from privcfs.private.outcomes import evaluate
from privcfs.private.utilities.utility import Utility
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.candidates.costs import Costs
from privcfs.public.context import PublicContext
from privcfs.public.guidance.plan import WHOLE, Belief
from privcfs.public.guidance.worlds import Worlds
from privcfs.public.interventions import Intervention
from privcfs.public.surroundings import ends_of, surroundings

FEW = (1, 3, 10)  # how many of the strongest candidates flip where flips are harder than imagined
FOURTH = 4  # of the imagined graphs, those that doubt looks at
TRUST = 0.2  # the belief in the snapshot graph itself, and in graphs where flips must be surer there
SURER = (0.0, -0.25, -0.5, -0.75)  # margins below which a candidate flips on them
MOST_OUTCOMES = 1 << 22  # that a rehearsal keeps; with long lists it looks at fewer graphs
UNHURRIED = Deadline(float("inf"))


class Guide(ABC):
    """Chooses, before anything private is read, how a release will be drawn."""

    name: ClassVar[str]

    @abstractmethod
    def prepare(self, context: PublicContext, candidates: Candidates, utility: Utility, epsilon: Fraction) -> Mechanism:
        """The mechanism for one target at one price."""


@final
@dataclass(frozen=True, slots=True)
class Rehearsal(Guide):
    """Subset selection under the base measure that is best on average over imagined graphs.

    `doubt` is the belief in graphs on which only the strongest candidates flip. Each unit of cost takes `thrift` from
    what a flip is worth. `nothing` is the share of the base measure that the empty set gets: it stands after everything
    that flips and before everything else, and no more than it is in front, so that with some of it "no intervention" is
    likely to be said where nothing flips, and unlikely elsewhere.
    """

    name: ClassVar[str] = "rehearsed subset-selection"

    worlds: Worlds = Worlds()
    doubt: float = 0.05
    thrift: float = 0.008
    nothing: float = 0.0
    costs: Costs = Costs()

    def __post_init__(self) -> None:
        if not (0 <= self.doubt <= 0.5 and self.thrift >= 0 and 0 <= self.nothing <= 0.9):
            raise SettingsError("doubt must lie from 0 to 0.5, nothing from 0 to 0.9, and thrift at 0 or above.")

    def prepare(self, context: PublicContext, candidates: Candidates, utility: Utility, epsilon: Fraction) -> Mechanism:
        measure = _belief(self, context, candidates, utility).best_measure(float(epsilon))
        base = np.where(self.costs.allow(candidates), measure.base, 0)
        base[0] = max(round(base[1:].sum() * self.nothing / (1 - self.nothing)), int(not base[1:].any()))
        share = (
            min(measure.share, Fraction(max(round(self.nothing * WHOLE), 1), WHOLE)) if self.nothing else measure.share
        )
        return SubsetSelection(share, tuple(base.tolist()))


def row_zero(context: PublicContext, candidates: Candidates, utility: Utility) -> Intervention:
    """The honest zero, at epsilon 0: the candidate that leaves the lowest margin on the public snapshot."""
    snapshot = PrivateGraph.from_snapshot(context.snapshot)
    _, margins = _rehearsed(snapshot, context, candidates, utility)
    return candidates[1 + int(np.argmin(margins[1:])) if len(candidates) > 1 else 0]


@lru_cache(maxsize=64)
def _belief(guide: Rehearsal, context: PublicContext, candidates: Candidates, utility: Utility) -> Belief:
    """What each candidate is worth on the snapshot, on imagined graphs, and where flips are harder than there."""
    near = surroundings(context, ends_of(candidates.target, candidates.deletions, candidates.additions))
    graphs, inside = _graphs(guide.worlds, near.context), near.inside(candidates)
    found = [_rehearsed(PrivateGraph.from_snapshot(context.snapshot), context, candidates, utility)]
    few = max(MOST_OUTCOMES // len(candidates), 8)
    found += [_rehearsed(graph, near.context, inside, utility) for graph in graphs[:few]]
    valid, margins = np.array([one for one, _ in found]), np.array([one for _, one in found])
    number = len(found) - 1
    rows = [valid[1:], *(valid[:1] & (margins[:1] <= reach) for reach in SURER)]
    likelihood = [np.full(number, (1 - TRUST - guide.doubt) / number), np.full(len(SURER), TRUST / len(SURER))]
    strength = np.argsort(margins[1::FOURTH] + 2 * ~valid[1::FOURTH], axis=1)
    for few in FEW:
        strongest = np.zeros(strength.shape, np.bool_)
        np.put_along_axis(strongest, strength[:, :few], True, axis=1)
        strongest[:, 0] = False
        rows.append(strongest)
        likelihood.append(np.full(len(strength), guide.doubt / len(FEW) / len(strength)))
    costs = guide.costs.of(candidates)
    worth = np.clip(1 - guide.thrift * np.maximum(costs - 1, 0), 0.05, 1)
    return Belief(np.concatenate(rows) & guide.costs.allow(candidates), worth, np.concatenate(likelihood))


def _rehearsed(
    graph: PrivateGraph, context: PublicContext, candidates: Candidates, utility: Utility
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Which candidates do what is asked for on an imagined graph, and their margins; none where the model fails."""
    try:
        with np.errstate(all="ignore"):
            outcomes = evaluate(graph, context, candidates, UNHURRIED)
            return utility.valid(outcomes), outcomes.margins()
    except ArithmeticError:
        return np.zeros(len(candidates), np.bool_), np.zeros(len(candidates))


@lru_cache(maxsize=2)
def _graphs(worlds: Worlds, context: PublicContext) -> list[PrivateGraph]:
    return [PrivateGraph.from_pairs(one, context.number_of_nodes) for one in worlds.imagine(context)]
