"""An attack on one edge after everyone has asked, against the accounts of nodes; and a replay of these accounts."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from itertools import combinations
from math import log, prod
from typing import Any, NamedTuple, TypeVar, final

import numpy as np

from privcfs.errors import BudgetExhausted, PrivcfsError, RequestConflict
from privcfs.gate.accounting import Limit
from privcfs.gate.contracts import Pure
from privcfs.gate.entries import enter
from privcfs.gate.ledger.ledger import WIDEST, Ledger
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.mechanisms.worst_case import below_bound
from privcfs.gate.method import Method
from privcfs.gate.questions.confirm import YES_OR_NO, ConfirmQuestion, scores_of_verdict
from privcfs.gate.questions.question import Asker, PublicSide, Question
from privcfs.gate.questions.release import ReleaseQuestion
from privcfs.gate.questions.select import SelectQuestion
from privcfs.gate.vault import Vault
from privcfs.private.allowance import UNLIMITED
from privcfs.private.graph import PrivateGraph
from privcfs.private.reader import Reader
from privcfs.public.context import PublicContext
from privcfs.public.epsilon import NANO
from privcfs.public.interventions import Intervention
from privcfs_lab.audit.checks import Pairs, as_pairs
from privcfs_lab.audit.own_edges import AUDITED, Pair, small_context

NODES = 8
SEEDS = 10  # of small worlds among which hostile edges are searched for
TRIED = 24  # sets of own edges of each end
ONE = Fraction(1)
LIMIT = Limit.of("3", per_node="2")
ROUNDS = 12  # after which an analyst who is never refused stops
EDGE = "one edge more or less"
Ratios = tuple[tuple[Fraction, Fraction], ...]  # of each answer its probability with the edge and without it
MakeLedger = Callable[[Limit, PrivateGraph], Ledger]


def honest_ledger(limit: Limit, _: PrivateGraph) -> Ledger:
    """What ships, in memory."""
    return MemoryLedger(limit)


@final
@dataclass(frozen=True, eq=False)
class Scene:
    """A private graph over a public context, and the edge that is attacked: it is there, or it is not."""

    context: PublicContext
    pairs: Pairs
    edge: Pair
    method: Method = AUDITED

    def graph(self, has_edge: bool) -> PrivateGraph:
        """The graph with the edge, or without it."""
        rest = {(int(u), int(w)) for u, w in self.pairs} - {self.edge}
        pairs = as_pairs(rest | {self.edge} if has_edge else rest)
        return PrivateGraph.from_pairs(pairs, self.context.number_of_nodes)

    @property
    def side(self) -> PublicSide:
        """Releases by own edges under pure accounts."""
        return PublicSide(self.context, self.method, Pure(), Fraction(1, 100))

    @cached_property
    def graphs(self) -> tuple[PrivateGraph, PrivateGraph]:
        """The graph with the edge and the one without it, for laws: a vault needs one of its own."""
        return self.graph(True), self.graph(False)

    def laws(self, question: Question) -> Ratios:
        """The exact probabilities of each answer, with the edge and without it; nothing where they are the same."""
        scores = [question.score(Reader(one, self.context, UNLIMITED, question.nodes)) for one in self.graphs]
        price = question.request.epsilon
        sides = [question.mechanism.exact_probabilities(one, price) for one in scores]
        return () if sides[0] == sides[1] else tuple(zip(*sides, strict=True))


def largest(ratios: Ratios) -> Fraction:
    """The largest ratio of probabilities, either way round."""
    return max((max(a / b, b / a) for a, b in ratios if a and b), default=ONE)


@final
@dataclass(frozen=True, slots=True)
class Turn:
    """A question that is asked again and again: how it is made, and how a vault answers it, by position."""

    question: Callable[[PublicSide], Question]
    ask: Callable[[Vault], int]


def release_turn(node: int, price: Fraction = ONE) -> Turn:
    """A release about a node."""

    def position(vault: Vault) -> int:
        drawn = vault.release(node, price).intervention
        return next(number for number, one in enumerate(vault.propose(node)) if one == drawn)

    return Turn(lambda side: ReleaseQuestion(side, Asker(), node, price), position)


def select_turn(nodes: Sequence[int], price: Fraction = ONE) -> Turn:
    """A choice of one node of a list."""
    return Turn(
        lambda side: SelectQuestion(side, Asker(), nodes, price),
        lambda vault: list(nodes).index(vault.select(nodes, price).target),
    )


def confirm_turn(node: int, intervention: Intervention, price: Fraction) -> Turn:
    """A question that reads the whole graph."""
    return Turn(
        lambda side: ConfirmQuestion(side, Asker(), node, intervention, price),
        lambda vault: int(not vault.confirm(node, intervention, price).flips),
    )


@final
@dataclass(frozen=True, slots=True)
class Attack:
    """What came of it when everyone had asked.

    Attributes:
        answers: How many answers were given.
        ratio: The largest exact ratio between the probabilities of one transcript with the edge and without it.
        accounts: What the ledger says of this edge: the accounts of both ends, and what counts in full.
        limits: What the limits allow for any edge.
        measured: The largest log-ratio among the transcripts that were drawn.
        auc: Of the likelihood-ratio attack on a whole transcript, exactly.
        balances_agree: Whether all balances are the same with the edge and without it.
    """

    answers: int
    ratio: Fraction
    accounts: Fraction
    limits: Fraction
    measured: float
    auc: float
    balances_agree: bool

    @property
    def loss(self) -> float:
        """The exact logarithm."""
        return log(self.ratio.numerator) - log(self.ratio.denominator)

    @property
    def within(self) -> bool:
        """Whether every transcript is within the accounts, these within the limits, and balances are public."""
        return (
            below_bound(self.ratio, self.accounts)
            and self.accounts <= self.limits
            and self.measured <= float(self.accounts) + 1e-9
            and self.balances_agree
        )


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked, and under which accounts.

    Attributes:
        turns: The questions; each is asked again until it is refused.
        limit: The limits; by default 2 at each node, and 3 in full.
        runs: How many transcripts are drawn on each graph.
        sketch: The price of an entry that shows the very edge by randomised response; by default there is none.
        make: Opens a ledger.
    """

    turns: Sequence[Turn]
    limit: Limit = LIMIT
    runs: int = 1
    sketch: Fraction | None = None
    make: MakeLedger = honest_ledger


