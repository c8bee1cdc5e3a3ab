"""The promise itself: support, sensitivity and ratio for one edge, one node and the whole graph."""

from fractions import Fraction

import numpy as np
import pytest

from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.mechanisms.exponential import Exponential
from privcfs.private.graph import PrivateGraph
from privcfs.private.utilities import UTILITIES
from privcfs.private.utilities.gated import Gated
from privcfs.public.candidates.candidates import CandidateRule
from privcfs_lab.audit.certify import BOUNDARY, SMALL, boundary_contexts, certify, no_flip_law
from privcfs_lab.audit.checks import (
    Finding,
    Pairs,
    Setting,
    as_pairs,
    compare,
    edge_neighbours,
    node_neighbours,
    worst,
)
from privcfs_lab.audit.twins import FilteredSupport, Overconfident, PrivateOrder
from tests.worlds import random_pairs, random_world

NODES = 8


def neighbours(kind: str, pairs: Pairs, rng: np.random.Generator) -> list[Pairs]:
    if kind == "edge":
        return list(edge_neighbours(pairs, NODES))
    if kind == "node":
        return list(node_neighbours(pairs, NODES, rng))
    return [as_pairs(set()), *(random_pairs(rng, NODES, density) for density in (0.2, 0.5, 0.8, 1.0))]


@pytest.mark.parametrize("kind", ["edge", "node", "whole graph"])
@pytest.mark.parametrize("utility", UTILITIES)
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_release_is_private_for_edges_nodes_and_whole_graphs(kind: str, utility: str, mechanism: str) -> None:
    epsilon, rng = Fraction(4), np.random.default_rng(0)
    total = Finding()
    for seed in range(4):
        world = random_world(seed)
        setting = Setting(world.context, 0, lambda _: SMALL, UTILITIES[utility], MECHANISMS[mechanism], epsilon)
        found = (compare(setting, world.pairs, other) for other in neighbours(kind, world.pairs, rng))
        total = total.worse(worst(found))
    assert total.within(UTILITIES[utility].grid(SMALL.caps).range, epsilon)
    if mechanism != "uniform":
        assert total.ratio > 1.5, "the check compares graphs that do differ"


def rejected(rule_of: object) -> bool:
    total = Finding()
    for seed in range(6):
        world = random_world(seed)
        setting = Setting(world.context, 0, rule_of, Gated(), Exponential(), Fraction(4))  # type: ignore[arg-type]
        total = total.worse(
            worst(compare(setting, world.pairs, other) for other in edge_neighbours(world.pairs, NODES))
        )
    return not total.within(Gated().grid(SMALL.caps).range, Fraction(4))


def test_the_check_rejects_a_filtered_support_and_a_private_order() -> None:
    def filtered(graph: PrivateGraph) -> CandidateRule:
        return FilteredSupport(graph, SMALL)

    def ordered(graph: PrivateGraph) -> CandidateRule:
        return PrivateOrder(graph, SMALL)

    assert rejected(filtered)
    assert rejected(ordered)
    assert not rejected(lambda _: SMALL)


def test_random_graphs_alone_do_not_always_convict_half_the_sensitivity() -> None:
    """Why hostile scores are needed: on most random graphs a mechanism that is not private stays within the bound."""
    convicted = 0
    for seed in range(6):
        world = random_world(seed)
        setting = Setting(world.context, 0, lambda _: SMALL, Gated(), Overconfident(), Fraction(1))
        found = worst(compare(setting, world.pairs, other) for other in edge_neighbours(world.pairs, NODES))
        convicted += found.ratio > np.exp(1)
    assert 0 < convicted < 6


@pytest.mark.parametrize(("printed", "expected"), [(Fraction(1), 0.972), (None, 0.970)], ids=["as printed", "ours"])
def test_the_no_flip_case_matches_its_closed_form(printed: Fraction | None, expected: float) -> None:
    law = no_flip_law(printed, Exponential())
    x = 8 * 0.2 / (2 * (1 if printed else 0.95))
    assert len(law) == 77
    assert abs(law[0] - np.exp(x) / (76 + np.exp(x))) < 1e-12
    assert round(1 - law[0], 3) == expected


def test_the_boundary_cases_are_what_they_say() -> None:
    from privcfs import Method
    from privcfs_lab import inspect

    sizes = {}
    for name, (context, pairs) in boundary_contexts().items():
        graph = PrivateGraph.from_edges(pairs, number_of_nodes=NODES)
        found = inspect(graph, context, 0, Method(candidates=BOUNDARY))
        sizes[name] = len(found.candidates), int(found.flips.sum())
    assert sizes == {"no feasible flip": (77, 0), "exactly one valid candidate": (77, 1), "empty support": (1, 0)}


def test_the_certificate_table_has_no_breach() -> None:
    rows = list(certify(graphs=10))
    assert [row.check for row in rows if not row.passed] == []
    assert sum("twin must be rejected" in row.check for row in rows) == 8
