"""The certification checks: the paper's exhaustive small graphs, its boundary cases, and what it lacks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, product
from math import exp
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.mechanisms.exponential import Exponential
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.mechanisms.worst_case import below_bound, hostile_ratio
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.private.utilities import UTILITIES
from privcfs.private.utilities.gated import Gated
from privcfs.private.utilities.soft import Soft
from privcfs.private.utilities.utility import Utility
from privcfs.public.candidates.candidates import CandidateRule
from privcfs.public.candidates.pairs import OneHop
from privcfs.public.candidates.product import Product
from privcfs.public.candidates.top_influence import TopInfluence
from privcfs.public.context import PublicContext
from privcfs.public.models.gcn import GCN
from privcfs_lab.audit.checks import (
    Finding,
    Pairs,
    Setting,
    as_pairs,
    compare,
    edge_neighbours,
    law_of,
    node_neighbours,
    worst,
)
from privcfs_lab.audit.twins import FilteredSupport, Overconfident, PrivateOrder, Understated

NODES, FEATURES = 8, 6
SMALL = Product(pairs=OneHop(4), features=TopInfluence(4), most_pairs=2, most_features=1)
BOUNDARY = Product(pairs=OneHop(3), features=TopInfluence(4), most_pairs=2, most_features=2)
FOUR, EIGHT = Fraction(4), Fraction(8)
Neighbours = Callable[[Pairs], Iterator[Pairs]]


@final
@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: what was compared, the worst that was seen, the bound, the verdict."""

    check: str
    pairs: int
    sensitivity: str
    ratio: str
    bound: str
    passed: bool


def certify(graphs: int = 40) -> Iterator[Row]:
    """Every check, and then a broken twin for each that it must reject."""
    worlds = [_world(seed) for seed in range(graphs)]
    yield from _small_graphs(worlds)
    yield from _boundary_rows()
    yield from _hostile_rows()
    yield from _twin_rows(worlds)


def _world(seed: int) -> tuple[PublicContext, Pairs]:
    """A random graph on eight nodes with a random snapshot and a random model."""
    rng = np.random.default_rng(seed)
    features = sp.csr_array((rng.random((NODES, FEATURES)) < 0.7).astype(np.float32))
    model = GCN(rng.normal(size=(FEATURES, 8)).astype(np.float32), rng.normal(size=(8, 3)).astype(np.float32))
    snapshot = _random_pairs(rng, 0.6)
    return PublicContext(features, snapshot, model), _random_pairs(rng, 0.4)


def _random_pairs(rng: np.random.Generator, density: float) -> Pairs:
    return as_pairs({pair for pair in combinations(range(NODES), 2) if rng.random() < density})


def _edges(pairs: Pairs) -> Iterator[Pairs]:
    return edge_neighbours(pairs, NODES)


def _nodes(pairs: Pairs) -> Iterator[Pairs]:
    return node_neighbours(pairs, NODES, np.random.default_rng(len(pairs)))


def _anything(pairs: Pairs) -> Iterator[Pairs]:
    rng = np.random.default_rng(len(pairs))
    yield as_pairs(set())
    yield as_pairs(set(combinations(range(NODES), 2)))
    for _ in range(20):
        yield _random_pairs(rng, rng.random())


def _small_graphs(worlds: list[tuple[PublicContext, Pairs]]) -> Iterator[Row]:
    plans: list[tuple[str, Neighbours, Utility, Mechanism, Fraction | None]] = [
        ("paper's check, gated, range 1 as printed", _edges, Gated(), Exponential(), Fraction(1)),
        ("paper's check, gated", _edges, Gated(), Exponential(), None),
        ("paper's check, soft", _edges, Soft(), Exponential(), None),
    ]
    scopes: list[tuple[str, Neighbours]] = [("node", _nodes), ("any graph", _anything)]
    for mechanism, utility, (scope, neighbours) in product(MECHANISMS, UTILITIES, scopes):
        title = f"{scope} against {scope}, {utility}, {mechanism}"
        plans.append((title, neighbours, UTILITIES[utility], MECHANISMS[mechanism], None))
    for title, neighbours, utility_, mechanism_, printed in plans:
        range_ = printed or utility_.grid(SMALL.caps).range
        finding = worst(
            compare(Setting(context, 0, lambda _: SMALL, utility_, mechanism_, FOUR, printed), pairs, other)
            for context, pairs in worlds
            for other in neighbours(pairs)
        )
        yield _row(f"{title}, epsilon 4", finding, range_, FOUR)


def _row(title: str, finding: Finding, range_: Fraction, epsilon: Fraction) -> Row:
    return Row(
        title,
        finding.pairs,
        f"{float(finding.sensitivity):.3f} of {range_}",
        f"{finding.ratio:.4g}",
        f"{exp(epsilon):.4g}",
        finding.within(range_, epsilon),
    )


def boundary_contexts() -> dict[str, tuple[PublicContext, Pairs]]:
    """The paper's three boundary cases: nothing can flip, one candidate flips, nothing is proposed."""
    rng = np.random.default_rng(0)
    features = np.zeros((NODES, FEATURES), np.float32)
    features[0, :4] = 1
    features[1:, 4:] = rng.random((NODES - 1, 2))
    star = as_pairs({(0, 1), (0, 2), (0, 3)})
    constant = GCN(np.zeros((FEATURES, 1), np.float32), np.zeros((1, 2), np.float32))
    empty = sp.csr_array((NODES, FEATURES), dtype=np.float32)
    return {
        "no feasible flip": (PublicContext(features, star, constant), star),
        "exactly one valid candidate": (_one_flip(features, star, rng), star),
        "empty support": (PublicContext(empty, as_pairs(set()), constant), star),
    }