def attack(scene: Scene, plan: Plan) -> Attack:
    """Everyone asks, round after round until refused, on both graphs; the attacker knows all but the edge."""
    laws = [scene.laws(turn.question(scene.side)) for turn in plan.turns]
    counts, measured, ledgers = [0] * len(laws), 0.0, []
    for has_edge in (True, False) * plan.runs:
        graph = scene.graph(has_edge)
        ledgers.append(plan.make(plan.limit, graph))
        told = _transcript(Vault(graph, scene.context, ledger=ledgers[-1], method=scene.method, simulation=True), plan)
        counts = [max(before, len(now)) for before, now in zip(counts, told, strict=True)]
        drawn = [law[position] for law, positions in zip(laws, told, strict=True) if law for position in positions]
        measured = max(measured, abs(sum(log(here / there) for here, there in drawn)))
    asked = [law for law, count in zip(laws, counts, strict=True) if law for _ in range(count)]
    asked += [] if plan.sketch is None else [_randomised_response(plan.sketch)]
    counted, nodes = ledgers[-1].losses(), range(scene.context.number_of_nodes)
    full = counted.whole + counted.edge_level
    balances = [(one.balance(), one.losses(), one.spent_at(nodes)) for one in ledgers]
    return Attack(
        answers=sum(counts),
        ratio=prod((largest(law) for law in asked), start=ONE),
        accounts=sum(ledgers[-1].spent_at(scene.edge).values(), full),
        limits=2 * (plan.limit.per_node or 0) + full,
        measured=measured,
        auc=auc_of(asked),
        balances_agree=all(one == balances[0] for one in balances),
    )


def _transcript(vault: Vault, plan: Plan) -> list[list[int]]:
    """The positions that are drawn in each turn, until it is refused."""
    if plan.sketch is not None:
        enter(vault.ledger, "a sketch", plan.sketch, adjacency=EDGE)
    found: list[list[int]] = [[] for _ in plan.turns]
    for turn, drawn in zip(plan.turns, found, strict=True):
        with suppress(BudgetExhausted):
            for _ in range(ROUNDS):
                drawn.append(turn.ask(vault))
    return found


