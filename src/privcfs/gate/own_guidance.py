"""The guide for questions that read the target's own edges alone: its plan does not count on anything else.

Zone: gate
Claim: as guidance.py.
Why: own pairs and pairs elsewhere are both imagined from public data; nothing here is given a private graph.
Check: tests/gate/test_guidance.py::test_the_prepared_draw_is_the_same_whatever_the_private_graph
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

from privcfs.errors import SettingsError
from privcfs.gate.guidance import Bools, Guide, Prepared, Rehearsal
from privcfs.gate.learning import learned
from privcfs.private.evaluators.imagined import evaluate_on_imagined
from privcfs.private.utilities.utility import Utility
from privcfs.public.beliefs.belief import Belief
from privcfs.public.beliefs.imagined import Sampling
from privcfs.public.beliefs.own_belief import OwnBelief
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext
from privcfs.public.per_context import per_context


@final
@dataclass(frozen=True, slots=True)
class OwnEdgeRehearsal(Guide):
    """Rehearses answers that are scored by the own edges of the target, with everything else imagined.

    Attributes:
        rehearsal: What is believed, and what a flip is worth.
        samples: How many samples of own pairs are imagined for a plan.
        each: How many graphs are imagined around each of them.
    """

    name: ClassVar[str] = "rehearsed subset-selection by own edges"
    reads_own: ClassVar[bool] = True

    rehearsal: Rehearsal = Rehearsal()
    samples: int = 32
    each: int = 6

    def __post_init__(self) -> None:
        if self.samples < 1 or self.each < 1:
            raise SettingsError("samples and each must be at least 1.")

    def prepare(
        self,
        context: PublicContext,
        candidates: Candidates,
        utility: Utility,
        epsilon: Fraction,
        allowed: Bools | None = None,
    ) -> Prepared:
        return self.rehearsal.prepared(self.belief(context, candidates, utility), candidates, epsilon, allowed)

    def belief(self, context: PublicContext, candidates: Candidates, utility: Utility) -> OwnBelief:
        """What is believed about a list whose answer is scored by own edges."""
        return _belief(context, self, candidates, utility)


@per_context(maxsize=64)
def _belief(context: PublicContext, guide: OwnEdgeRehearsal, candidates: Candidates, utility: Utility) -> OwnBelief:
    """Margins for each sample of own pairs, on graphs with different pairs elsewhere."""
    lesson = learned(context, guide.rehearsal.worlds)
    sampling = Sampling(guide.samples, guide.each)
    margins, _ = evaluate_on_imagined(
        context, lesson.beliefs, candidates, sampling, utility.desired, blend=lesson.blend
    )
    # A torch module is run on fewer graphs than were imagined, and the last sample may have lost some of its own.
    margins = margins[: 1 + (len(margins) - 1) // guide.each * guide.each]
    worth, doubt = guide.rehearsal.worth_of(candidates), guide.rehearsal.doubt or lesson.doubt
    belief = Belief(margins, worth, candidates.sizes, doubt, lesson.trust, lesson.calibration)
    return OwnBelief(guide.rehearsal.belief(context, candidates, utility), belief, guide.each)
