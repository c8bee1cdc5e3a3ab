"""One release, from public question to paid answer.

Zone: gate
Claim: each release is pure epsilon-DP for any two private graphs over the same public context, and is paid for,
    durably, before the private graph is read; what leaves depends on edges through the draw alone.
Why: candidates, their order, the grid and the mechanism are public; the charge precedes evaluation; a failed
    evaluation is drawn from as usual; the mechanism sees sealed scores and no graph. With `answer_seconds` an answer
    also waits for a public time, which hides how long evaluation took as far as the machine allows (docs/limits.md).
Check: tests/claims/test_whole_release.py::test_the_release_is_private_for_edges_nodes_and_whole_graphs
"""

import hashlib
import os
import secrets
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from math import inf
from threading import RLock
from time import monotonic, sleep
from typing import NamedTuple, final

import numpy as np

from privcfs.errors import BackboneError, BadEpsilon, InputError, PrivcfsError, SettingsError, SimulatedSnapshot
from privcfs.gate.accounting import Balance, Limit
from privcfs.gate.asking import (
    CLOSE_CALL,
    CLOSENESS,
    MOST_SUGGESTIONS,
    YES_OR_NO,
    Asked,
    alone,
    known,
    longest_addition,
    part_of,
    says,
    within,
    without,
)
from privcfs.gate.contracts import FixedPrice
from privcfs.gate.guidance import row_zero
from privcfs.gate.ledger import open_ledger
from privcfs.gate.ledger.ledger import Ledger, Request
from privcfs.gate.mechanisms.mechanism import Mechanism, Weighed
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.gate.method import GUIDED, Method, checked_seconds, going_beyond
from privcfs.gate.randomness import SystemRandomness
from privcfs.gate.storing import Storing
from privcfs.gate.turns import Turns
from privcfs.private.deadline import Deadline
from privcfs.private.graph import PrivateGraph
from privcfs.private.outcomes import evaluate
from privcfs.private.secrets import Secrets
from privcfs.private.utilities.utility import Scores
from privcfs.public.assumptions import Assumption
from privcfs.public.candidates.candidates import Candidates, Caps
from privcfs.public.context import PublicContext, Readable
from privcfs.public.epsilon import Price, parse_epsilon, show
from privcfs.public.head import Head
from privcfs.public.interventions import Intervention
from privcfs.public.release import Guarantee, Release, adjacency_of
from privcfs.public.verdict import Selection, Verdict

OWNER = "owner"
LEAST_PRICE = "0.01"
DEAREST = SubsetSelection(Fraction(1, 2))  # of all that a guide may prepare
MOST_LEVELS = 20_000
SHORT = 2000  # candidates of a list whose mechanism is kept
MOST_FAILURES = 1000  # kept for the owner
EVALUATION_SHARE = 0.8  # of a public answering time
SILENCE = RLock()  # the filter of warnings belongs to the whole process; a fork waits, or its child would wait forever
ANSWERING = Turns()  # with a public answering time one answer follows another: waiting for it takes public time too
os.register_at_fork(before=SILENCE.acquire, after_in_parent=SILENCE.release, after_in_child=SILENCE.release)
# Registered last, taken first, as in a release.
os.register_at_fork(before=ANSWERING.acquire, after_in_parent=ANSWERING.release, after_in_child=ANSWERING.start_anew)


@final
class Ready(NamedTuple):
    """A question that can be paid: what it costs, at which length its answer is stored, and how that is drawn."""

    request: Request
    draw: Callable[[float], str]


@final
class Question(NamedTuple):
    """A question as it was asked, at the most that it may cost, and how it is prepared from public data."""

    request: Request
    prepare: Callable[[], Ready]


