"""The question for one counterfactual.

Zone: gate
Claim: as question.py. With `avoiding`, candidates that share an element with earlier answers have probability 0; with
    `beyond`, so have candidates that do not contain that earlier answer, the empty set excepted.
Why: earlier answers are public, so leaving out what they name is a public base measure of the same mechanism. An
    answer is at most as long as the certificate of the empty set and the longest addition to it.
Check: tests/gate/test_asking.py::test_what_is_drawn_beyond_an_answer_contains_it_or_is_empty
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import final

from privcfs.errors import InputError, PrivcfsError
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.mechanisms.mechanism import Mechanism, Weighed, lengths_of
from privcfs.gate.method import Method, dearest, going_beyond, public_digest
from privcfs.gate.questions.question import (
    Asker,
    Evaluate,
    PublicSide,
    Question,
    checked_intervention,
    make_request,
)
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
        if beyond is not None:
            self._method = going_beyond(checked_intervention(beyond, side.context), side.method)
            refuse_many_levels(self._method, InputError)
        self.request = replace(
            make_request(side, asker, node, price, dearest(self._method)),
            mechanism=self._method.draws_by,
            context_digest=public_digest(side.context, self._method),
            question=f"avoiding {[one.in_numbers() for one in avoiding]}" if avoiding else "",
        )

    @property
    def candidates(self) -> Candidates:
        """The public list."""
        return self._laid_out[0]

    @cached_property
    def mechanism(self) -> Mechanism:
        """What is prepared for the list, under a base measure that leaves out what earlier answers rule out."""
        candidates, prepared = self._laid_out
        remaining = without(prepared, candidates, self._earlier.avoiding)
        return within(remaining, candidates, self._earlier.beyond)

    @cached_property
    def _laid_out(self) -> tuple[Candidates, Mechanism]:
        return lay_out(self._method, self.side.context, self.request.target, self.request.epsilon)

    @cached_property
    def priced(self) -> Request:
        """As question.py says."""
        cost = self.side.contract.cost(self.mechanism, self.request.epsilon)
        room = len(self.answer(0)) + longest_addition(self.candidates, self.side.context)
        return replace(self.request, cost=cost, room=room)

    @property
    def fallback(self) -> Scores:
        """The utility's own."""
        return self._method.utility.failed(self.candidates)

    def score(self, evaluate: Evaluate) -> Scores:
        """By the method's utility."""
        return self._method.utility.score(evaluate(self.candidates))

    def answer(self, position: int) -> str:
        """A certificate."""
        request, context = self.request, self.side.context
        drawn, span = self.candidates[position], self._method.utility.grid(self.candidates.caps).range
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
        ).to_json()


def lay_out(method: Method, context: PublicContext, target: int, price: Fraction) -> tuple[Candidates, Mechanism]:
    """The public list of a target, and the mechanism that is prepared to draw from it at this price."""
    candidates = method.candidates.propose(context, target)
    prepare = _prepared if len(candidates) <= SHORT else _prepared.__wrapped__
    return candidates, prepare(context, method, candidates, price)


@per_context(maxsize=512)
def _prepared(context: PublicContext, method: Method, candidates: Candidates, price: Fraction) -> Mechanism:
    """Kept for short lists. What is kept is public, and so is the time that it saves."""
    return method.prepare(context, candidates, price)


def refuse_many_levels(method: Method, fault: type[PrivcfsError]) -> None:
    """Refuses a utility with so many levels that drawing would take longer than anyone waits."""
    highest = method.utility.grid(method.candidates.caps).levels[-1]
    if highest > MOST_LEVELS:
        raise fault(
            f"scores would have {highest} levels, of at most {MOST_LEVELS}; choose simpler utility weights or "
            "smaller answers."
        )


def without(mechanism: Mechanism, candidates: Candidates, avoiding: Sequence[Intervention]) -> Mechanism:
    """The same mechanism with a base of 0 for candidates that share an element with earlier, public answers."""
    if not avoiding:
        return mechanism
    taken = {element for one in avoiding for element in _elements(one)}
    return _only(mechanism, candidates, lambda one: not _elements(one) & taken, "avoiding")


def within(mechanism: Mechanism, candidates: Candidates, beyond: Intervention | None) -> Mechanism:
    """The same mechanism with a base of 0 for candidates that do not contain an earlier, public answer."""
    if beyond is None:
        return mechanism
    start = _elements(beyond)
    return _only(mechanism, candidates, lambda one: not one.size or start <= _elements(one), "beyond")


def _only(
    mechanism: Mechanism, candidates: Candidates, allowed: Callable[[Intervention], bool], argument: str
) -> Mechanism:
    if not isinstance(mechanism, Weighed):
        raise InputError(f"{argument} needs a mechanism with a base measure; {mechanism.name} has none.")
    lengths = lengths_of(mechanism.base, len(candidates)).tolist()
    base = [length if allowed(one) else 0 for one, length in zip(candidates, lengths, strict=True)]
    base[0] = max(base[0], int(not any(base)))
    return mechanism.under(tuple(base))


def _elements(one: Intervention) -> set[tuple[str, object]]:
    return {(kind, element) for kind in ("delete", "add", "mask") for element in getattr(one, kind)}


def longest_addition(candidates: Candidates, context: PublicContext) -> int:
    """Upper bound on the letters that a candidate adds to the certificate of the empty set; public."""
    nodes = {node for pair in candidates.deletions + candidates.additions for node in pair}
    number = max((len(str(one)) for one in (*nodes, *candidates.features)), default=0)
    name = max((len(json.dumps(context.label(node))) for node in nodes), default=0)
    pair = len("[,],") + 2 * number + 2 * (len('"":,') + number + name)
    pairs, masks = (max(map(len, sets)) for sets in (candidates.pair_sets, candidates.feature_sets))
    return pairs * pair + masks * (number + len(","))
