"""Guides, which prepare a draw from public data alone. The one shipped rehearses the method on imagined graphs.

Zone: gate
Claim: the prepared draw and its confidences are functions of the public context, the candidates, the utility, epsilon
    and the candidates that earlier, public answers rule out.
Why: a guide is never given the private graph; the graphs that it evaluates are imagined from public data.
Check: tests/gate/test_guidance.py::test_the_prepared_draw_is_the_same_whatever_the_private_graph
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SettingsError
from privcfs.gate.learning import learned
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.private.evaluators.imagined import evaluate_on_imagined
from privcfs.private.own_reading import FarGraphs
from privcfs.private.utilities.utility import Utility
from privcfs.public.beliefs.belief import Belief
from privcfs.public.beliefs.imagined import Sampling
from privcfs.public.beliefs.own_belief import OwnBelief
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.candidates.costs import Costs
from privcfs.public.context import PublicContext
from privcfs.public.per_context import per_context

Bools = NDArray[np.bool_]
# A base measure is counted in parts of about this whole.
WHOLE = 1 << 20
# What a flip is worth is never less than this, whatever it costs.
LEAST_WORTH = 0.05


@final
class Prepared(NamedTuple):
    """How a release will be drawn, and the public confidence in each candidate, given that it is drawn.

    `expected` is the probability that a release is valid, before it is drawn. Where a guide believes nothing,
    `confidences` is empty and `expected` is None.
    """

    mechanism: Mechanism
    confidences: tuple[float, ...] = ()
    expected: float | None = None


class Guide(ABC):
    """Chooses, before anything private is read, how a release will be drawn."""

    name: ClassVar[str]
    reads_own: ClassVar[bool] = False  # whether answers are scored by the target's own edges, and by no other edge

    @abstractmethod
    def prepare(
        self,
        context: PublicContext,
        candidates: Candidates,
        utility: Utility,
        epsilon: Fraction,
        allowed: Bools | None = None,
    ) -> Prepared:
        """The draw for one target at one price; with `allowed`, from these candidates alone."""

    def belief(
        self,
        context: PublicContext,  # noqa: ARG002
        candidates: Candidates,  # noqa: ARG002
        utility: Utility,  # noqa: ARG002
    ) -> Belief | OwnBelief | None:
        """What is believed about a list; None, the default, where nothing is."""
        return None


@final
@dataclass(frozen=True, slots=True)
class Rehearsal(Guide):
    """Subset selection among the short list that is best on average over imagined graphs.

    Attributes:
        worlds: How graphs are imagined.
        doubt: How far a margin on an imagined graph may be off: the scale of a logistic law, in logits. None, the
            default: what serves best where a part of the snapshot is hidden.
        thrift: What each unit of cost beyond the first takes from the worth of a flip.
        nothing: The share of the base measure that the empty set gets. The empty set ranks after everything that flips
            and before everything else, and the share in front is at most as large. So "no intervention" is a likely
            answer if nothing flips, and an unlikely one otherwise.
        costs: What interventions cost, and the most that one may cost.
    """

    name: ClassVar[str] = "rehearsed subset-selection"

    worlds: Worlds = Worlds()
    doubt: float | None = None
    thrift: float = 0.008
    nothing: float = 0.0
    costs: Costs = Costs()

    def __post_init__(self) -> None:
        if self.doubt is not None and not 0 < self.doubt <= 10:
            raise SettingsError(f"doubt is {self.doubt}; it must lie above 0, and at 10 or below.")
        if not (self.thrift >= 0 and 0 <= self.nothing <= 0.9):
            raise SettingsError("nothing must lie from 0 to 0.9, and thrift at 0 or above.")

    def prepare(
        self,
        context: PublicContext,
        candidates: Candidates,
        utility: Utility,
        epsilon: Fraction,
        allowed: Bools | None = None,
    ) -> Prepared:
        return self.prepared(self.belief(context, candidates, utility), candidates, epsilon, allowed)

    def prepared(
        self,
        belief: Belief | OwnBelief,
        candidates: Candidates,
        epsilon: Fraction,
        allowed: Bools | None = None,
    ) -> Prepared:
        """The draw that a belief makes best."""
        may_be_drawn = self.costs.allow(candidates) if allowed is None else self.costs.allow(candidates) & allowed
        chosen, _ = belief.short_list(float(epsilon), may_be_drawn)
        chosen = chosen[may_be_drawn[chosen]]
        if not len(chosen):
            chosen = np.zeros(1, np.int64)
        base = np.zeros(len(candidates), np.int64)
        base[chosen] = WHOLE // len(chosen)
        share = Fraction(1, len(chosen))
        if self.nothing:
            base[0] = max(round(base[1:].sum() * self.nothing / (1 - self.nothing)), 1)
            share = min(share, Fraction(max(round(self.nothing * WHOLE), 1), WHOLE))
        confidences = np.zeros(len(candidates))
        confidences[chosen] = belief.confidences(chosen, float(epsilon))
        confidences[0] = 0
        law = belief.likelihood @ belief.probabilities(chosen, float(epsilon))
        mechanism = SubsetSelection(share, tuple(base.tolist()))
        return Prepared(mechanism, tuple(confidences.tolist()), float(law @ confidences[chosen]))

    def belief(self, context: PublicContext, candidates: Candidates, utility: Utility) -> Belief:
        """What is believed about a list."""
        return _belief(context, self, candidates, utility)

    def far_graphs(
        self, context: PublicContext, candidates: Candidates, utility: Utility, told: int | None = None
    ) -> FarGraphs:
        """How graphs around a target's own edges are imagined and judged, for reading own edges alone."""
        lesson = learned(context, self.worlds).knowing_own
        lesson = lesson if self.doubt is None else replace(lesson, doubt=self.doubt)
        worth = self.worth_of(candidates)
        return FarGraphs(context, lesson, worth, self.worlds.number, utility.desired, told)

    def worth_of(self, candidates: Candidates) -> NDArray[np.float32]:
        """What each candidate is worth if it is valid."""
        costs = self.costs.of(candidates)
        return np.clip(1 - self.thrift * np.maximum(costs - 1, 0), LEAST_WORTH, 1).astype(np.float32)


@per_context(maxsize=64)
def _belief(context: PublicContext, guide: Rehearsal, candidates: Candidates, utility: Utility) -> Belief:
    """The margins of the candidates on imagined graphs, and what a valid one is worth."""
    lesson = learned(context, guide.worlds)
    sampling = Sampling(guide.worlds.number)
    margins, _ = evaluate_on_imagined(
        context, lesson.beliefs, candidates, sampling, utility.desired, blend=lesson.blend
    )
    doubt = guide.doubt or lesson.doubt
    return Belief(margins, guide.worth_of(candidates), candidates.sizes, doubt, lesson.trust, lesson.calibration)