@final
class Vault:
    """Holds a private graph and lets out paid releases, one at a time."""

    __slots__ = (
        *("_adjacency", "_answer_seconds", "_context", "_contract", "_digest", "_failures", "_graph", "_ledger"),
        *("_least_price", "_method", "_randomness", "_readable", "_storing"),
    )

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
        _refuse_mismatch(graph, context, simulation)
        _refuse_confusion(context, secrets)
        self._readable: Readable = context if secrets is None else secrets
        self._adjacency = adjacency_of(context.assumptions)
        self._answer_seconds = None if answer_seconds is None else checked_seconds(answer_seconds, "answer_seconds")
        if not isinstance(ledger, str | Ledger):
            raise SettingsError(f"ledger is a {type(ledger).__name__}; write sqlite:///budget.db or open one first.")
        if isinstance(ledger, Ledger) and limit is not None:
            raise SettingsError("limit belongs to an open ledger already; pass a ledger or a limit, not both.")
        self._graph, self._context, self._method = graph, context, method or GUIDED
        _rehearse(context, self._method, self._readable)
        self._digest = public_digest(context, self._method)
        cap = limit if isinstance(limit, Limit) or limit is None else Limit.of(limit)
        self._ledger = ledger if isinstance(ledger, Ledger) else open_ledger(ledger, cap)
        self._contract = self._ledger.limit.contract  # a ledger keeps its contract
        self._least_price = parse_epsilon(least_price)
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
        question = self._question(target, epsilon, analyst, request_id, avoiding, beyond, cap)
        return self._named(self._answers([question])[0])

    def release_all(
        self,
        questions: Sequence[tuple[int | str, Price, str | None]],
        *,
        analyst: str = OWNER,
        cap: Fraction | None = None,
    ) -> list[Release]:
        """Several releases (target, epsilon, request id), paid together or, where one does not fit, not at all."""
        asked = [self._question(target, price, analyst, name, cap=cap) for target, price, name in questions]
        if len({one.request.request_id for one in asked}) < len(asked):
            raise InputError("request ids must differ within a batch.")
        return [self._named(text) for text in self._answers(asked)]

    def try_out(self, target: int | str, epsilon: Price) -> Intervention:
        """What a release might look like: drawn as one would be, but on the public snapshot; costs nothing."""
        node, price = self._context.node(target), self._price(epsilon)
        candidates, mechanism = _laid_out(self._method, self._context, node, price)
        snapshot = PrivateGraph.from_snapshot(self._context.snapshot)
        context, utility = self._context, self._method.utility
        on_snapshot = lambda limit: utility.score(evaluate(snapshot, context, candidates, limit))  # noqa: E731
        with nullcontext() if self._answer_seconds is None else ANSWERING:  # or it would wait for private evaluations
            scores = self._evaluated(node, utility.failed(candidates), monotonic(), on_snapshot)
        return context.named(candidates[mechanism.draw(scores, price, self._randomness)])

    def guess(self, target: int | str) -> Intervention:
        """The honest zero: the best guess from public data alone; costs nothing."""
        return row_zero(self._context, self.propose(target), self._method.utility)

    def cost(self, epsilon: Price) -> Fraction:
        """What a release at this price counts at most, in the unit of the ledger's contract; public."""
        return self._contract.cost(dearest(self._method), self._price(epsilon))

    def suggest(
        self, target: int | str, epsilon: Price, number: int, *, analyst: str = OWNER, request_id: str | None = None
    ) -> list[Release]:
        """Several releases that share no element, for at most one price in all.

        Each pays an equal part, rounded down to a decimal where the price cannot be divided: what is left over is not
        spent.
        """
        price, name = self._price(epsilon), request_id or secrets.token_hex(16)
        if isinstance(number, bool) or not isinstance(number, int) or not 0 < number <= MOST_SUGGESTIONS:
            raise InputError(f"number is {number!r}; ask for 1 to {MOST_SUGGESTIONS} suggestions.")
        each = part_of(price, number)
        if each < self._least_price:
            raise BadEpsilon(
                f"epsilon {show(price)} leaves {show(each)} for each of {number} suggestions; the least price of an "
                f"answer here is {show(self._least_price)}."
            )
        if number > 1 and isinstance(self._contract, FixedPrice):
            raise InputError("suggestions cannot be had under a fixed price, which is for one answer at a time.")
        if number > 1 and self._method.guide is None and not isinstance(self._method.mechanism, Weighed):
            raise InputError(f"suggestions need a base measure; {self._method.mechanism.name} has none.")
        _name(f"{name}/{number}", "request_id")
        _name(analyst, "analyst")
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
        node, price = self._context.node(target), self._price(epsilon)
        candidates = alone(intervention, node, self._context)
        asked = Asked("randomised response", f"does it flip: {intervention.in_numbers()}")
        request = self._request(node, price, asked, YES_OR_NO, analyst, request_id)
        guarantee = Guarantee(price, Fraction(1), self._adjacency)
        labels = self._context.labels({node, *intervention.nodes})
        yes, no = (
            Verdict(node, intervention, flips, guarantee, request.request_id, labels).to_json()
            for flips in (True, False)
        )

        def draw(started: float) -> str:
            truth = self._evaluated(node, says(False), started, lambda limit: self._flips(candidates, limit))
            return yes if YES_OR_NO.draw(truth, price, self._randomness) == 0 else no

        ready = Ready(replace(request, room=max(len(yes), len(no))), draw)
        return Verdict.from_json(self._answers([Question(request, lambda: ready)])[0])

    def select(
        self, targets: Sequence[int | str], epsilon: Price, *, analyst: str = OWNER, request_id: str | None = None
    ) -> Selection:
        """One node of a public list, close calls being likelier: a paid choice of whom to explain."""
        nodes, price = [self._context.node(target) for target in targets], self._price(epsilon)
        if len(set(nodes)) < max(len(nodes), 1):
            raise InputError("targets must be a list of different nodes, at least one.")
        asked = Asked("close call by matched profile", f"one of {nodes}")
        request = self._request(nodes[0], price, asked, CLOSE_CALL, analyst, request_id)
        guarantee = Guarantee(price, Fraction(1), self._adjacency)
        answers = [
            Selection(node, guarantee, request.request_id, self._context.labels([node])).to_json() for node in nodes
        ]

        def draw(started: float) -> str:
            far = Scores(np.zeros(len(nodes), np.int64), CLOSENESS)
            scores = self._evaluated(nodes[0], far, started, lambda limit: self._closeness(nodes, limit))
            return answers[CLOSE_CALL.draw(scores, price, self._randomness)]

        ready = Ready(replace(request, room=max(map(len, answers))), draw)
        return Selection.from_json(self._answers([Question(request, lambda: ready)])[0])

    def propose(self, target: int | str) -> Candidates:
        """The public list that a release for this target would be drawn from; costs nothing."""
        found = self._method.candidates.propose(self._context, self._context.node(target))
        return replace(found, names=self._context.labels(found.nodes))

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
        return self._context

    @property
    def method(self) -> Method:
        """The public choices behind each release."""
        return self._method

    @property
    def digest(self) -> str:
        """Names the public context and method; stands on each release."""
        return self._digest

    @property
    def failures(self) -> tuple[str, ...]:
        """Evaluations of this process that failed. For the owner's eyes: whether one fails can depend on edges."""
        return tuple(self._failures)

    def _price(self, epsilon: Price) -> Fraction:
        """The price of a question, if it is not below the least."""
        price = parse_epsilon(epsilon)
        if price < self._least_price:
            raise BadEpsilon(
                f"epsilon is {show(price)}; the least price of an answer here is {show(self._least_price)}."
            )
        return price

    def _question(
        self,
        target: int | str,
        epsilon: Price,
        analyst: str,
        request_id: str | None,
        avoiding: Sequence[Intervention] = (),
        beyond: Intervention | None = None,
        cap: Fraction | None = None,
    ) -> Question:
        """The question at the most that it may cost, and how it is prepared; everything public is checked here."""
        node, price = self._context.node(target), self._price(epsilon)
        method = self._method if beyond is None else going_beyond(known(beyond, self._context), self._method)
        if beyond is not None:
            refuse_many_levels(method, InputError)
        named = f"avoiding {[one.in_numbers() for one in avoiding]}" if avoiding else ""
        digest = self._digest if beyond is None else public_digest(self._context, method)
        asked = Asked(method.draws_by, named, digest)
        request = replace(self._request(node, price, asked, dearest(method), analyst, request_id), cap=cap)

        def prepare() -> Ready:
            candidates, prepared = _laid_out(method, self._context, node, price)
            mechanism = within(without(prepared, candidates, avoiding), candidates, beyond)
            blank = len(self._certify(request, candidates, 0).to_json())
            room = blank + longest_addition(candidates, self._context)
            fallback = method.utility.failed(candidates)

            def draw(started: float) -> str:
                scores = self._evaluated(node, fallback, started, lambda limit: self._scores(candidates, limit))
                drawn = mechanism.draw(scores, price, self._randomness)
                return self._certify(request, candidates, drawn).to_json()

            return Ready(replace(request, cost=self._contract.cost(mechanism, price), room=room), draw)

        return Question(request, prepare)

    def _request(
        self, node: int, price: Fraction, asked: Asked, mechanism: Mechanism, analyst: str, request_id: str | None
    ) -> Request:
        """The checked question; every refusal here is about public input."""
        return Request(
            analyst=_name(analyst, "analyst"),
            request_id=secrets.token_hex(16) if request_id is None else _name(request_id, "request_id"),
            target=node,
            epsilon=price,
            context_digest=asked.digest or self._digest,
            mechanism=asked.mechanism,
            adjacency=self._adjacency,
            cost=self._contract.cost(mechanism, price),
            question=asked.question,
        )

    def _answers(self, questions: Sequence[Question]) -> list[str]:
        """What the ledger holds for some questions: looked up, prepared, charged all or none, drawn, stored, read back.

        Looking up refuses what does not fit before anything is prepared, and finds what is finished already.
        """
        known = self._ledger.look_up([one.request for one in questions])
        ready = [one.prepare() for one, text in zip(questions, known, strict=True) if text is None]
        fresh = iter(self._paid_answers(ready) if ready else ())
        return [next(fresh) if text is None else text for text in known]

    def _paid_answers(self, ready: Sequence[Ready]) -> list[str]:
        """Nobody else answers these requests meanwhile, and what is drawn is kept until it is stored."""
        requests = [one.request for one in ready]
        with self._storing.alone(requests) as answers:
            answers.found(self._ledger.charge_all(requests))
            for one in ready:
                if answers.lacks(one.request):
                    with nullcontext() if self._answer_seconds is None else ANSWERING:
                        started = monotonic()
                        answers.add(one.request, one.draw(started))
                        if self._answer_seconds is not None:
                            sleep(max(started + self._answer_seconds - monotonic(), 0))
            return answers.stored()

    def _evaluated(
        self, target: int, fallback: Scores, started: float, evaluated: Callable[[Deadline], Scores]
    ) -> Scores:
        """Sealed scores. A failed evaluation gets the public ones: a visible failure or warning would be a release."""
        try:
            with SILENCE, np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                deadline = Deadline(self._time_to_evaluate(started))
                deadline.check()
                scores = evaluated(deadline)
                deadline.check()
                return scores
        except (Exception, SystemExit) as error:
            self._failures.append(f"target {self._context.label(target)}: {type(error).__name__}: {error}")
            return fallback

    def _scores(self, candidates: Candidates, deadline: Deadline) -> Scores:
        return self._method.utility.score(evaluate(self._graph, self._readable, candidates, deadline))

    def _flips(self, candidates: Candidates, deadline: Deadline) -> Scores:
        """The last candidate is the intervention as a whole."""
        outcomes = evaluate(self._graph, self._readable, candidates, deadline)
        return says(bool(self._method.utility.valid(outcomes)[-1]))

    def _closeness(self, nodes: list[int], deadline: Deadline) -> Scores:
        """Tenths by which each node's margin falls short of certainty."""
        alike = [evaluate(self._graph, self._readable, Candidates(node, Caps(0, 0)), deadline) for node in nodes]
        tenths = [int(10 * (1 - one.margins()[0])) for one in alike]
        return Scores(np.clip(np.array(tenths, np.int64), 0, 10), CLOSENESS)

    def _time_to_evaluate(self, started: float) -> float:
        """What the method allows, and what leaves time for the draw before a public answering time."""
        public = inf if self._answer_seconds is None else EVALUATION_SHARE * self._answer_seconds
        return min(self._method.evaluation_seconds, started + public - monotonic())

    def _certify(self, request: Request, candidates: Candidates, drawn: int) -> Release:
        return Release(
            target=request.target,
            intervention=candidates[drawn],
            epsilon=request.epsilon,
            mechanism=request.mechanism,
            guarantee=Guarantee(request.epsilon, self._method.utility.grid(candidates.caps).range, self._adjacency),
            context_digest=request.context_digest,
            assumptions=tuple(sorted(item.name for item in self._context.assumptions)),
            analyst=request.analyst,
            request_id=request.request_id,
            labels=self._context.labels({request.target, *candidates[drawn].nodes}),
        )

    def _named(self, text: str) -> Release:
        """A stored release; version 0.1 stored no names."""
        release = Release.from_json(text)
        return release if release.labels else replace(release, labels=self._context.labels(release.nodes))


