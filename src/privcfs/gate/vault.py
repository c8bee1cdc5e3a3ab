"""One release, from public question to paid answer.

Zone: gate
Claim: each release is pure epsilon-DP for any two private graphs over the same public context, and is paid for,
    durably, before the private graph is read; what leaves depends on edges through the draw alone.
Why: candidates, their order, the grid and the mechanism are public; the charge precedes evaluation; a failed
    evaluation is drawn from as usual; the mechanism sees sealed scores and no graph. With `answer_seconds` an answer
    also waits for a public time, which hides how long evaluation took as far as the machine allows (docs/limits.md).
Check: tests/lab/claims/test_whole_release.py::test_the_release_is_private_for_edges_nodes_and_whole_graphs
"""

import secrets
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from fractions import Fraction
from math import inf
from threading import RLock
from time import monotonic, sleep
from typing import final

import numpy as np

from privcfs.errors import BadEpsilon, InputError, PrivcfsError, SettingsError
from privcfs.forks import Order, at_fork
from privcfs.gate.accounting import Balance, Limit
from privcfs.gate.contracts import FixedPrice
from privcfs.gate.guidance import row_zero
from privcfs.gate.ledger import open_ledger
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.mechanisms.mechanism import Weighed
from privcfs.gate.method import GUIDED, Method, checked_seconds, dearest
from privcfs.gate.opening import refuse_confusion, refuse_mismatch, try_model
from privcfs.gate.questions.confirm import ConfirmQuestion
from privcfs.gate.questions.question import OWNER, Asker, PublicSide, Question, checked_name
from privcfs.gate.questions.release import Earlier, ReleaseQuestion
from privcfs.gate.questions.select import SelectQuestion
from privcfs.gate.randomness import SystemRandomness
from privcfs.gate.storing import Storing
from privcfs.gate.turns import Turns
from privcfs.private.deadline import Deadline
from privcfs.private.graph import PrivateGraph
from privcfs.private.outcomes import evaluate
from privcfs.private.secrets import Secrets
from privcfs.private.utilities.utility import Scores
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext, Readable
from privcfs.public.epsilon import NANO, Price, parse_epsilon, show
from privcfs.public.head import Head
from privcfs.public.interventions import Intervention
from privcfs.public.release import Release
from privcfs.public.verdict import Selection, Verdict

LEAST_PRICE = "0.01"
MOST_SUGGESTIONS = 20
MOST_FAILURES = 1000  # kept for the owner
EVALUATION_SHARE = 0.8  # of a public answering time
SILENCE = RLock()  # the filter of warnings belongs to the whole process
ANSWERING = Turns()  # with a public answering time one answer follows another: waiting for it takes public time too
at_fork(Order.WARNINGS, before=SILENCE.acquire, in_parent=SILENCE.release, in_child=SILENCE.release)
at_fork(Order.ANSWERING, before=ANSWERING.acquire, in_parent=ANSWERING.release, in_child=ANSWERING.start_anew)


