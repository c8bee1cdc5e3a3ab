"""The public choices behind a release.

Zone: gate
Claim: what a method says and prepares is a function of public data.
Why: it is never given a private graph; a guide rehearses on imagined ones.
Check: tests/gate/test_guidance.py::test_the_prepared_draw_is_the_same_whatever_the_private_graph
"""

import hashlib
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np

from privcfs.errors import InputError, SettingsError
from privcfs.gate.guidance import Bools, Guide, Prepared, Rehearsal
from privcfs.gate.mechanisms.exponential import Exponential
from privcfs.gate.mechanisms.mechanism import Mechanism, Weighed, lengths_of
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.gate.own_guidance import OwnEdgeRehearsal
from privcfs.private.utilities.gated import Gated
from privcfs.private.utilities.utility import Utility
from privcfs.public.candidates.beyond import Beyond
from privcfs.public.candidates.candidates import CandidateRule, Candidates
from privcfs.public.candidates.product import Product
from privcfs.public.candidates.recourse import Recourse
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.candidates.within_schema import WithinSchema
from privcfs.public.constraints import Constraints
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Intervention

# The costliest of all mechanisms that a guide may prepare, under contracts that count more than epsilon.
DEAREST = SubsetSelection(Fraction(1, 2))


@final
@dataclass(frozen=True, slots=True)
class Method:
    """The public choices behind a release: candidates, utility, mechanism. The defaults are the paper's method.

    `privcfs.gate.method.GUIDED` is the method that vaults use by default, and `OWN_EDGES` the one that reads of the
    private graph the target's own edges alone.

    Attributes:
        candidates: The rule that proposes the public list of candidates. Default: the paper's product rule.
        utility: How each candidate is scored on the private graph. Default: the paper's gated utility.
        mechanism: How one candidate is drawn by its score. Default: the exponential mechanism.
        evaluation_seconds: The most work that one evaluation may take, in nominal seconds: 10^9 counted units each,
            of which each is about a nanosecond. Default: 60. Work is counted from sizes, never by a clock, so the
            speed and the load of a machine make no difference. Beyond it, the answer is drawn from public scores that
            do not depend on the graph.
        guide: Prepares a mechanism for each target and price from public data alone, in the place of `mechanism`;
            None, the default, for no guide.

    Raises:
        SettingsError: `evaluation_seconds` is not a positive number.
    """

    candidates: CandidateRule = Product()
    utility: Utility = Gated()
    mechanism: Mechanism = Exponential()
    evaluation_seconds: float = 60
    guide: Guide | None = None

    def __post_init__(self) -> None:
        checked_seconds(self.evaluation_seconds, "evaluation_seconds")

    @property
    def draws_by(self) -> str:
        """The name of the mechanism, as a release states it."""
        return self.mechanism.name if self.guide is None else self.guide.name

    @property
    def reads_own(self) -> bool:
        """Whether a release is scored by the target's own edges, and by no other edge."""
        return self.guide is not None and self.guide.reads_own

    @property
    def rehearsal(self) -> Rehearsal:
        """What guesses and beliefs follow: the guide's rehearsal, or the default one where no guide has any."""
        guide = self.guide.rehearsal if isinstance(self.guide, OwnEdgeRehearsal) else self.guide
        return guide if isinstance(guide, Rehearsal) else REHEARSAL

    def prepare(
        self, context: PublicContext, candidates: Candidates, epsilon: Fraction, allowed: Bools | None = None
    ) -> Prepared:
        """How a release draws from these candidates at this price.

        Args:
            context: The public context.
            candidates: The public list of one target.
            epsilon: The price.
            allowed: Which candidates may be drawn; by default all.

        Returns:
            The guide's mechanism with its confidences or, without a guide, the method's own mechanism.

        Raises:
            SettingsError: The method's base measure has another length than the list.
            InputError: Some candidates may not be drawn, and the mechanism has no base measure to leave them out of.
        """
        if self.guide is not None:
            return self.guide.prepare(context, candidates, self.utility, epsilon, allowed)
        base = self.mechanism.base if isinstance(self.mechanism, Weighed) else ()
        if base and len(base) != len(candidates):
            raise SettingsError(
                f"the base measure has {len(base)} weights for {len(candidates)} candidates; match them."
            )
        return Prepared(self.mechanism if allowed is None else _only(self.mechanism, allowed))


def _only(mechanism: Mechanism, allowed: Bools) -> Mechanism:
    """The same mechanism with a base of 0 for candidates that are not allowed; the empty set if none is."""
    if not isinstance(mechanism, Weighed):
        raise InputError(f"avoiding and beyond need a mechanism with a base measure; {mechanism.name} has none.")
    base = np.where(allowed, lengths_of(mechanism.base, len(allowed)), 0)
    base[0] = max(base[0], int(not base.any()))
    return mechanism.under(tuple(base.tolist()))


def checked_seconds(value: float, argument: str) -> float:
    """A positive number."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        raise SettingsError(f"{argument} is {value!r}; give a number above 0.")
    return value


def going_beyond(answer: Intervention, method: Method) -> Method:
    """The same method for the next stage of a selection, on top of an earlier answer."""
    return replace(method, candidates=Beyond(answer, method.candidates))


def keeping_schema(method: Method | None, context: PublicContext) -> Method:
    """The method of a vault, by default the guided one; where features have a schema, every candidate keeps it."""
    if context.schema is None:
        return method or GUIDED
    if method is None:
        return GUIDED_RECOURSE
    rule = method.candidates
    return method if rule.keeps_schema else replace(method, candidates=WithinSchema(rule, rule.allowed))


def constraints_of(method: Method, context: PublicContext) -> Constraints:
    """What every answer by a method keeps to."""
    return Constraints(context, method.candidates.allowed, method.rehearsal.costs, method.utility.desired)


def constraints_digest(method: Method, context: PublicContext) -> str:
    """As certificates have it: empty where features have no schema, because version 0.1 printed none."""
    return "" if context.schema is None else constraints_of(method, context).digest


def dearest(method: Method) -> Mechanism:
    """The costliest mechanism that a method may draw with: a guide may prepare any subset selection."""
    return method.mechanism if method.guide is None else DEAREST


def public_digest(context: PublicContext, method: Method) -> str:
    """Names the public context and the method behind an answer."""
    return hashlib.sha256(f"{context.digest}\n{method!r}".encode()).hexdigest()


def former_digest(context: PublicContext, method: Method) -> str:
    """The digest that version 0.1 wrote for the same settings, whose defaults had other values and fewer fields."""
    text = PARTNERS.sub(r"Partners(away=8, towards=4, \1)", repr(method)).replace("doubt=None", "doubt=0.05")
    return hashlib.sha256(f"{context.digest}\n{text}".encode()).hexdigest()


PARTNERS = re.compile(r"Partners\(away=4, towards=2, (.*?), rivals=3, for_each_rival=2\)")
REHEARSAL = Rehearsal()
GUIDED = Method(SmallSets(), guide=REHEARSAL)
GUIDED_RECOURSE = Method(Recourse(), guide=REHEARSAL)
OWN_EDGES = Method(SmallSets(), guide=OwnEdgeRehearsal(REHEARSAL))
