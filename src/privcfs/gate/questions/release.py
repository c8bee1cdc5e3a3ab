"""The question for one counterfactual.

Zone: gate
Claim: as question.py. With `avoiding`, candidates that share an element with earlier answers have probability 0; with
    `beyond`, so have candidates that do not contain that earlier answer, the empty set excepted.
Why: earlier answers are public, so leaving out what they name is a public base measure of the same mechanism. An
    answer is at most as long as the certificate of the empty set and the longest addition to it.
Check: tests/gate/test_asking.py::test_what_is_drawn_beyond_an_answer_contains_it_or_is_empty
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import final

import numpy as np

from privcfs.errors import InputError, PrivcfsError
from privcfs.gate.guidance import Bools, Prepared
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.method import Method, constraints_digest, dearest, going_beyond
from privcfs.gate.questions.question import (
    Asker,
    PublicSide,
    Question,
    checked_intervention,
    make_request,
)
from privcfs.private.own_reading import FarGraphs, failed_scores
from privcfs.private.reader import Reader
from privcfs.private.utilities.utility import Scores
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import Price
from privcfs.public.interventions import Intervention
from privcfs.public.per_context import per_context
from privcfs.public.release import Guarantee, Release

MOST_LEVELS = 20_000
SHORT = 2000  # candidates; the mechanisms of lists up to this length are kept
NOTHING: tuple[Intervention, ...] = ()


@final
@dataclass(frozen=True, slots=True)
class Earlier:
    """Earlier answers that a release avoids, and one that it goes beyond."""

    avoiding: Sequence[Intervention] = NOTHING
    beyond: Intervention | None = None


@final
class ReleaseQuestion(Question):
    """Which small change flips the decision about one node?"""

    def __init__(
        self, side: PublicSide, asker: Asker, target: int | str, epsilon: Price, earlier: Earlier | None = None
    ) -> None:
        """Checks everything public; prepares nothing yet."""
        self.side, self._earlier = side, earlier or Earlier()
        node, price = side.context.node(target), side.price(epsilon)
        beyond, avoiding = self._earlier.beyond, self._earlier.avoiding
        self._method = side.method
        self.nodes = (node,) if self._method.reads_own else ()
        if beyond is not None:
            self._method = going_beyond(checked_intervention(beyond, side.context), side.method)
            refuse_many_levels(self._method, InputError)
            side = replace(side, method=self._method)  # whose digests name the stage
        self.request = replace(
            make_request(side, asker, node, price, dearest(self._method)),
            mechanism=self._method.draws_by,
            question=f"avoiding {[one.in_numbers() for one in avoiding]}" if avoiding else "",
            nodes=self.nodes,
        )

    @property
    def candidates(self) -> Candidates:
        """The public list."""
        return self._laid_out[0]

    @cached_property
    def mechanism(self) -> Mechanism:
        """What is prepared for the list, without what earlier answers rule out."""
        return self._laid_out[1].mechanism

    def confidence(self, position: int) -> float | None:
        """The public confidence in a candidate, given that it is drawn; None where nothing is believed."""
        confidences = self._laid_out[1].confidences
        return confidences[position] if confidences else None

    @property
    def expected(self) -> float | None:
        """How likely a release is to be valid, judged from public data; None where nothing is believed."""
        return self._laid_out[1].expected

    @cached_property
    def _far_graphs(self) -> FarGraphs:
        """Public; what it needs was learned when the draw was prepared."""
        return self._method.rehearsal.far_graphs(self.side.context, self.candidates, self._method.utility)

    @cached_property
    def _accounts(self) -> str:
        """Read once, so that all possible answers to one question say the same."""
        return self.side.accounts() if self.nodes else ""

    @cached_property
    def _laid_out(self) -> tuple[Candidates, Prepared]:
        return lay_out(self._method, self.side.context, self.request.target, self.request.epsilon, self._earlier)

    @cached_property
    def priced(self) -> Request:
        """As question.py says."""
        cost = self.side.contract.cost(self.mechanism, self.request.epsilon)
        room = len(self.answer(0)) + longest_addition(self.candidates, self.side.context)
        return replace(self.request, cost=cost, room=room)

    @cached_property
    def fallback(self) -> Scores:
        """The utility's own, or those of own-edge reading."""
        return failed_scores(self.candidates) if self.nodes else self._method.utility.failed(self.candidates)

    def score(self, reader: Reader) -> Scores:
        """By the method's utility on the whole graph or, reading own edges alone, by the graphs around them."""
        if not self.nodes:
            return self._method.utility.score(reader.whole(self.candidates))
        return reader.own(self.candidates, self._far_graphs).scores()

    def answer(self, position: int) -> str:
        """A certificate."""
        request, context = self.request, self.side.context
        drawn, span = self.candidates[position], self.fallback.grid.range
        return Release(
            target=request.target,
            intervention=drawn,
            epsilon=request.epsilon,
            mechanism=request.mechanism,
            guarantee=Guarantee(request.epsilon, span, request.adjacency),
            context_digest=request.context_digest,
            assumptions=tuple(sorted(item.name for item in context.assumptions)),
            analyst=request.analyst,
            request_id=request.request_id,
            labels=context.labels({request.target, *drawn.nodes}),
            confidence=self.confidence(position),
            accounts=self._accounts,
            constraints=constraints_digest(self._method, context),
        ).to_json()


