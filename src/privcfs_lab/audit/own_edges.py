"""Own-edge reading and advice, compared exactly: what leaves is the same on all graphs that agree at whoever asks."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import combinations
from typing import NamedTuple, final

import numpy as np
import scipy.sparse as sp

from privcfs.gate.accounting import Limit
from privcfs.gate.contracts import Pure
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.mechanisms.worst_case import below_bound
from privcfs.gate.method import OWN_EDGES, Method
from privcfs.gate.own_guidance import OwnEdgeRehearsal
from privcfs.gate.questions.question import Asker, PublicSide
from privcfs.gate.questions.release import ReleaseQuestion
from privcfs.gate.vault import Vault
from privcfs.private.allowance import Allowance, Overrun
from privcfs.private.graph import PrivateGraph
from privcfs.private.reader import Reader
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext
from privcfs.public.models.gcn import GCN
from privcfs.public.models.model import Model
from privcfs_lab.audit.checks import Pairs, as_pairs
from privcfs_lab.audit.conduct import seen

AUDITOR = Asker("auditor", "one")
PRICE = Fraction(4)
PLENTY = 3600.0  # nominal seconds of counted work
HUB = 300
# A plan that is shipped often leaves one candidate where a graph is small, and then nothing depends on the graph. One
# that ranks and judges on the same graph believes in luck, and chooses among many.
AUDITED = replace(OWN_EDGES, guide=OwnEdgeRehearsal(each=1))
Pair = tuple[int, int]
MakeReader = Callable[[PrivateGraph, PublicContext, Allowance, tuple[int, ...]], Reader]


@final
@dataclass(frozen=True, slots=True)
class Practice:
    """How a release by own edges is made from a private graph: honest unless a broken twin takes a part's place."""

    method: Callable[[PrivateGraph], Method] = field(default=lambda _: AUDITED)
    reader: MakeReader = Reader
    allowance: Callable[[float], Allowance] = Allowance


HONEST = Practice()
SHIPPED = Practice(lambda _: OWN_EDGES)


class Law(NamedTuple):
    """Everything on which an answer by own edges depends."""

    terms: str  # of the request: who is charged, how much, and how long the answer is
    candidates: Candidates
    mechanism: Mechanism
    scores: tuple[int, ...]
    probabilities: tuple[Fraction, ...]
    work: int  # counted units
    given_up: bool


def law_of(
    context: PublicContext, target: int, pairs: Pairs, practice: Practice = HONEST, seconds: float = PLENTY
) -> Law:
    """The exact law of a release about the target, and all that it follows from."""
    graph = PrivateGraph.from_pairs(pairs, context.number_of_nodes)
    side = PublicSide(context, practice.method(graph), Pure(), Fraction(1, 100))
    question = ReleaseQuestion(side, AUDITOR, target, PRICE)
    request, allowance = question.priced, practice.allowance(seconds)
    scores, given_up = question.fallback, True
    with suppress(Overrun):
        scores = question.score(practice.reader(graph, context, allowance, question.nodes))
        given_up = False
    law = tuple(question.mechanism.exact_probabilities(scores, PRICE))
    values = tuple(scores.unseal().tolist())
    terms = repr((request.terms, request.counted, request.room))
    return Law(terms, question.candidates, question.mechanism, values, law, allowance.spent, given_up)


def loss(first: Law, second: Law) -> Fraction | None:
    """The largest exact ratio of probabilities between two laws; None, no finite number, where supports differ."""
    if (first.terms, first.candidates) != (second.terms, second.candidates):
        return None
    both = list(zip(first.probabilities, second.probabilities, strict=True))
    if any((a == 0) != (b == 0) for a, b in both):
        return None
    return max(max(a / b, b / a) for a, b in both if a)


@final
@dataclass(frozen=True, slots=True)
class Place:
    """One target in one private graph over a public context, and graphs that have the same pairs at the target."""

    name: str
    context: PublicContext
    target: int
    pairs: Pairs
    alike: tuple[Pairs, ...]


class Compared(NamedTuple):
    """How many pairs of graphs were compared, and for which places the law was not the same."""

    pairs: int
    different: tuple[str, ...]


def compare_alike(places: Iterator[Place], practice: Practice = HONEST) -> Compared:
    """The law of a release at every place, on its graph and on every graph that agrees with it at the target."""
    number, different = 0, []
    for place in places:
        first = law_of(place.context, place.target, place.pairs, practice)
        others = [law_of(place.context, place.target, pairs, practice) for pairs in place.alike]
        number += len(others)
        different += [place.name] * any(other != first for other in others)
    return Compared(number, tuple(dict.fromkeys(different)))


