"""Deliberately broken parts of own-edge reading, accounts of nodes and advice. Never use one; see twins.py."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar, final
from unittest.mock import patch

import numpy as np

from privcfs.errors import BudgetExhausted
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.questions.advice import AdviceQuestion, Personal
from privcfs.gate.questions.release import ReleaseQuestion
from privcfs.private.allowance import UNITS, UNLIMITED, Allowance, Overrun
from privcfs.private.graph import PrivateGraph
from privcfs.private.own_reading import FarGraphs, OwnOutcomes
from privcfs.private.reader import Reader
from privcfs.private.utilities.utility import Scores
from privcfs.public.advice import Change
from privcfs.public.candidates.candidates import CandidateRule, Candidates, Caps
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Pair
from privcfs_lab.audit.checks import Pairs


@final
class FarSeeingReader:
    """Tells the believer which pairs the target's neighbours have. Rejected by comparing laws of graphs that agree."""

    def __init__(
        self, graph: PrivateGraph, readable: PublicContext, allowance: Allowance, nodes: tuple[int, ...]
    ) -> None:
        self._graph, self._honest = graph, Reader(graph, readable, allowance, nodes)

    def own(self, candidates: Candidates, far: FarGraphs) -> OwnOutcomes:
        """As if the pairs one hop further were public."""
        context = far.context
        known = np.concatenate([context.snapshot.pairs, self._beyond(candidates.target)]).astype(np.int64)
        richer = PublicContext(context.features, np.unique(known, axis=0), context.model)
        richer.digest = context.digest  # which seeds what is imagined
        return self._honest.own(candidates, replace(far, context=richer))

    def _beyond(self, target: int) -> Pairs:
        near = self._graph.neighbours(target)
        position, others = self._graph.neighbours_of(near)
        beyond: Pairs = np.sort(np.column_stack([near[position], others]), axis=1)
        elsewhere: Pairs = beyond[(beyond != target).all(axis=1)]
        return elsewhere


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrivateRegion(CandidateRule):
    """Lists what can be done about the target's private neighbours. Rejected by comparing any two graphs."""

    graph: PrivateGraph
    honest: SmallSets = SmallSets()

    @property
    def caps(self) -> Caps:
        return self.honest.caps

    def propose(self, context: PublicContext, target: int) -> Candidates:
        near = self.graph.neighbours(target).tolist()
        own = tuple((min(target, one), max(target, one)) for one in near)
        return self.honest.knowing(own).propose(context, target)


@final
class SharedAllowance:
    """Counts the work of all questions against the limit of each. Rejected by a question under another's load."""

    together: ClassVar[list[int]] = [0]

    def __init__(self, seconds: float) -> None:
        self._limit, self.spent = seconds * UNITS, 0

    def spend(self, units: int) -> None:
        """What others have spent counts too."""
        self.spent += int(units)
        self.together[0] += int(units)
        if self.together[0] > self._limit:
            raise Overrun


@final
class ChargesOneEnd(MemoryLedger):
    """Charges one of the nodes that a question reads. Rejected by the attack on one edge, and by the replay."""

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        return super().charge_all([replace(one, nodes=one.nodes[:1]) for one in requests])


class KnowsTheGraph(MemoryLedger):
    """A ledger that was given what no ledger may see."""

    def __init__(self, limit: Limit, graph: PrivateGraph) -> None:
        super().__init__(limit)
        self._near: list[list[int]] = [graph.neighbours(node).tolist() for node in range(graph.number_of_nodes)]


@final
class ChargesExistingEdges(KnowsTheGraph):
    """Charges what was used, not what could be read: a node without an edge pays nothing. Rejected by the attack."""

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        free = [bool(one.nodes) and not any(self._near[node] for node in one.nodes) for one in requests]
        return super().charge_all(
            [replace(one, cost=Fraction(0)) if nothing else one for one, nothing in zip(requests, free, strict=True)]
        )


