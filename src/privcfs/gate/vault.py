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
from contextlib import nullcontext
from dataclasses import dataclass, replace
from threading import RLock
from time import monotonic, sleep
from typing import final

import numpy as np

from privcfs.errors import BackboneError, InputError, SettingsError, SimulatedSnapshot
from privcfs.gate.accounting import Balance, Limit
from privcfs.gate.ledger import open_ledger
from privcfs.gate.ledger.ledger import Head, Ledger, Request
from privcfs.gate.mechanisms.exponential import Exponential
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.randomness import SystemRandomness
from privcfs.private.deadline import Deadline
from privcfs.private.graph import PrivateGraph
from privcfs.private.outcomes import evaluate
from privcfs.private.utilities.gated import Gated
from privcfs.private.utilities.utility import Scores, Utility
from privcfs.public.assumptions import Assumption
from privcfs.public.candidates.candidates import CandidateRule, Candidates
from privcfs.public.candidates.product import Product
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import Price, parse_epsilon
from privcfs.public.release import ADJACENCY, Guarantee, Release

OWNER = "owner"
MOST_LEVELS = 20_000
EVALUATION_SHARE = 0.8  # of a public answering time
SILENCE = RLock()  # the filter of warnings belongs to the whole process; a fork waits, or its child would wait forever
ANSWERING = RLock()  # with a public answering time one answer follows another: waiting for it takes public time too
os.register_at_fork(before=SILENCE.acquire, after_in_parent=SILENCE.release, after_in_child=SILENCE.release)
# Registered last, taken first, as in a release.
os.register_at_fork(before=ANSWERING.acquire, after_in_parent=ANSWERING.release, after_in_child=ANSWERING.release)


@final
@dataclass(frozen=True, slots=True)
class Method:
    """The public choices behind a release: which candidates, how scored, how drawn, how long it may take."""

    candidates: CandidateRule = Product()
    utility: Utility = Gated()
    mechanism: Mechanism = Exponential()
    evaluation_seconds: float = 60

    def __post_init__(self) -> None:
        _seconds(self.evaluation_seconds, "evaluation_seconds")


@final
class Vault:
    """Holds a private graph and lets out paid releases, one at a time."""

    __slots__ = ("_answer_seconds", "_context", "_digest", "_failures", "_graph", "_ledger", "_method", "_randomness")

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
    ) -> None:
        """`ledger` is a URL, with `limit` where it may have to be made, or an open ledger, which has its own.

        With `answer_seconds` every new answer takes that long, one after another in a process; an evaluation that needs
        more counts as failed.
        """
        _refuse_mismatch(graph, context, simulation)
        self._answer_seconds = None if answer_seconds is None else _seconds(answer_seconds, "answer_seconds")
        if not isinstance(ledger, str | Ledger):
            raise SettingsError(f"ledger is a {type(ledger).__name__}; write sqlite:///budget.db or open one first.")
        if isinstance(ledger, Ledger) and limit is not None:
            raise SettingsError("limit belongs to an open ledger already; pass a ledger or a limit, not both.")
        self._graph, self._context, self._method = graph, context, method or Method()
        _rehearse(context, self._method)
        self._digest = public_digest(context, self._method)
        cap = limit if isinstance(limit, Limit) or limit is None else Limit.of(limit)
        self._ledger = ledger if isinstance(ledger, Ledger) else open_ledger(ledger, cap)
        graph.bind(self._ledger.graph_id)
        self._randomness = SystemRandomness()
        self._failures: list[str] = []

    def release(
        self, target: int | str, epsilon: Price, *, analyst: str = OWNER, request_id: str | None = None
    ) -> Release:
        """One private counterfactual: checked, proposed, charged, evaluated, scored, drawn, in this order.

        The same analyst and request id return the same release and pay once, also after a crash.
        """
        request = self._request(target, epsilon, analyst, request_id)
        candidates = self._method.candidates.propose(self._context, request.target)
        fallback = self._method.utility.failed(candidates)
        with nullcontext() if self._answer_seconds is None else ANSWERING:
            started = monotonic()
            stored = self._ledger.charge(request)
            if stored is None:
                scores = self._score(candidates, fallback, started)
                drawn = self._method.mechanism.draw(scores, request.epsilon, self._randomness)
                release = self._certify(request, candidates, drawn)
                if self._answer_seconds is not None:
                    sleep(max(started + self._answer_seconds - monotonic(), 0))
                stored = self._ledger.finish(request, release.to_json())
        return Release.from_json(stored)

    def propose(self, target: int | str) -> Candidates:
        """The public list that a release for this target would be drawn from; costs nothing."""
        return self._method.candidates.propose(self._context, self._context.node(target))

    def balance(self, analyst: str | None = None) -> Balance:
        """What is spent and left, in all or by one analyst."""
        return self._ledger.balance(analyst)

    def head(self) -> Head:
        """The ledger's newest row, to be kept elsewhere."""
        return self._ledger.head()

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

    def _request(self, target: int | str, epsilon: Price, analyst: str, request_id: str | None) -> Request:
        """The checked question; every refusal here is about public input."""
        return Request(
            analyst=_name(analyst, "analyst"),
            request_id=secrets.token_hex(16) if request_id is None else _name(request_id, "request_id"),
            target=self._context.node(target),
            epsilon=parse_epsilon(epsilon),
            context_digest=self._digest,
            mechanism=self._method.mechanism.name,
            adjacency=ADJACENCY,
        )

    def _score(self, candidates: Candidates, fallback: Scores, started: float) -> Scores:
        """Sealed scores. A failed evaluation gets the public ones: a visible failure or warning would be a release."""
        try:
            with SILENCE, np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                deadline = Deadline(self._time_to_evaluate(started))
                deadline.check()
                outcomes = evaluate(self._graph, self._context, candidates, deadline)
                scores = self._method.utility.score(outcomes)
                deadline.check()
                return scores
        except (Exception, SystemExit) as error:
            self._failures.append(f"target {candidates.target}: {type(error).__name__}: {error}")
            return fallback

    def _time_to_evaluate(self, started: float) -> float:
        """What the method allows, and what leaves time for the draw before a public answering time."""
        if self._answer_seconds is None:
            return self._method.evaluation_seconds
        left = started + EVALUATION_SHARE * self._answer_seconds - monotonic()
        return min(self._method.evaluation_seconds, left)

    def _certify(self, request: Request, candidates: Candidates, drawn: int) -> Release:
        return Release(
            target=request.target,
            intervention=candidates[drawn],
            epsilon=request.epsilon,
            mechanism=request.mechanism,
            guarantee=Guarantee(request.epsilon, self._method.utility.grid(candidates.caps).range),
            context_digest=request.context_digest,
            assumptions=tuple(sorted(item.name for item in self._context.assumptions)),
            analyst=request.analyst,
            request_id=request.request_id,
        )