def _randomised_response(price: Fraction) -> Ratios:
    """What a sketch says of the edge."""
    return tuple(
        zip(*(YES_OR_NO.exact_probabilities(scores_of_verdict(has), price) for has in (True, False)), strict=True)
    )


def auc_of(laws: Sequence[Ratios]) -> float:
    """The exact AUC of the likelihood ratio of independent answers; ties count half."""
    levels = {0.0: (1.0, 1.0)}
    for law in laws:
        parts = _summed((log(a / b), float(a), float(b)) for a, b in law if a and b)
        levels = _summed(
            (before + ratio, p * a, q * b) for before, (p, q) in levels.items() for ratio, (a, b) in parts.items()
        )
    below, auc = 0.0, 0.0
    for _, (p, q) in sorted(levels.items()):
        auc += p * (below + q / 2)
        below += q
    return auc


def _summed(parts: Iterable[tuple[float, float, float]]) -> dict[float, tuple[float, float]]:
    """Answers with the same ratio say the same."""
    found: dict[float, tuple[float, float]] = {}
    for ratio, a, b in parts:
        here, there = found.get(round(ratio, 9), (0.0, 0.0))
        found[round(ratio, 9)] = here + a, there + b
    return found


def lonely_scenes() -> Iterator[Scene]:
    """Pairs of small random graphs over random models; the first end has no edge but the one that is attacked."""
    for seed in range(SEEDS):
        rng = np.random.default_rng([seed, 1])
        context = small_context(seed, NODES)
        present = {pair for pair in combinations(range(NODES), 2) if rng.random() < 0.4}
        for edge in combinations(range(NODES), 2):
            rest = {pair for pair in present if edge[0] not in pair}
            yield Scene(context, as_pairs(rest | {edge}), edge)


@lru_cache(maxsize=1)
def hostile_scene() -> Scene:
    """An edge about which one release about each end tells as much as the prices allow, or most of those tried.

    Laws depend on own edges alone, so the other edges of both ends are searched for one end at a time.
    """
    return _most_hostile(map(_with_hostile_ends, lonely_scenes()), 2 * ONE)


def _with_hostile_ends(scene: Scene) -> tuple[Fraction, Scene]:
    """The same edge between ends whose other edges make it count most."""
    one, other = scene.edge
    if not (_chooses(scene, one) and _chooses(scene, other)):
        return ONE, scene
    first, here = _most(_own_sets(scene, one, other), ONE)
    second, there = _most(_own_sets(scene, other, one), ONE)
    return first * second, Scene(scene.context, as_pairs(here | there | {scene.edge}), scene.edge)


def _chooses(scene: Scene, node: int) -> bool:
    """Whether a release about the node has more than one possible answer."""
    question = release_turn(node).question(scene.side)
    return sum(map(bool, question.mechanism.exact_probabilities(question.fallback, ONE))) > 1


def _own_sets(scene: Scene, node: int, end: int) -> Iterator[tuple[Fraction, set[Pair]]]:
    """Sets of other edges of a node, and what a release about it then tells about its edge to the other end."""
    rng = np.random.default_rng([node, end])
    others = [one for one in range(NODES) if one not in (node, end)]
    for _ in range(TRIED):
        chosen = {(min(node, one), max(node, one)) for one in others if rng.random() < 0.4}
        small = Scene(scene.context, as_pairs(chosen | {scene.edge}), scene.edge)
        yield largest(small.laws(release_turn(node).question(small.side))), chosen


@lru_cache(maxsize=1)
def lonely_scene() -> Scene:
    """An edge that is its first end's only one, about which a release about that end tells most."""
    told = ((largest(scene.laws(release_turn(scene.edge[0]).question(scene.side))), scene) for scene in lonely_scenes())
    return _most_hostile(told, ONE)