def worst_of_any(places: Iterator[Place], practice: Practice = HONEST) -> tuple[int, Fraction | None]:
    """Pairs of graphs, and the largest ratio between laws of one target on any two of them; None for no bound.

    The graphs of places with the same context and target are compared with each other, each once for each law.
    """
    laws: dict[tuple[str, int], list[Law]] = {}
    for place in places:
        laws.setdefault((place.context.digest, place.target), []).append(
            law_of(place.context, place.target, place.pairs, practice)
        )
    number, ratio = 0, Fraction(1)
    for found in laws.values():
        for first, second in combinations(found, 2):
            number += 1
            told = loss(first, second)
            if told is None:
                return number, None
            ratio = max(ratio, told)
    return number, ratio


def holds_for_any(ratio: Fraction | None) -> bool:
    """Whether the ratio is at most e to the price, decided in rationals."""
    return ratio is not None and below_bound(ratio, PRICE)


def small_context(seed: int, nodes: int, model: Model | None = None) -> PublicContext:
    """Random features and, unless it is given, a random GCN, over a snapshot of about half of all pairs."""
    rng = np.random.default_rng(seed)
    features = sp.csr_array((rng.random((nodes, 6)) < 0.6).astype(np.float32))
    weights = [rng.normal(size=shape).astype(np.float32) for shape in ((6, 8), (8, 3))]
    snapshot = as_pairs({pair for pair in combinations(range(nodes), 2) if rng.random() < 0.5})
    return PublicContext(features, snapshot, model or GCN(*weights))


def every_graph(models: int, most: int = 16) -> Iterator[Place]:
    """All graphs on five nodes, grouped by the pairs at the target, or the first so many groups of each model.

    Each group has one set of own pairs and all 64 sets of pairs elsewhere.
    """
    own = [(0, other) for other in range(1, 5)]
    far = list(combinations(range(1, 5), 2))
    for seed in range(models):
        context = small_context(seed, 5)
        for chosen in _subsets(own)[:most]:
            graphs = [as_pairs(chosen | elsewhere) for elsewhere in _subsets(far)]
            yield Place("every graph on five nodes", context, 0, graphs[0], tuple(graphs[1:]))


def _subsets(pairs: Sequence[Pair]) -> list[set[Pair]]:
    """Every subset, the last ones of a mixed order first, so that a few of them are not all small."""
    numbers = np.random.default_rng(0).permutation(2 ** len(pairs))
    return [{pair for position, pair in enumerate(pairs) if number >> position & 1} for number in numbers.tolist()]


def around(
    name: str, context: PublicContext, target: int, pairs: Pairs, number: int, rng: np.random.Generator
) -> Place:
    """So many graphs with other pairs elsewhere: one near the target, some or all rewired, none, or a new hub."""
    own = pairs[(pairs == target).any(axis=1)]
    rest = pairs[(pairs != target).all(axis=1)]
    near = np.setdiff1d(own.ravel(), [target])
    kinds = (_one_near, _some_rewired, _all_rewired, _nothing_else, _hub_beside)
    alike = [kinds[turn % len(kinds)](rest, near, target, context.number_of_nodes, rng) for turn in range(number)]
    return Place(name, context, target, pairs, tuple(np.concatenate([own, one]) for one in alike))


def _flipped(rest: Pairs, pairs: set[Pair]) -> Pairs:
    return as_pairs({(int(u), int(w)) for u, w in rest} ^ pairs)


def _one_near(rest: Pairs, near: Pairs, target: int, nodes: int, rng: np.random.Generator) -> Pairs:
    """One pair of a neighbour is there or not: what a reader one hop too far would see first."""
    one = int(rng.choice(near)) if len(near) else int(rng.choice(_others(nodes, target)))
    other = int(rng.choice(_others(nodes, target, one)))
    return _flipped(rest, {(min(one, other), max(one, other))})


def _some_rewired(rest: Pairs, _: Pairs, target: int, nodes: int, rng: np.random.Generator) -> Pairs:
    chosen = [sorted(rng.choice(_others(nodes, target), 2, replace=False).tolist()) for _ in range(20)]
    return _flipped(rest, {(one, other) for one, other in chosen})


def _all_rewired(rest: Pairs, _: Pairs, target: int, nodes: int, rng: np.random.Generator) -> Pairs:
    drawn = np.sort(rng.choice(_others(nodes, target), (len(rest), 2)), axis=1)
    return np.unique(drawn[drawn[:, 0] < drawn[:, 1]], axis=0)