@final
class Vault:
    """Holds a private graph and lets out paid releases, one at a time."""

    __slots__ = ("_answer_seconds", "_failures", "_graph", "_ledger", "_randomness", "_readable", "_side", "_storing")

    def __init__(
        self,
        graph: PrivateGraph,
        context: PublicContext,
        *,
        ledger: str | Ledger,
        limit: Price | Limit | None = None,
        method: Method | None = None,
        simulation: bool = False,
        answer_seconds: float | None = None,
        secrets: Secrets | None = None,
        least_price: Price = LEAST_PRICE,
    ) -> None:
        """`ledger` is a URL, with `limit` where it may have to be made, or an open ledger, which has its own.

        What is in `secrets` decides in the place of the context's model or features, which then only guide; the promise
        covers it too. With `answer_seconds` every new answer takes that long, one after another in a process; an
        evaluation that needs more counts as failed. A question below `least_price` is refused: whatever an answer tells
        besides its draw, such as its time, is not to be had for nothing.
        """
        refuse_mismatch(graph, context, simulation)
        refuse_confusion(context, secrets)
        self._answer_seconds = None if answer_seconds is None else checked_seconds(answer_seconds, "answer_seconds")
        if not isinstance(ledger, str | Ledger):
            raise SettingsError(f"ledger is a {type(ledger).__name__}; write sqlite:///budget.db or open one first.")
        if isinstance(ledger, Ledger) and limit is not None:
            raise SettingsError("limit belongs to an open ledger already; pass a ledger or a limit, not both.")
        self._graph, self._readable = graph, context if secrets is None else secrets
        try_model(context, method or GUIDED, self._readable)
        cap = limit if isinstance(limit, Limit) or limit is None else Limit.of(limit)
        self._ledger = ledger if isinstance(ledger, Ledger) else open_ledger(ledger, cap)
        contract = self._ledger.limit.contract  # a ledger keeps its contract
        self._side = PublicSide(context, method or GUIDED, contract, parse_epsilon(least_price))
        self._storing = Storing(self._ledger)
        graph.bind(self._ledger.graph_id)
        self._randomness = SystemRandomness()
        self._failures: deque[str] = deque(maxlen=MOST_FAILURES)

    def release(
        self,
        target: int | str,
        epsilon: Price,
        *,
        analyst: str = OWNER,
        request_id: str | None = None,
        avoiding: Sequence[Intervention] = (),
        beyond: Intervention | None = None,
        cap: Fraction | None = None,
    ) -> Release:
        """One private counterfactual: checked, proposed, charged, evaluated, scored, drawn, in this order.

        The same analyst and request id return the same release and pay once, also after a crash. Nothing is drawn that
        shares an element with the interventions in `avoiding`. With an earlier answer as `beyond`, what is drawn
        contains it, or is the empty set: a selection in stages, each a release of its own. `cap` is what the analyst
        may spend in all, where that is less than the ledger's own limit.
        """
        asker = Asker(analyst, request_id, cap)
        question = ReleaseQuestion(self._side, asker, target, epsilon, Earlier(avoiding, beyond))
        return self._named(self._answers([question])[0])

    def release_all(
        self,
        questions: Sequence[tuple[int | str, Price, str | None]],
        *,
        analyst: str = OWNER,
        cap: Fraction | None = None,
    ) -> list[Release]:
        """Several releases (target, epsilon, request id), paid together or, where one does not fit, not at all."""
        asked = [
            ReleaseQuestion(self._side, Asker(analyst, name, cap), target, price) for target, price, name in questions
        ]
        if len({one.request.request_id for one in asked}) < len(asked):
            raise InputError("request ids must differ within a batch.")
        return [self._named(text) for text in self._answers(asked)]

    def try_out(self, target: int | str, epsilon: Price) -> Intervention:
        """What a release might look like: drawn as one would be, but on the public snapshot; costs nothing."""
        question = ReleaseQuestion(self._side, Asker(), target, epsilon)
        mechanism, snapshot = question.mechanism, PrivateGraph.from_snapshot(self.context.snapshot)
        with nullcontext() if self._answer_seconds is None else ANSWERING:  # or it would wait for private evaluations
            scores = self._scores(question, monotonic(), snapshot, self.context)
        drawn = question.candidates[mechanism.draw(scores, question.request.epsilon, self._randomness)]
        return self.context.named(drawn)

    def guess(self, target: int | str) -> Intervention:
        """The honest zero: the best guess from public data alone; costs nothing."""
        return row_zero(self.context, self.propose(target), self.method.utility)

    def cost(self, epsilon: Price) -> Fraction:
        """What a release at this price counts at most, in the unit of the ledger's contract; public."""
        return self._side.contract.cost(dearest(self.method), self._side.price(epsilon))

    def suggest(
        self, target: int | str, epsilon: Price, number: int, *, analyst: str = OWNER, request_id: str | None = None
    ) -> list[Release]:
        """Several releases that share no element, for at most one price in all.

        Each pays an equal part, rounded down to a decimal where the price cannot be divided: what is left over is not
        spent.
        """
        each, name = price_of_each(self._side, epsilon, number), request_id or secrets.token_hex(16)
        checked_name(f"{name}/{number}", "request_id")
        checked_name(analyst, "analyst")
        found: list[Release] = []
        for part in range(number):
            avoiding = [one.intervention for one in found if one.intervention.size]
            try:
                one = self.release(target, each, analyst=analyst, request_id=f"{name}/{part + 1}", avoiding=avoiding)
            except PrivcfsError as error:
                paid = f" {part} of {number} suggestions are paid and kept under request id {name}." if part else ""
                raise type(error)(f"{error}{paid}") from None
            found.append(one)
        return found

    def confirm(
        self,
        target: int | str,
        intervention: Intervention,
        epsilon: Price,
        *,
        analyst: str = OWNER,
        request_id: str | None = None,
    ) -> Verdict:
        """Whether an intervention really flips the decision: a paid answer, and a noisy one (randomised response)."""
        question = ConfirmQuestion(self._side, Asker(analyst, request_id), target, intervention, epsilon)
        return Verdict.from_json(self._answers([question])[0])

    def select(
        self, targets: Sequence[int | str], epsilon: Price, *, analyst: str = OWNER, request_id: str | None = None
    ) -> Selection:
        """One node of a public list, close calls being likelier: a paid choice of whom to explain."""
        question = SelectQuestion(self._side, Asker(analyst, request_id), targets, epsilon)
        return Selection.from_json(self._answers([question])[0])

    def propose(self, target: int | str) -> Candidates:
        """The public list that a release for this target would be drawn from; costs nothing."""
        found = self.method.candidates.propose(self.context, self.context.node(target))
        return replace(found, names=self.context.labels(found.nodes))

    def balance(self, analyst: str | None = None) -> Balance:
        """What is spent and left, in all or by one analyst."""
        return self._ledger.balance(analyst)

    def head(self) -> Head:
        """The ledger's newest row, to be kept elsewhere."""
        return self._ledger.head()

    @property
    def ledger(self) -> Ledger:
        """The account that pays for this vault's answers: the only one that a process should open for it."""
        return self._ledger

    @property
    def context(self) -> PublicContext:
        """The public side."""
        return self._side.context

    @property
    def method(self) -> Method:
        """The public choices behind each release."""
        return self._side.method

    @property
    def digest(self) -> str:
        """Names the public context and method; stands on each release."""
        return self._side.digest

    @property
    def failures(self) -> tuple[str, ...]:
        """Evaluations of this process that failed. For the owner's eyes: whether one fails can depend on edges."""
        return tuple(self._failures)

    def _answers(self, questions: Sequence[Question]) -> list[str]:
        """What the ledger holds for some questions in the end.

        Looking up refuses what does not fit before anything is prepared, and finds what is finished already.
        """
        known = self._ledger.look_up([question.request for question in questions])
        new = [question for question, text in zip(questions, known, strict=True) if text is None]
        fresh = iter(self._paid_answers(new) if new else ())
        return [next(fresh) if text is None else text for text in known]

    def _paid_answers(self, questions: Sequence[Question]) -> list[str]:
        """The method in its promised order: prepare, charge, evaluate and score, draw, store."""
        requests = [question.priced for question in questions]  # prepared from public data
        with self._storing.alone(requests) as answers:  # nobody else answers them meanwhile
            answers.found(self._ledger.charge_all(requests))  # all or none, durable before an edge is read
            for question, request in zip(questions, requests, strict=True):
                if answers.lacks(request):
                    with self._turn() as started:
                        scores = self._scores(question, started, self._graph, self._readable)
                        position = question.mechanism.draw(scores, request.epsilon, self._randomness)
                        answers.add(request, question.answer(position))  # kept until it is stored
            return answers.stored()

    @contextmanager
    def _turn(self) -> Iterator[float]:
        """The time at which an answer begins; with a public answering time, one follows another and takes that long."""
        if self._answer_seconds is None:
            yield monotonic()
            return
        with ANSWERING:
            started = monotonic()
            yield started
            sleep(max(started + self._answer_seconds - monotonic(), 0))

    def _scores(self, question: Question, started: float, graph: PrivateGraph, readable: Readable) -> Scores:
        """Sealed scores. A failed evaluation gets the public ones: a visible failure or warning would be a release."""
        fallback = question.fallback  # made beforehand, so that a failure takes no time of its own
        try:
            with SILENCE, np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                deadline = Deadline(self._time_to_evaluate(started))
                deadline.check()
                scores = question.score(lambda candidates: evaluate(graph, readable, candidates, deadline))
                deadline.check()
                return scores
        except (Exception, SystemExit) as error:
            target = self.context.label(question.request.target)
            self._failures.append(f"target {target}: {type(error).__name__}: {error}")
            return fallback

    def _time_to_evaluate(self, started: float) -> float:
        """What the method allows, and what leaves time for the draw before a public answering time."""
        public = inf if self._answer_seconds is None else EVALUATION_SHARE * self._answer_seconds
        return min(self.method.evaluation_seconds, started + public - monotonic())

    def _named(self, text: str) -> Release:
        """A stored release; version 0.1 stored no names."""
        release = Release.from_json(text)
        return release if release.labels else replace(release, labels=self.context.labels(release.nodes))


def price_of_each(side: PublicSide, epsilon: Price, number: int) -> Fraction:
    """What each of several suggestions pays; refuses what the method, the contract or the least price do not allow."""
    price = side.price(epsilon)
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number <= MOST_SUGGESTIONS:
        raise InputError(f"number is {number!r}; ask for 1 to {MOST_SUGGESTIONS} suggestions.")
    each = part_of(price, number)
    if each < side.least_price:
        raise BadEpsilon(
            f"epsilon {show(price)} leaves {show(each)} for each of {number} suggestions; the least price of an "
            f"answer here is {show(side.least_price)}."
        )
    if number > 1 and isinstance(side.contract, FixedPrice):
        raise InputError("suggestions cannot be had under a fixed price, which is for one answer at a time.")
    if number > 1 and side.method.guide is None and not isinstance(side.method.mechanism, Weighed):
        raise InputError(f"suggestions need a base measure; {side.method.mechanism.name} has none.")
    return each


def part_of(price: Fraction, number: int) -> Fraction:
    """An equal part as a decimal: exact where it is one, otherwise rounded down to thousandths, or to billionths."""
    part = price / number
    step = NANO if not NANO % part.denominator or part < Fraction(1, 1000) else 1000
    return Fraction(int(part * step), step)
