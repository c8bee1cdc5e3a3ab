"""One release, from public question to paid answer.

Zone: gate
Claim: each release is pure epsilon-DP for any two private graphs over the same public context, and is paid for,
    durably, before the private graph is read; what leaves depends on edges through the draw alone.
Why: candidates, their order, the grid and the mechanism are public; the charge precedes evaluation; a failed
    evaluation is drawn from as usual, and is given up by counted work and never by a clock; the mechanism sees sealed
    scores and no graph. With `answer_seconds` an answer also waits for a public time, which hides how long evaluation
    took as far as the machine allows (docs/limits.md).
Check: tests/lab/claims/test_whole_release.py::test_the_release_is_private_for_edges_nodes_and_whole_graphs
"""

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from fractions import Fraction
from math import inf
from secrets import token_hex
from threading import RLock
from time import monotonic, sleep
from typing import final

import numpy as np

from privcfs.errors import BudgetExhausted, InputError, SettingsError
from privcfs.forks import Order, at_fork
from privcfs.gate.accounting import Balance, Limit
from privcfs.gate.failures import FailureLog, Failures
from privcfs.gate.ledger import open_ledger
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.method import Method, checked_seconds, constraints_of, dearest, keeping_schema
from privcfs.gate.opening import (
    checked_class,
    graph_for_advice,
    known_to_people,
    refuse_confusion,
    refuse_idle_accounts,
    refuse_mismatch,
    refuse_own_edges_with_secrets,
    try_model,
)
from privcfs.gate.public_guess import believed_classes, public_guess
from privcfs.gate.questions.advice import Paying, Personal, free_advice, paid_advice
from privcfs.gate.questions.confirm import ConfirmQuestion, list_of_one
from privcfs.gate.questions.question import OWNER, Asker, PublicSide, Question, checked_name
from privcfs.gate.questions.release import Earlier, ReleaseQuestion
from privcfs.gate.questions.select import SelectQuestion
from privcfs.gate.questions.suggestions import in_turn, price_of_each
from privcfs.gate.randomness import SystemRandomness
from privcfs.gate.sketching import refuse_unpaid_sketch
from privcfs.gate.storing import Storing
from privcfs.gate.together import confidences_together
from privcfs.gate.turns import Turns
from privcfs.private.allowance import Allowance
from privcfs.private.graph import PrivateGraph
from privcfs.private.reader import Reader
from privcfs.private.secrets import Secrets
from privcfs.private.utilities.utility import Scores
from privcfs.public.advice import Advice
from privcfs.public.believed import Believed
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.constraints import Constraints
from privcfs.public.context import PublicContext, Readable
from privcfs.public.epsilon import Price, parse_epsilon
from privcfs.public.head import Head
from privcfs.public.interventions import Intervention
from privcfs.public.public_answer import PublicAnswer
from privcfs.public.release import Release
from privcfs.public.schema.possible import PossibleChanges, possible_changes
from privcfs.public.verdict import Selection, Verdict

LEAST_PRICE = "0.01"
EVALUATION_SHARE = 0.8  # of a public answering time, in nominal seconds of counted work
SILENCE = RLock()  # the filter of warnings belongs to the whole process
ANSWERING = Turns()  # with a public answering time one answer follows another: waiting for it takes public time too
at_fork(Order.WARNINGS, before=SILENCE.acquire, in_parent=SILENCE.release, in_child=SILENCE.release)
at_fork(Order.ANSWERING, before=ANSWERING.acquire, in_parent=ANSWERING.release, in_child=ANSWERING.start_anew)