def public_digest(context: PublicContext, method: Method) -> str:
    """Names everything public behind a release."""
    return hashlib.sha256(f"{context.digest}\n{method!r}".encode()).hexdigest()


def verify(release: Release, ledger: Ledger, context: PublicContext, method: Method) -> dict[str, bool]:
    """What holds of a certificate. Reads no edge; the ledger's chain was checked when the ledger was opened."""
    stored = ledger.released(release.analyst, release.request_id)
    proposed = method.candidates.propose(context, context.node(release.target))
    return {
        "the ledger holds this release, word for word": stored == release.to_json(),
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


def _rehearse(context: PublicContext, method: Method) -> None:
    """Finds faults of model and method on public data, before they could cost budget."""
    module = getattr(context.backbone, "module", None)
    if module is not None and any(getattr(layer, "cached", False) is True for layer in module.modules()):
        raise BackboneError(
            "backbone has a layer with cached=True, which answers for the graph that it saw first, maybe a private "
            "one; build it with cached=False and load the weights."
        )
    highest = method.utility.grid(method.candidates.caps).levels[-1]
    if highest > MOST_LEVELS:
        raise SettingsError(f"utility weights need {highest} steps; choose simpler fractions (at most {MOST_LEVELS}).")
    snapshot = PrivateGraph.from_edges(context.snapshot.pairs, number_of_nodes=context.number_of_nodes)
    proposed = method.candidates.propose(context, 0)
    few = replace(proposed, pair_sets=proposed.pair_sets[:3], feature_sets=proposed.feature_sets[:3])
    try:
        first, second = (evaluate(snapshot, context, few, Deadline(600)) for _ in range(2))
        method.utility.score(first)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise BackboneError(f"backbone cannot be evaluated on the public snapshot ({reason}); check it.") from error
    if np.abs(first.logits - second.logits).max() > 1e-4:
        raise BackboneError("backbone says something else each time; freeze it (no dropout, no sampling).")


def _seconds(value: float, argument: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        raise SettingsError(f"{argument} is {value!r}; give a number above 0.")
    return value


def _name(text: str, argument: str) -> str:
    if not isinstance(text, str) or not 0 < len(text) <= 200 or not text.isprintable():
        raise InputError(f"{argument} must be printable text of 1 to 200 characters.")
    return text