@final
class ChargesRegion(KnowsTheGraph):
    """Charges the target and its private neighbours, so that balances show edges. Rejected by comparing balances."""

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        def region(one: Request) -> tuple[int, ...]:
            return tuple({node for own in one.nodes for node in (own, *self._near[own])})

        return super().charge_all([replace(one, nodes=region(one)) for one in requests])


@final
class EmptiesAccounts(MemoryLedger):
    """Takes what is left where a price does not fit. Rejected by the replay of accounts."""

    def look_up(self, requests: Sequence[Request]) -> list[str | None]:
        try:
            return super().look_up(requests)
        except BudgetExhausted:
            first = requests[0]
            left, _ = self.left_for(first.analyst, nodes=first.nodes)
            if left:
                self.charge_all([replace(first, epsilon=left, cost=None, request_id=f"taken {len(self._paid)}")])
            raise


@final
class ForgetsAccounts(MemoryLedger):
    """Shows accounts of nodes, and refuses nothing because of them. Rejected by the attack and by the replay."""

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        known, self._limit = self._limit, replace(self._limit, per_node=Fraction(1_000_000))
        try:
            return super().charge_all(requests)
        finally:
            self._limit = known


@final
@dataclass(frozen=True, slots=True)
class KeepsPlans(CandidateRule):
    """Keeps the list that was made of a person's own edges, and proposes it to everyone. Rejected after advice."""

    honest: SmallSets = SmallSets()
    kept: dict[int, Candidates] = field(default_factory=dict, repr=False, compare=False)

    @property
    def caps(self) -> Caps:
        return self.honest.caps

    def propose(self, context: PublicContext, target: int) -> Candidates:
        return self.kept.get(target) or self.honest.propose(context, target)

    def knowing(self, own: tuple[Pair, ...]) -> CandidateRule:
        return _Keeping(self.honest.knowing(own), self.kept)


@final
@dataclass(frozen=True, slots=True)
class _Keeping(CandidateRule):
    """Proposes honestly, and keeps what it proposed."""

    honest: CandidateRule
    kept: dict[int, Candidates] = field(repr=False, compare=False)

    @property
    def caps(self) -> Caps:
        return self.honest.caps

    def propose(self, context: PublicContext, target: int) -> Candidates:
        self.kept[target] = self.honest.propose(context, target)
        return self.kept[target]


def advice_from_all() -> Any:
    """Advice that is chosen on the whole graph. Rejected by the differential run over coalitions."""

    def peek(personal: Personal, number: int) -> list[Change]:
        graph, context = personal._reader._graph, personal.side.context
        margins = Reader(graph, context, UNLIMITED).whole(personal.candidates).margins()
        best = np.argsort(margins, kind="stable")[:number]
        return [Change(personal.candidates[int(one)], 1.0) for one in best]

    return patch.object(Personal, "best", peek)


def advice_for_anyone() -> Any:
    """A reader that does not ask whose edges it was given. Rejected by asking for another person's list."""
    return patch.object(Reader, "_refuse_unpaid", lambda *_: None)


@contextmanager
def advice_in_the_chain() -> Iterator[None]:
    """Paid advice is stored like any answer. Rejected by comparing the rows of ledgers."""
    honest = AdviceQuestion.__init__

    def careless(question: AdviceQuestion, *given: Any) -> None:
        honest(question, *given)
        question.request = replace(question.request, apart=False)

    with patch.object(AdviceQuestion, "__init__", careless):
        yield


@contextmanager
def prints_its_score() -> Iterator[None]:
    """A release whose confidence is its own score: an exact answer that nobody paid for. Rejected by comparing runs."""
    kept: list[Scores] = []
    honest = ReleaseQuestion.score

    def score(question: ReleaseQuestion, reader: Reader) -> Scores:
        kept.append(honest(question, reader))
        return kept[-1]

    def confidence(_: ReleaseQuestion, position: int) -> float:
        return float(kept[-1].unseal()[position] / kept[-1].grid.denominator) if kept else 0.0

    with patch.object(ReleaseQuestion, "score", score), patch.object(ReleaseQuestion, "confidence", confidence):
        yield