def _one_flip(features: NDArray[np.float32], star: Pairs, rng: np.random.Generator) -> PublicContext:
    """A random model whose bias lies between the two candidates that reduce its margin most."""
    first, second = (rng.random(shape).astype(np.float32) for shape in ((FEATURES, 4), (4, 1)))
    readout = np.column_stack([second, 0 * second])
    context = PublicContext(features, star, GCN(first, readout))
    graph = PrivateGraph.from_edges(star, number_of_nodes=NODES)
    margins = evaluate(graph, context, BOUNDARY.propose(context, 0), UNLIMITED).logits[0]
    lowest = np.sort(margins)[:2]
    bias = np.array([0, lowest.mean()], np.float32)
    return PublicContext(features, star, GCN(first, readout, second_bias=bias))


def _boundary_rows() -> Iterator[Row]:
    for name, (context, pairs) in boundary_contexts().items():
        for printed in (Fraction(1), None):
            setting = Setting(context, 0, lambda _: BOUNDARY, Gated(), Exponential(), EIGHT, printed)
            finding = worst(compare(setting, pairs, other) for other in edge_neighbours(pairs, NODES))
            label = "range 1 as printed" if printed else "our range"
            yield _row(f"boundary: {name}, {label}, epsilon 8", finding, printed or _range(BOUNDARY), EIGHT)
    for printed in (Fraction(1), None):
        yield _closed_form(printed)


def _range(rule: CandidateRule) -> Fraction:
    return Gated().grid(rule.caps).range


def _closed_form(printed: Fraction | None, mechanism: Mechanism | None = None, expected: bool = True) -> Row:
    """P(empty) = e**x / (76 + e**x) with x = epsilon 0.2 / (2 range), where no candidate flips."""
    law = no_flip_law(printed, mechanism or Exponential())
    x = 8 * 0.2 / (2 * float(printed or _range(BOUNDARY)))
    empty = exp(x) / (len(law) - 1 + exp(x))
    title = f"closed form at {len(law)} candidates, {'range 1' if printed else 'our range'}: invalid release"
    title = f"boundary: {title}" if expected else f"twin must be rejected: half the sensitivity, by {title}"
    agrees = bool(abs(law[0] - empty) < 1e-12)
    return Row(title, 1, "-", f"{1 - law[0]:.4%}", f"{1 - empty:.4%}", agrees == expected)


def no_flip_law(printed: Fraction | None, mechanism: Mechanism) -> NDArray[np.float64]:
    """The release distribution where no candidate flips, at epsilon 8."""
    context, pairs = boundary_contexts()["no feasible flip"]
    setting = Setting(context, 0, lambda _: BOUNDARY, Gated(), mechanism, EIGHT, printed)
    return law_of(setting, pairs)[2]


def _hostile_rows() -> Iterator[Row]:
    for name, mechanism in MECHANISMS.items():
        for epsilon in (Fraction(1), FOUR, EIGHT):
            title = f"hostile scores, one against 100, {name}, epsilon {epsilon}"
            yield _hostile_row(title, hostile_ratio(mechanism, epsilon), epsilon, expected=True)


def _hostile_row(title: str, ratio: Fraction, epsilon: Fraction, expected: bool) -> Row:
    passed = below_bound(ratio, epsilon) == expected
    return Row(title, 1, "the whole range", f"{float(ratio):.4g}", f"{exp(epsilon):.4g}", passed)


def _twin_rows(worlds: list[tuple[PublicContext, Pairs]]) -> Iterator[Row]:
    """Passed means: the check rejected its twin."""
    title = "twin must be rejected: half the sensitivity, by hostile scores, epsilon 4"
    yield _hostile_row(title, hostile_ratio(Overconfident(), FOUR), FOUR, expected=False)
    yield _closed_form(None, Overconfident(), expected=False)
    twins: dict[str, tuple[Neighbours, Setting]] = {}
    context = worlds[0][0]
    honest = Setting(context, 0, lambda _: SMALL, Gated(), Exponential(), FOUR)
    scopes: list[tuple[str, Neighbours]] = [("paper's check", _edges), ("node", _nodes), ("any graph", _anything)]
    for scope, neighbours in scopes:
        loud = replace(honest, mechanism=Overconfident(8))
        twins[f"an eighth of the sensitivity, by ratio, {scope}"] = neighbours, loud
    twins["half the range, by measured sensitivity"] = _edges, replace(honest, utility=Understated())
    filtered = replace(honest, rule=lambda graph: FilteredSupport(graph, SMALL))
    twins["support filtered by validity, by comparing supports"] = _edges, filtered
    ordered = replace(honest, rule=lambda graph: PrivateOrder(graph, SMALL))
    twins["order that follows private edges, by comparing supports"] = _edges, ordered
    for name, (neighbours, setting) in twins.items():
        finding = worst(
            compare(replace(setting, context=context), pairs, other)
            for context, pairs in worlds[:10]
            for other in neighbours(pairs)
        )
        range_ = setting.utility.grid(SMALL.caps).range
        row = _row(f"twin must be rejected: {name}, epsilon 4", finding, range_, FOUR)
        yield replace(row, passed=not row.passed)