def lay_out(
    method: Method, context: PublicContext, target: int, price: Fraction, earlier: Earlier = Earlier()
) -> tuple[Candidates, Prepared]:
    """The public list of a target, and how a release draws from it at this price."""
    candidates = method.candidates.propose(context, target)
    allowed = permitted(candidates, earlier)
    if allowed is None and len(candidates) <= SHORT:
        return candidates, _prepared(context, method, candidates, price)
    return candidates, method.prepare(context, candidates, price, allowed)


@per_context(maxsize=512)
def _prepared(context: PublicContext, method: Method, candidates: Candidates, price: Fraction) -> Prepared:
    """Kept for short lists. What is kept is public, and so is the time that it saves."""
    return method.prepare(context, candidates, price)


def permitted(candidates: Candidates, earlier: Earlier) -> Bools | None:
    """Which candidates earlier, public answers leave; None if there are none.

    With `avoiding`, candidates that share no pair and no feature with them; with `beyond`, candidates that contain it.
    The empty set is always left.
    """
    if not earlier.avoiding and earlier.beyond is None:
        return None
    taken = {subject for one in earlier.avoiding for subject in one.subjects}
    start = earlier.beyond.operations if earlier.beyond is not None else frozenset()
    left = [not one.size or (not one.subjects & taken and start <= one.operations) for one in candidates]
    return np.array(left, np.bool_)


def refuse_many_levels(method: Method, fault: type[PrivcfsError]) -> None:
    """Refuses a utility with so many levels that drawing would take longer than anyone waits."""
    highest = method.utility.grid(method.candidates.caps).levels[-1]
    if highest > MOST_LEVELS:
        raise fault(
            f"scores would have {highest} levels, of at most {MOST_LEVELS}; choose simpler utility weights or "
            "smaller answers."
        )


def longest_addition(candidates: Candidates, context: PublicContext) -> int:
    """Upper bound on the letters that a candidate adds to the certificate of the empty set; public."""
    nodes = {node for pair in candidates.deletions + candidates.additions for node in pair}
    number = max((len(str(one)) for one in (*nodes, *candidates.features)), default=0)
    name = max((len(json.dumps(context.label(node))) for node in nodes), default=0)
    pair = len("[,],") + 2 * number + 2 * (len('"":,') + number + name)
    pairs, masks = (max(map(len, sets)) for sets in (candidates.pair_sets, candidates.feature_sets))
    changes = sorted(len(json.dumps(one.change.to_dict())) for one in candidates.changes)[-masks:] if masks else []
    changed = sum(changes) + len(changes) * len(",") + len('"change":[],') if changes else 0
    return pairs * pair + masks * (number + len(",")) + changed