def refuse_many_levels(method: Method, fault: type[PrivcfsError]) -> None:
    """A utility with too many levels would take longer to draw from than anyone waits."""
    highest = method.utility.grid(method.candidates.caps).levels[-1]
    if highest > MOST_LEVELS:
        raise fault(
            f"scores would have {highest} levels, of at most {MOST_LEVELS}; choose simpler utility weights or "
            "smaller answers."
        )


def _laid_out(method: Method, context: PublicContext, node: int, price: Fraction) -> tuple[Candidates, Mechanism]:
    """The public list, and what draws from it."""
    candidates = method.candidates.propose(context, node)
    prepare = _prepared if len(candidates) <= SHORT else _prepared.__wrapped__
    return candidates, prepare(method, context, candidates, price)


@lru_cache(maxsize=512)
def _prepared(method: Method, context: PublicContext, candidates: Candidates, price: Fraction) -> Mechanism:
    """Kept for short lists. What is kept is public, and so is the time that it saves."""
    return method.prepare(context, candidates, price)


def dearest(method: Method) -> Mechanism:
    """What counts most of what a method may draw with: a guide may prepare any subset selection."""
    return method.mechanism if method.guide is None else DEAREST


def public_digest(context: PublicContext, method: Method) -> str:
    """Names everything public behind a release."""
    return hashlib.sha256(f"{context.digest}\n{method!r}".encode()).hexdigest()


