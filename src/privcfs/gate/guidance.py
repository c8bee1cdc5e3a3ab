"""Guides, which prepare a draw from public data alone. The one shipped rehearses the method on imagined graphs.

Zone: gate
Claim: the prepared mechanism is a function of the public context, the candidates, the utility and epsilon.
Why: a guide is never given the private graph; the graphs that it evaluates are imagined from public data.
Check: tests/gate/test_guidance.py::test_the_prepared_draw_is_the_same_whatever_the_private_graph
"""

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SettingsError
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.private.utilities.utility import Utility
from privcfs.public.beliefs.plan import WHOLE, Belief
from privcfs.public.beliefs.surroundings import ends_of, surroundings
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.candidates.costs import Costs
from privcfs.public.context import PublicContext
from privcfs.public.per_context import per_context

# The belief that the snapshot itself is the private graph, or one on which flips are harder.
TRUST = 0.2
# In that part of the belief, a candidate flips if its margin on the snapshot is at most one of these.
MARGINS_NEEDED = (0.0, -0.25, -0.5, -0.75)
# In the part that `doubt` is about, only so many of the strongest candidates flip on an imagined graph.
NUMBERS_OF_STRONGEST = (1, 3, 10)
# Doubt is spread over every fourth imagined graph, which keeps the plan small.
DOUBTED_STEP = 4
# A rehearsal keeps at most so many outcomes, so that with long lists it looks at fewer graphs, but at no fewer than 8.
MOST_OUTCOMES, LEAST_GRAPHS = 1 << 22, 8
# What a flip is worth is never less than this, whatever it costs.
LEAST_WORTH = 0.05


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

    Attributes:
        worlds: How graphs are imagined.
        doubt: The probability of graphs on which only a few of the strongest candidates flip.
        thrift: What each unit of cost beyond the first takes from the worth of a flip.
        nothing: The share of the base measure that the empty set gets. The empty set ranks after everything that flips
            and before everything else, and the share in front is at most as large. So "no intervention" is a likely
            answer if nothing flips, and an unlikely one otherwise.
        costs: What interventions cost, and the most that one may cost.
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
        measure = _belief(context, self, candidates, utility).best_measure(float(epsilon))
        base = np.where(self.costs.allow(candidates), measure.base, 0)
        others = base[1:]
        base[0] = max(round(others.sum() * self.nothing / (1 - self.nothing)), int(not others.any()))
        share = measure.share
        if self.nothing:
            share = min(share, Fraction(max(round(self.nothing * WHOLE), 1), WHOLE))
        return SubsetSelection(share, tuple(base.tolist()))


class _Outcomes(NamedTuple):
    """Which candidates are valid on each of some graphs, and their margins there: (graphs, candidates)."""

    valid: NDArray[np.bool_]
    margins: NDArray[np.float64]


class _Scenarios(NamedTuple):
    """Graphs that are equally likely, `probability` in all, by which candidates are valid on each."""

    valid: NDArray[np.bool_]
    probability: float


@per_context(maxsize=64)
def _belief(context: PublicContext, guide: Rehearsal, candidates: Candidates, utility: Utility) -> Belief:
    """Which candidates are valid on graphs that are believed possible, and what a valid one is worth."""
    snapshot = _evaluate_all([PrivateGraph.from_snapshot(context.snapshot)], context, candidates, utility)
    imagined = _on_imagined_graphs(context, guide.worlds, candidates, utility)
    harder = [snapshot.valid & (snapshot.margins <= needed) for needed in MARGINS_NEEDED]
    doubted = [_only_strongest(imagined, number) for number in NUMBERS_OF_STRONGEST]
    scenarios = [
        _Scenarios(imagined.valid, 1 - TRUST - guide.doubt),
        _Scenarios(np.concatenate(harder), TRUST),
        *(_Scenarios(one, guide.doubt / len(doubted)) for one in doubted),
    ]
    valid = np.concatenate([one.valid for one in scenarios]) & guide.costs.allow(candidates)
    worth = np.clip(1 - guide.thrift * np.maximum(guide.costs.of(candidates) - 1, 0), LEAST_WORTH, 1)
    likelihood = [np.full(len(one.valid), one.probability / len(one.valid)) for one in scenarios]
    return Belief(valid, worth, np.concatenate(likelihood))


def _on_imagined_graphs(context: PublicContext, worlds: Worlds, candidates: Candidates, utility: Utility) -> _Outcomes:
    """Evaluates the candidates on imagined graphs; of a large context, on graphs of the target's surroundings."""
    near = surroundings(context, ends_of(candidates.target, candidates.deletions, candidates.additions))
    graphs = _imagined_graphs(near.context, worlds)[: max(MOST_OUTCOMES // len(candidates), LEAST_GRAPHS)]
    return _evaluate_all(graphs, near.context, near.inside(candidates), utility)


def _only_strongest(imagined: _Outcomes, number: int) -> NDArray[np.bool_]:
    """Some of the imagined graphs, as if only so many candidates were valid: valid ones of lowest margin first."""
    valid, margins = imagined.valid[::DOUBTED_STEP], imagined.margins[::DOUBTED_STEP]
    strongest_first = np.argsort(margins + 2 * ~valid, axis=1)  # Margins differ by at most 2, so valid ones come first.
    strongest = np.zeros(valid.shape, np.bool_)
    np.put_along_axis(strongest, strongest_first[:, :number], True, axis=1)
    strongest[:, 0] = False  # The empty set changes nothing.
    return strongest


def _evaluate_all(
    graphs: list[PrivateGraph], context: PublicContext, candidates: Candidates, utility: Utility
) -> _Outcomes:
    """The outcomes on each graph; on one where the model's values are not finite, nothing is valid."""
    valid = np.zeros((len(graphs), len(candidates)), np.bool_)
    margins = np.zeros((len(graphs), len(candidates)))
    for number, graph in enumerate(graphs):
        with suppress(ArithmeticError), np.errstate(all="ignore"):
            outcomes = evaluate(graph, context, candidates, UNLIMITED)
            valid[number], margins[number] = utility.valid(outcomes), outcomes.margins()
    return _Outcomes(valid, margins)


@per_context(maxsize=2)
def _imagined_graphs(context: PublicContext, worlds: Worlds) -> list[PrivateGraph]:
    return [PrivateGraph.from_pairs(one, context.number_of_nodes) for one in worlds.imagine(context)]