@final
class Vault:
    """Holds a private graph and lets out paid answers: the only way from private edges to anyone.

    `privcfs.open_vault` makes one from a vault file, with guards that a vault made by hand does not have: one budget
    for one graph, and a head file against a ledger that is set back.
    """

    __slots__ = (
        "_answer_seconds",
        "_failures",
        "_graph",
        "_known",
        "_ledger",
        "_randomness",
        "_readable",
        "_side",
        "_storing",
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
        people_know_their_edges: bool | PrivateGraph = False,
    ) -> None:
        """Checks that the parts fit each other, opens or makes the ledger, and tries the model on public data.

        Args:
            graph: The secret edges.
            context: What everyone knows: features, snapshot, public model, assumptions.
            ledger: A URL such as "sqlite:///budget.db", or an open ledger.
            limit: What all answers together may cost, such as "10", or a `Limit`; needed where the ledger may have to
                be made, and left out (the default) for an open ledger, which has its own.
            method: Which candidates, how scored, how drawn; by default small sets, guided by imagined graphs. Where
                the context has a schema of features, these are sets of changes that it permits, and candidates of any
                method are kept to it.
            simulation: Whether a snapshot that was drawn from the private edges is accepted, for demonstrations alone;
                by default it is refused.
            answer_seconds: The public time that every new answer takes, one after another in a process; an evaluation
                whose counted work is more than four fifths of it counts as failed. An answer that a busy machine delays
                is drawn as usual, leaves late, and is counted in `failures`. By default answers take the time that they
                take.
            secrets: A secret model or secret features, which decide in the place of the public ones and are covered by
                the promise; by default none.
            least_price: The least epsilon of a question, by default "0.01": whatever an answer tells besides its draw,
                such as its time, is not to be had for nothing.
            people_know_their_edges: The owner's word that whoever asks for advice about a node knows all edges of that
                node, as people know their own friendships and contracts. Where that is true of some edges only, a
                graph of these: edges that the people at both ends know. All others, also those of the person who asks,
                count as other people's. By default False, and advice is refused.

        Raises:
            SettingsError: An argument does not fit the others, or the ledger belongs to another graph.
            GraphError: The graph has another number of nodes than the context, or spends from another ledger.
            SimulatedSnapshot: The snapshot is marked as drawn from private edges, and `simulation` is off.
            LedgerError: The ledger is missing, altered, rolled back, or in use.
        """
        refuse_mismatch(graph, context, simulation)
        refuse_confusion(context, secrets)
        self._answer_seconds = None if answer_seconds is None else checked_seconds(answer_seconds, "answer_seconds")
        if not isinstance(ledger, str | Ledger):
            raise SettingsError(f"ledger is a {type(ledger).__name__}; write sqlite:///budget.db or open one first.")
        if isinstance(ledger, Ledger) and limit is not None:
            raise SettingsError("limit belongs to an open ledger already; pass a ledger or a limit, not both.")
        self._graph, self._readable = graph, context if secrets is None else secrets
        chosen = keeping_schema(method, context)
        refuse_own_edges_with_secrets(chosen, secrets)
        self._known = known_to_people(people_know_their_edges, graph, context)
        try_model(context, chosen, self._readable)
        cap = limit if isinstance(limit, Limit) or limit is None else Limit.of(limit)
        self._ledger = ledger if isinstance(ledger, Ledger) else open_ledger(ledger, cap)
        contract = self._ledger.limit.contract  # a ledger keeps its contract
        refuse_idle_accounts(chosen, self._ledger.limit)
        refuse_unpaid_sketch(context, self._ledger)
        people_know_all = self._known is None or self._known is graph
        least = parse_epsilon(least_price)
        self._side = PublicSide(context, chosen, contract, least, self._losses_in_words, people_know_all)
        self._storing = Storing(self._ledger)
        graph.bind(self._ledger.graph_id)
        self._randomness = SystemRandomness()
        self._failures = FailureLog()

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

        Args:
            target: The node to explain, by number (int) or by public name (text).
            epsilon: The price, such as "1".
            analyst: Who asks; limits and request ids are per analyst. By default "owner". The caller has to establish
                who it is.
            request_id: Names the request: the same analyst and id return the same answer and pay once, also after a
                crash. By default a random one.
            avoiding: Interventions with which the answer shall share no element; by default none.
            beyond: An earlier answer that the new one contains, unless it is the empty set: a selection in stages, each
                of them a release of its own. By default none.
            cap: What the analyst may spend in all, where that is less than the ledger's own limit; by default no cap.

        Returns:
            The drawn intervention with its certificate. Whether it flips the decision is private and not said.

        Raises:
            UnknownNode: The target is not a node.
            BadEpsilon: The price is not a decimal, or below the least price.
            BudgetExhausted: The price does not fit a limit; nothing is charged.
            RequestConflict: The request id was used before for something else.
            LedgerError: The ledger cannot be read or written; what is paid stays paid, and asking again with the same
                request id pays nothing.
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
        """Several releases, paid together or, where one does not fit, not at all.

        Args:
            questions: For each release its target, its price, and its request id or None for a random one.
            analyst: Who asks; by default "owner".
            cap: What the analyst may spend in all, where that is less than the ledger's own limit; by default no cap.

        Returns:
            The releases in the order of the questions.

        Raises:
            InputError: Two questions have the same request id.
            UnknownNode: A target is not a node.
            BadEpsilon: The price is not a decimal, or below the least price.
            BudgetExhausted: The price does not fit a limit; nothing is charged.
            RequestConflict: The request id was used before for something else.
            LedgerError: The ledger cannot be read or written; what is paid stays paid, and asking again with the same
                request id pays nothing.
        """
        asked = [
            ReleaseQuestion(self._side, Asker(analyst, name, cap), target, price) for target, price, name in questions
        ]
        if len({one.request.request_id for one in asked}) < len(asked):
            raise InputError("request ids must differ within a batch.")
        return [self._named(text) for text in self._answers(asked)]

    def dry_run(self, target: int | str, epsilon: Price) -> PublicAnswer:
        """What a release might look like: drawn as one would be, but on the public snapshot; costs nothing.

        Args:
            target: The node, by number (int) or by public name (text).
            epsilon: The price at which the draw would be made.

        Returns:
            An intervention that is a function of public data and fresh random numbers, with the confidence that a
            release of it would have.

        Raises:
            UnknownNode: The target is not a node.
            BadEpsilon: The price is not a decimal, or below the least price.
        """
        question = ReleaseQuestion(self._side, Asker(), target, epsilon)
        mechanism, snapshot = question.mechanism, PrivateGraph.from_snapshot(self.context.snapshot)
        with nullcontext() if self._answer_seconds is None else ANSWERING:  # or it would wait for private evaluations
            scores = self._scores(question, snapshot, self.context)
        position = mechanism.draw(scores, question.request.epsilon, self._randomness)
        return self._public_answer(question.candidates, position, question.confidence(position))

    def guess(self, target: int | str) -> PublicAnswer:
        """The public guess: the best answer from public data alone; costs nothing, and is the honest zero of a release.

        Args:
            target: The node, by number (int) or by public name (text).

        Returns:
            The candidate that is likeliest to flip the decision on graphs imagined from public data.

        Raises:
            UnknownNode: The target is not a node.
        """
        candidates = self.propose(target)
        return self._public_answer(candidates, *public_guess(self.context, candidates, self.method))

    def believe(
        self, target: int | str, intervention: Intervention | None = None, *, told: int | None = None
    ) -> Believed:
        """Which decision public data let one expect, before and after a change; costs nothing.

        Args:
            target: The node, by number (int) or by public name (text).
            intervention: The change; by default none.
            told: The decision that the person asked about says she was told, as a class; by default it is unknown.

        Returns:
            Probabilities of classes. The true decision is private and is not read.

        Raises:
            UnknownNode: The target is not a node.
            InputError: The intervention names a node or a feature that does not exist, or `told` is not a class.
        """
        node = self.context.node(target)
        listed = list_of_one(intervention or Intervention(), node, self.context)
        return believed_classes(self.context, listed, self.method, checked_class(told, self.context))

    def expect(self, target: int | str, epsilon: Price) -> float | None:
        """How likely a release at this price is to flip the decision, judged from public data; costs nothing.

        Args:
            target: The node, by number (int) or by public name (text).
            epsilon: The price of the release.

        Returns:
            A probability, to be compared with the confidence of the free guess; None where nothing is believed.

        Raises:
            UnknownNode: The target is not a node.
            BadEpsilon: The price is not a decimal, or below the least price.
        """
        return ReleaseQuestion(self._side, Asker(), target, epsilon).expected

    def cost(self, epsilon: Price) -> Fraction:
        """What a release costs at most, in the unit of the ledger's contract; public.

        Args:
            epsilon: The price of the release.

        Returns:
            An upper bound on the cost: epsilon itself under the contract `pure`.

        Raises:
            BadEpsilon: The price is not a decimal, or below the least price.
        """
        return self._side.contract.cost(dearest(self.method), self._side.price(epsilon))

    def charged_at(self, targets: Sequence[int | str]) -> tuple[int, ...]:
        """The nodes on whose accounts releases about these targets are paid.

        Args:
            targets: Nodes, by number (int) or by public name (text).

        Returns:
            Their numbers where the method reads own edges and nodes have accounts; otherwise none, since every release
            then counts for the whole graph.

        Raises:
            UnknownNode: One of the targets is not a node.
            LedgerError: The ledger cannot be read.
        """
        nodes = tuple(self.context.node(target) for target in targets)
        return nodes if self.method.reads_own and self._ledger.limit.per_node is not None else ()

    def suggest(
        self, target: int | str, epsilon: Price, number: int, *, analyst: str = OWNER, request_id: str | None = None
    ) -> list[Release]:
        """Several releases that share no element, for at most one price in all.

        Args:
            target: The node to explain, by number (int) or by public name (text).
            epsilon: The price of all of them. Each pays an equal part, rounded down to a decimal where the price cannot
                be divided; what is left over is not spent.
            number: How many releases, from 1 to 20.
            analyst: Who asks; limits and request ids are per analyst. By default "owner". The caller has to establish
                who it is.
            request_id: Names the request: the same analyst and id return the same answer and pay once, also after a
                crash. By default a random one.

        Returns:
            The releases in the order in which they were drawn.

        Raises:
            InputError: The number is out of range, or the method has no base measure to leave elements out of.
            UnknownNode: The target is not a node.
            BadEpsilon: The price is not a decimal, or below the least price.
            BudgetExhausted: The price does not fit a limit; nothing is charged.
            RequestConflict: The request id was used before for something else.
            LedgerError: The ledger cannot be read or written; what is paid stays paid, and asking again with the same
                request id pays nothing.
        """
        each, name = price_of_each(self._side, epsilon, number), request_id or token_hex(16)
        checked_name(f"{name}/{number}", "request_id")
        checked_name(analyst, "analyst")

        def draw(request_id: str, before: Sequence[Release]) -> Release:
            avoiding = [one.intervention for one in before if one.intervention.size]
            return self.release(target, each, analyst=analyst, request_id=request_id, avoiding=avoiding)

        return in_turn(number, name, draw)

    def confidences(self, releases: Sequence[Release]) -> list[float | None]:
        """How sure each of several suggestions is, given all of them; public, and costs nothing.

        A release carries the confidence that it has alone. Suggestions tell about each other: where later ones look
        as if the earlier did not flip the decision, these become less likely, by Bayes' rule.

        Args:
            releases: All suggestions of one request, in the order in which they were drawn.

        Returns:
            For each of them the probability that it flips the decision; None where the method believes nothing.

        Raises:
            InputError: The list is empty, or these are not the suggestions of one request of this vault in their order.
        """
        return confidences_together(self.context, self.method, releases)

    def confirm(
        self,
        target: int | str,
        intervention: Intervention,
        epsilon: Price,
        *,
        analyst: str = OWNER,
        request_id: str | None = None,
        cap: Fraction | None = None,
    ) -> Verdict:
        """Whether an intervention really flips the decision: a paid answer, and a noisy one (randomised response).

        Args:
            target: The node, by number (int) or by public name (text).
            intervention: The change to test, such as that of an earlier release.
            epsilon: The price; the truth is told with probability e^epsilon / (1 + e^epsilon).
            analyst: Who asks; limits and request ids are per analyst. By default "owner". The caller has to establish
                who it is.
            request_id: Names the request: the same analyst and id return the same answer and pay once, also after a
                crash. By default a random one.
            cap: What the analyst may spend in all, where that is less than the ledger's own limit; by default no cap.

        Returns:
            Yes or no, with the probability that such an answer is right.

        Raises:
            InputError: The intervention names a node or a feature that does not exist.
            UnknownNode: The target is not a node.
            BadEpsilon: The price is not a decimal, or below the least price.
            BudgetExhausted: The price does not fit a limit; nothing is charged.
            RequestConflict: The request id was used before for something else.
            LedgerError: The ledger cannot be read or written; what is paid stays paid, and asking again with the same
                request id pays nothing.
        """
        question = ConfirmQuestion(self._side, Asker(analyst, request_id, cap), target, intervention, epsilon)
        return Verdict.from_json(self._answers([question])[0])

    def select(
        self, targets: Sequence[int | str], epsilon: Price, *, analyst: str = OWNER, request_id: str | None = None
    ) -> Selection:
        """One node of a public list, close calls being likelier: a paid choice of whom to explain.

        Args:
            targets: Distinct nodes, at least one, by number (int) or by public name (text).
            epsilon: The price of the choice.
            analyst: Who asks; limits and request ids are per analyst. By default "owner". The caller has to establish
                who it is.
            request_id: Names the request: the same analyst and id return the same answer and pay once, also after a
                crash. By default a random one.

        Returns:
            The chosen node with its certificate.

        Raises:
            InputError: The list is empty, or names a node twice.
            UnknownNode: One of the targets is not a node.
            BadEpsilon: The price is not a decimal, or below the least price.
            BudgetExhausted: The price does not fit a limit; nothing is charged.
            RequestConflict: The request id was used before for something else.
            LedgerError: The ledger cannot be read or written; what is paid stays paid, and asking again with the same
                request id pays nothing.
        """
        question = SelectQuestion(self._side, Asker(analyst, request_id), targets, epsilon)
        return Selection.from_json(self._answers([question])[0])

    def advise(
        self,
        target: int | str,
        *,
        alternatives: int | None = None,
        told: int | None = None,
        epsilon: Price | None = None,
        read_others: bool | None = None,
        analyst: str = OWNER,
        request_id: str | None = None,
        cap: Fraction | None = None,
    ) -> Advice:
        """The answer to the person concerned, from public data and her own edges: for her alone, not for publication.

        The caller has to establish that whoever gets it is the person of this node.

        Args:
            target: Her node, by number (int) or by public name (text).
            alternatives: How many further changes to name, from 0 to 10; by default 2 where advice is free, and none
                where it is paid. Paid changes are drawn one after the other, and each takes an equal part of the price.
            told: The decision that she says she was told, as a class; by default it is only believed.
            epsilon: The price of what is secret to her; by default advice costs nothing, and reads nothing but her own
                edges. A vault with a secret model or secret features gives no advice without a price.
            read_others: Whether other people's edges are read at this price. By default they are where edges alone are
                secret, and they are not where a model or features are: then the price is for these alone.
            analyst: Who pays; by default "owner".
            request_id: Names a paid request: the same analyst and id return the same advice and pay once. By default a
                random one.
            cap: What the analyst may spend in all, where that is less than the ledger's own limit; by default no cap.

        Returns:
            The change that is likeliest to flip the decision, with its confidence.

        Raises:
            NotAllowed: The owner has not said that people know their edges, or advice has a price here.
            InputError: `alternatives` or `told` is out of range, or `read_others` and the price do not fit each other.
            UnknownNode: The target is not a node.
            BadEpsilon: The price is not a decimal, or below the least price.
            BudgetExhausted: The price does not fit a limit; nothing is charged.
            RequestConflict: The request id was used before for something else.
            LedgerError: The ledger cannot be read or written; what is paid stays paid, and asking again with the same
                request id pays nothing.
        """
        node = self.context.node(target)
        is_more_secret = self._readable is not self.context
        known = graph_for_advice(self._known, is_more_secret, epsilon, read_others)
        allowance = Allowance(nominal_seconds(self.method, self._answer_seconds))
        own = Reader(known, self.context, allowance, (node,))  # what is planned is public to her
        personal = Personal(self._side, node, own, checked_class(told, self.context))
        if epsilon is None:
            with quiet():
                return free_advice(personal, 2 if alternatives is None else alternatives)
        paying = Paying(epsilon, not is_more_secret if read_others is None else read_others, alternatives or 0)
        return paid_advice(lambda asked: self._answers([asked])[0], personal, Asker(analyst, request_id, cap), paying)

    def propose(self, target: int | str) -> Candidates:
        """The public list that a release for this target would be drawn from; costs nothing and reads no edge.

        Args:
            target: The node, by number (int) or by public name (text).

        Returns:
            The candidates in their public order; the first is the empty set.

        Raises:
            UnknownNode: The target is not a node.
        """
        return self.method.candidates.propose(self.context, self.context.node(target)).named(self.context)

    def features(self, target: int | str) -> PossibleChanges:
        """What a node can change about itself, with present and possible values; costs nothing and reads no edge.

        Args:
            target: The node, by number (int) or by public name (text).

        Returns:
            The features that can change; none where features have no schema. Where they are secret, without the present
            values, and only those whose possible values do not depend on these.

        Raises:
            UnknownNode: The target is not a node.
        """
        node = self.context.node(target)
        return possible_changes(self.context, node, self.method.candidates.allowed.immutable_features)

    def balance(self, analyst: str | None = None) -> Balance:
        """What is spent and left.

        Args:
            analyst: Whose account; by default that of all analysts together.

        Returns:
            Limit, what is spent, what of it has no answer yet, the number of answers, and what is left.

        Raises:
            LedgerError: The ledger cannot be read, or was altered or rolled back.
        """
        return self._ledger.balance(analyst)

    def head(self) -> Head:
        """The ledger's newest row, to be kept elsewhere."""
        return self._ledger.head()

    @property
    def ledger(self) -> Ledger:
        """The account that pays for this vault's answers: the only one that a process should open for it."""
        return self._ledger

    @property
    def constraints(self) -> Constraints:
        """What every answer keeps to, and what changes cost; public."""
        return constraints_of(self.method, self.context)

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
    def failures(self) -> Failures:
        """Evaluations of this process that failed and answers that left late. For the owner: they depend on edges."""
        return self._failures.read()

    def _answers(self, questions: Sequence[Question]) -> list[str]:
        """What the ledger holds for some questions in the end; a refusal says what all answers may have told so far."""
        try:
            return self._found_or_paid(questions)
        except BudgetExhausted as error:
            if self._ledger.limit.per_node is None:
                raise
            raise BudgetExhausted(f"{error} {self._ledger.losses().in_words()}") from None

    def _found_or_paid(self, questions: Sequence[Question]) -> list[str]:
        """Looking up refuses what does not fit before anything is prepared, and finds what is finished already."""
        known = self._ledger.look_up([question.request for question in questions])
        new = [question for question, text in zip(questions, known, strict=True) if text is None]
        fresh = iter(self._paid_answers(new) if new else ())
        return [next(fresh) if text is None else text for text in known]

    def _paid_answers(self, questions: Sequence[Question]) -> list[str]:
        """The method in its promised order: prepare, charge, evaluate and score, draw, store."""
        requests = [question.priced for question in questions]  # prepared from public data
        with self._storing.claiming(requests) as answers:  # nobody else answers them meanwhile
            answers.found(self._ledger.charge_all(requests))  # all or none, durable before an edge is read
            for question, request in zip(questions, requests, strict=True):
                if answers.lacks(request):
                    with self._turn():
                        scores = self._scores(question, self._graph_of(question), self._readable)
                        position = question.mechanism.draw(scores, request.epsilon, self._randomness)
                        answers.add(request, question.answer(position))  # kept until it is stored
            return answers.stored()

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One answer. With a public answering time, one follows another and takes that long, or is late."""
        if self._answer_seconds is None:
            yield
            return
        with ANSWERING:
            started = monotonic()
            yield
            left = started + self._answer_seconds - monotonic()
            if left < 0:
                self._failures.add_late(-left)
            sleep(max(left, 0))

    def _scores(self, question: Question, graph: PrivateGraph, readable: Readable) -> Scores:
        """Sealed scores. A failed evaluation gets the public ones: a visible failure or warning would be a release."""
        fallback = question.fallback  # made beforehand, so that a failure takes no time of its own
        try:
            with quiet():
                allowance = Allowance(nominal_seconds(self.method, self._answer_seconds))
                return question.score(Reader(graph, readable, allowance, question.nodes))
        except (Exception, SystemExit) as error:
            self._failures.add_evaluation(self.context.label(question.request.target), error)
            return fallback

    def _graph_of(self, question: Question) -> PrivateGraph:
        """What a question may read: for the person concerned the edges that people know, where they are not all."""
        return self._known if question.reads_known and self._known is not None else self._graph

    def _losses_in_words(self) -> str:
        """What all answers together may tell, where nodes have accounts. Balances follow from questions, so: public."""
        return "" if self._ledger.limit.per_node is None else self._ledger.losses().promise()

    def _public_answer(self, candidates: Candidates, position: int, confidence: float | None) -> PublicAnswer:
        target, drawn = candidates.target, candidates[position]
        return PublicAnswer(target, drawn, confidence, self.context.labels({target, *drawn.nodes}))

    def _named(self, text: str) -> Release:
        """A stored release; version 0.1 stored no names."""
        release = Release.from_json(text)
        return release if release.labels else replace(release, labels=self.context.labels(release.nodes))


@contextmanager
def quiet() -> Iterator[None]:
    """Warnings of private arithmetic are not shown: whether there are any may depend on edges."""
    with SILENCE, np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def nominal_seconds(method: Method, answer_seconds: float | None) -> float:
    """Counted work that one evaluation may take: what the method allows, or the share of a public answering time."""
    return min(method.evaluation_seconds, inf if answer_seconds is None else EVALUATION_SHARE * answer_seconds)