def verify(release: Release, ledger: Ledger, context: PublicContext, method: Method) -> dict[str, bool]:
    """What holds of a certificate. Reads no edge; the ledger's chain was checked when the ledger was opened."""
    stored = ledger.released(release.analyst, release.request_id)
    proposed = method.candidates.propose(context, context.node(release.target))
    texts = release.to_json(), replace(release, labels={}).to_json()  # version 0.1 stored no names, but printed them
    return {
        "the ledger holds this release, word for word": stored in texts,
        "the names are this vault's": release.labels in ({}, context.labels(release.nodes)),
        "public context and method are this vault's": release.context_digest == public_digest(context, method),
        "the intervention is on the public list": release.intervention in proposed,
        "the price is the one guaranteed": release.epsilon == release.guarantee.epsilon,
    }


def _refuse_mismatch(graph: PrivateGraph, context: PublicContext, simulation: bool) -> None:
    if graph.number_of_nodes != context.number_of_nodes:
        raise SettingsError(
            f"number_of_nodes is {graph.number_of_nodes}, but features has {context.number_of_nodes} rows; match them."
        )
    if Assumption.SNAPSHOT_SIMULATED in context.assumptions and not simulation:
        raise SimulatedSnapshot(
            "snapshot was drawn from private edges for an experiment and protects nobody; give a snapshot that was "
            "public beforehand. Experiments say simulation=True."
        )