@lru_cache(maxsize=1)
def hostile_choice() -> tuple[Scene, tuple[int, int]]:
    """A scene and two nodes, the second of which is an end of the edge: choosing between them tells about the edge."""
    choices = (
        (scene, (other, scene.edge[0]))
        for scene in lonely_scenes()
        for other in range(NODES)
        if other not in scene.edge
    )
    told = ((largest(scene.laws(select_turn(nodes).question(scene.side))), (scene, nodes)) for scene, nodes in choices)
    return _most_hostile(told, ONE)


T = TypeVar("T")


def _most_hostile(found: Iterator[tuple[Fraction, T]], price: Fraction) -> T:
    """What tells most."""
    return _most(found, price)[1]


def _most(found: Iterator[tuple[Fraction, T]], price: Fraction) -> tuple[Fraction, T]:
    """What tells most, and how much; the search ends where all of the price is told."""
    most, best = next(found)
    for ratio, one in found:
        if log(most) > (1 - 1e-9) * price:
            break
        if ratio > most:
            most, best = ratio, one
    return most, best


def hostile_confirmation(scene: Scene, price: Fraction) -> Turn:
    """A question about the whole graph whose true answer the edge changes, where there is one."""
    for node in range(NODES):
        candidates = AUDITED.candidates.propose(scene.context, node)
        valid = [
            AUDITED.utility.valid(Reader(scene.graph(has), scene.context, UNLIMITED).whole(candidates))
            for has in (True, False)
        ]
        changed = np.flatnonzero(valid[0] != valid[1])
        if len(changed):
            return confirm_turn(node, candidates[int(changed[0])], price)
    return confirm_turn(scene.edge[0], Intervention(), price)


@final
@dataclass(slots=True)
class Replayed:
    """Accounts that are summed again from rows alone, by code that shares nothing with a ledger's."""

    everything: Fraction = Fraction(0)
    whole: Fraction = Fraction(0)
    edge_level: Fraction = Fraction(0)
    nodes: dict[int, Fraction] = field(default_factory=dict)
    reads: dict[tuple[str, str], list[int]] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any]) -> None:
        """One more row."""
        if row["kind"] != "HELD":
            return
        body, cost = json.loads(row["body"]), Fraction(row["cost"], NANO)
        terms, charged = body["terms"], body.get("nodes", [])
        self.reads[row["analyst"], row["request_id"]] = charged
        if not row["analyst"] and not terms["adjacency"].startswith(WIDEST):
            self.edge_level += cost
            return
        self.everything += cost
        self.whole += 0 if charged else cost
        for node in charged:
            self.nodes[node] = self.nodes.get(node, Fraction(0)) + cost


def replay(ledger: Ledger) -> Replayed:
    """The rows of a ledger, summed again."""
    found = Replayed()
    for row in ledger.rows():
        found.add(row)
    return found


class Asked(NamedTuple):
    """What the auditor knows to be paid: nodes that were read, none for the whole graph, and the price."""

    nodes: list[int]
    price: Fraction


def population(open_ledger: Callable[[Limit], Ledger], seed: int, requests: int = 60) -> list[str]:
    """Random questions of every kind through a vault; returns in what accounts, rows and questions disagree."""
    scene, rng = next(lonely_scenes()), np.random.default_rng(seed)
    ledger = open_ledger(Limit.of("4", per_node="1.5"))
    vault = Vault(scene.graph(True), scene.context, ledger=ledger, method=AUDITED, people_know_their_edges=True)
    paid: dict[str, Asked] = {}
    for number in range(requests):
        name, price = f"request {number}", Fraction(int(rng.integers(1, 60)), 100)
        node, kind = int(rng.integers(NODES)), rng.choice(["release", "release", "select", "confirm", "advice"])
        nodes = rng.permutation(NODES)[:2].tolist() if kind == "select" else [node] * (kind == "release")
        asks: dict[str, Callable[[], object]] = {
            "release": partial(vault.release, node, price, request_id=name),
            "select": partial(vault.select, nodes, price, request_id=name),
            "confirm": partial(vault.confirm, node, Intervention(), price, request_id=name),
            "advice": partial(vault.advise, node, epsilon=price, request_id=name),
        }
        with suppress(BudgetExhausted):
            asks[str(kind)]()
            paid[name] = Asked(sorted(nodes), price)
    with suppress(BudgetExhausted):
        enter(ledger, "a sketch", "0.25", adjacency=EDGE)
    return _disagreements(ledger, paid)