def _nothing_else(*_: object) -> Pairs:
    return as_pairs(set())


def _hub_beside(rest: Pairs, near: Pairs, target: int, nodes: int, rng: np.random.Generator) -> Pairs:
    """A neighbour of the target gets very many neighbours."""
    one = int(rng.choice(near)) if len(near) else int(rng.choice(_others(nodes, target)))
    ends = rng.permutation(_others(nodes, target, one))[:HUB].tolist()
    return _flipped(rest, {(min(one, end), max(one, end)) for end in ends})


def _others(nodes: int, *without: int) -> Pairs:
    return np.setdiff1d(np.arange(nodes), without)


def with_own(pairs: Pairs, target: int, others: Sequence[int]) -> Pairs:
    """The same graph with these neighbours of the target in the place of its own."""
    rest = pairs[(pairs != target).all(axis=1)]
    own = as_pairs({(min(target, other), max(target, other)) for other in others if other != target})
    return np.concatenate([rest, own])


def own_variants(context: PublicContext, target: int, pairs: Pairs, rng: np.random.Generator) -> dict[str, Pairs]:
    """What a target can be: as it is, isolated, a hub, without an edge that is public, or only with such edges."""
    shown = np.array(context.snapshot.neighbours(target), np.int64)
    strangers = rng.permutation(np.setdiff1d(_others(context.number_of_nodes, target), shown))
    return {
        "as it is": pairs,
        "isolated": with_own(pairs, target, []),
        "a hub": with_own(pairs, target, strangers[:HUB].tolist()),
        "no public pair is an edge": with_own(pairs, target, strangers[: max(len(shown), 2)].tolist()),
        "public pairs alone": with_own(pairs, target, shown.tolist()),
        "an empty graph": as_pairs(set()),
    }


def alike_at(pairs: Pairs, members: Sequence[int], nodes: int, number: int, rng: np.random.Generator) -> list[Pairs]:
    """Graphs that have the same pairs at every member, and others elsewhere; the last has no pair elsewhere."""
    is_own = np.isin(pairs, members).any(axis=1)
    own, rest = pairs[is_own], pairs[~is_own]
    free = _others(nodes, *members)
    found = []
    for _ in range(number - 1):
        drawn = np.sort(rng.choice(free, (max(len(rest), 3), 2)), axis=1)
        found.append(np.concatenate([own, np.unique(drawn[drawn[:, 0] < drawn[:, 1]], axis=0)]))
    return [*found, own]


MakeVault = Callable[[PrivateGraph, PublicContext], Vault]


def advising(
    graph: PrivateGraph, context: PublicContext, ledger: Ledger | None = None, method: Method | None = None
) -> Vault:
    """A vault that gives advice."""
    kept = MemoryLedger(Limit.of("10")) if ledger is None else ledger
    return Vault(graph, context, ledger=kept, method=method, simulation=True, people_know_their_edges=True)


def person_requests(classes: int) -> dict[str, Callable[[Vault, int], object]]:
    """What a person may ask for without a price, or with one that is refused."""
    return {
        "advice": lambda vault, node: vault.advise(node).to_json(),
        "one change": lambda vault, node: vault.advise(node, alternatives=0).to_json(),
        **{f"told {told}": partial(_told, told) for told in range(classes)},
        "told no class": lambda vault, node: vault.advise(node, told=classes),
        "a price above all limits": lambda vault, node: vault.advise(node, epsilon="64"),
    }


def _told(told: int, vault: Vault, node: int) -> str:
    return vault.advise(node, told=told).to_json()


def advice_seen(vault: Vault, members: Sequence[int]) -> dict[str, str]:
    """Everything that these people see of what the vault has for them, byte for byte, with errors and accounts."""
    requests = person_requests(vault.context.number_of_classes)
    found = {
        f"{node}: {name}": seen(partial(request, vault, node)) for node in members for name, request in requests.items()
    }
    return found | {"the balance": seen(vault.balance), "the ledger's rows": str(list(vault.ledger.rows()))}


def advice_differences(
    context: PublicContext, members: Sequence[int], graphs: Sequence[Pairs], make: MakeVault = advising
) -> list[str]:
    """What a coalition is told differently on graphs that agree at all of its members."""
    first, *others = (
        advice_seen(make(PrivateGraph.from_pairs(pairs, context.number_of_nodes), context), members) for pairs in graphs
    )
    return sorted({name for other in others for name in first if other[name] != first[name]})