def _refuse_confusion(context: PublicContext, secrets: Secrets | None) -> None:
    """The assumptions on a release must say what is secret besides edges."""
    hidden = {
        Assumption.MODEL_SECRET: secrets is not None and secrets.backbone is not context.backbone,
        Assumption.FEATURES_SECRET: secrets is not None and secrets.features is not context.features,
    }
    for assumption, is_secret in hidden.items():
        if is_secret != (assumption in context.assumptions):
            what = "keeps secret what the context calls public" if is_secret else "lacks what the context calls secret"
            raise SettingsError(
                f"vault {what} ({assumption.name}); give PublicContext the matching assumptions=privcfs.hiding(...)."
            )


def _rehearse(context: PublicContext, method: Method, readable: Readable) -> None:
    """Finds faults of model and method on public data, before they could cost budget."""
    module = getattr(readable.backbone, "module", None)
    if module is not None and any(getattr(layer, "cached", False) is True for layer in module.modules()):
        raise BackboneError(
            "backbone has a layer with cached=True, which answers for the graph that it saw first, maybe a private "
            "one; build it with cached=False and load the weights."
        )
    refuse_many_levels(method, SettingsError)
    snapshot = PrivateGraph.from_snapshot(context.snapshot)
    try:
        proposed = method.candidates.propose(context, 0)
        few = replace(proposed, pair_sets=proposed.pair_sets[:3], feature_sets=proposed.feature_sets[:3])
        first, second = (evaluate(snapshot, readable, few, Deadline(600)) for _ in range(2))
        method.utility.score(first)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise BackboneError(f"backbone cannot be evaluated on the public snapshot ({reason}); check it.") from error
    if np.abs(first.logits - second.logits).max() > 1e-4:
        raise BackboneError("backbone says something else each time; freeze it (no dropout, no sampling).")


def _name(text: str, argument: str) -> str:
    if not isinstance(text, str) or not 0 < len(text) <= 200 or not text.isprintable():
        raise InputError(f"{argument} must be printable text of 1 to 200 characters.")
    return text