def _disagreements(ledger: Ledger, paid: Mapping[str, Asked]) -> list[str]:
    found, losses = replay(ledger), ledger.losses()
    at_nodes = {
        node: sum((one.price for one in paid.values() if node in one.nodes), Fraction(0)) for node in range(NODES)
    }
    rules = {
        "what is charged is what was read": {
            name: nodes for (_, name), nodes in found.reads.items() if not name.startswith("entry")
        }
        == {name: asked.nodes for name, asked in paid.items()},
        "accounts of nodes are the sums of their rows": dict(ledger.spent_at(range(NODES)))
        == {node: found.nodes.get(node, Fraction(0)) for node in range(NODES)},
        "accounts of nodes are the sums of the questions": dict(ledger.spent_at(range(NODES))) == at_nodes,
        "what counts in full is the sum of its rows": losses.whole == found.whole
        and ledger.balance().spent == found.whole + found.edge_level,
        "the sum of all prices is that of all rows": losses.everything == found.everything,
        "entries for one edge are the sum of their rows": losses.edge_level == found.edge_level,
        "no account is over its limit": max(at_nodes.values()) <= (ledger.limit.per_node or 0),
        "what counts in full is within its limit": found.whole + found.edge_level <= ledger.limit.total,
    }
    return [rule for rule, holds in rules.items() if not holds]


def conduct_of_accounts(open_ledger: Callable[[Limit], Ledger]) -> list[str]:
    """Asks too much, asks again, asks about several nodes; returns every rule of accounts that was broken."""
    scene = next(lonely_scenes())
    ledger = open_ledger(LIMIT)
    vault = Vault(scene.graph(True), scene.context, ledger=ledger, method=AUDITED, people_know_their_edges=True)
    broken: list[str] = []

    def spent(*nodes: int) -> list[Fraction]:
        return list(ledger.spent_at(nodes).values())

    def expect(rule: str, holds: bool) -> None:
        if not holds:
            broken.append(rule)

    def refused(error: type[PrivcfsError], ask: Callable[[], object]) -> bool:
        before = spent(*range(NODES)), ledger.balance(), ledger.head()
        try:
            ask()
        except error:
            return (spent(*range(NODES)), ledger.balance(), ledger.head()) == before
        return False

    try:
        answer = vault.release(1, "1", request_id="one")
        expect("a release is paid at its node alone", spent(1, 0) == [1, 0] and ledger.balance().spent == 0)
        expect("a retry costs nothing", vault.release(1, "1", request_id="one") == answer and spent(1) == [1])
        expect("one id is for one question", refused(RequestConflict, lambda: vault.release(2, "1", request_id="one")))
        expect("an over-ask takes nothing", refused(BudgetExhausted, lambda: vault.release(1, "1.5")))
        expect("an over-ask leaves what was left", not refused(BudgetExhausted, lambda: vault.release(1, "1")))
        expect("an empty account refuses", refused(BudgetExhausted, lambda: vault.release(1, "0.01")))
        vault.release(2, "1")
        expect("an empty account stops nobody else", spent(2) == [1])
        vault.select([2, 3, 4], "0.5")
        expect(
            "a choice among nodes is paid at each", spent(2, 3, 4) == [Fraction(3, 2), Fraction(1, 2), Fraction(1, 2)]
        )
        expect("an empty account refuses a choice", refused(BudgetExhausted, lambda: vault.select([3, 1], "0.1")))
        vault.confirm(5, Intervention(), "1")
        expect("the whole graph counts in full", spent(5) == [0] and ledger.balance().spent == 1)
        vault.advise(6)
        expect("advice is free", spent(6) == [0] and ledger.balance().spent == 1)
        vault.advise(6, epsilon="1")
        expect("advice that reads others' edges counts in full", spent(6) == [0] and ledger.balance().spent == 2)
        expect("the total is kept", refused(BudgetExhausted, lambda: vault.confirm(5, Intervention(), "1.5")))
    except PrivcfsError as error:
        broken.append(f"every allowed request is answered ({type(error).__name__})")
    return broken
