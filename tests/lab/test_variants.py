"""The compared draws: laws that sum to one, and the guarantee that each header states."""

from dataclasses import replace
from itertools import combinations
from math import exp

import numpy as np
import pytest
from numpy.typing import NDArray

from privcfs import Method, PrivateGraph, PublicContext
from privcfs.public.candidates.pairs import LinkPredictor
from privcfs.public.candidates.product import Product
from privcfs_lab.measuring.inspection import Inspection, inspect
from privcfs_lab.measuring.quality import release_law
from privcfs_lab.variants import LAWS
from privcfs_lab.variants.inert_masks import InertMasks
from tests.worlds import random_gcn, random_pairs

NODES = 6
SUPPORTS = {"sequential": Product(most_features=0), "per edge": Product(most_pairs=12, most_features=0)}


def world(seed: int) -> tuple[PublicContext, np.random.Generator]:
    rng = np.random.default_rng(seed)
    features = (rng.random((NODES, 9)) < 0.5).astype(np.float32)
    snapshot = np.array([(0, other) for other in range(1, 5)])
    return PublicContext(features, snapshot, random_gcn(rng, 9)), rng


def inspected(context: PublicContext, pairs: NDArray[np.int64], rule: Product) -> Inspection:
    return inspect(PrivateGraph.from_edges(pairs, number_of_nodes=NODES), context, 0, Method(rule))


@pytest.mark.parametrize("law", SUPPORTS)
@pytest.mark.parametrize("seed", range(5))
def test_compared_draws_are_private_for_any_two_graphs(law: str, seed: int) -> None:
    context, rng = world(seed)
    laws = []
    for _ in range(12):
        found = inspected(context, random_pairs(rng, NODES, rng.random()), SUPPORTS[law])
        laws.append(LAWS[law](found, "2", None))
        assert abs(laws[-1].sum() - 1) < 1e-12
    ratios = [(first / second).max() for first in laws for second in laws]
    assert max(ratios) <= exp(2) * (1 + 1e-9)


def hostile(law: str) -> tuple[Inspection, Inspection]:
    """Twelve pairs: one deletion (coins: each by itself) has all the utility on one graph, the rest on the other."""
    rng = np.random.default_rng(0)
    star = np.array([(0, other) for other in range(1, 13)])
    context = PublicContext(np.ones((14, 9)), star, random_gcn(rng, 9))
    found = inspect(PrivateGraph.from_edges(star, number_of_nodes=14), context, 0, Method(SUPPORTS[law]))
    sets = found.candidates.pair_sets
    marked = [len(chosen) == 1 if law == "per edge" else chosen == (0,) for chosen in sets]
    alone = np.array(marked, float) * float(found.range)
    return replace(found, utilities=alone), replace(found, utilities=float(found.range) - alone)


def worst_ratio(law: str, price: str) -> float:
    first, second = (LAWS[law](found, price, None) for found in hostile(law))
    return max(float((first / second).max()), float((second / first).max()))


@pytest.mark.parametrize("law", SUPPORTS)
def test_hostile_scores_never_pass_the_bound(law: str) -> None:
    assert worst_ratio(law, "8") <= exp(8) * (1 + 1e-9)


@pytest.mark.parametrize(("law", "spent"), [("sequential", "16"), ("per edge", "64")])
def test_hostile_scores_reject_a_twin_that_spends_its_price_more_than_once(law: str, spent: str) -> None:
    """The whole price at each of two stages; several times the price on the coins."""
    assert worst_ratio(law, spent) > exp(8)


def test_two_stages_are_what_composition_says() -> None:
    context, rng = world(0)
    found = inspected(context, random_pairs(rng, NODES, 0.6), SUPPORTS["sequential"])
    law = LAWS["sequential"](found, "2", None)
    rate = 1 / (2 * float(found.range))  # half of epsilon 2
    weight = np.exp(rate * found.utilities)
    sets = found.candidates.pair_sets
    single = {chosen: weight[n] for n, chosen in enumerate(sets) if len(chosen) < 2}
    first = {chosen: value / sum(single.values()) for chosen, value in single.items()}
    pair = sets[-1]
    expected = 0.0
    for start in [(pair[0],), (pair[1],)]:
        reachable = [n for n, chosen in enumerate(sets) if set(start) <= set(chosen)]
        expected += first[start] * weight[-1] / weight[reachable].sum()
    assert abs(law[-1] - expected) < 1e-12


def test_at_a_high_price_two_stages_are_greedy() -> None:
    context, rng = world(3)
    found = inspected(context, random_pairs(rng, NODES, 0.6), SUPPORTS["sequential"])
    sets = found.candidates.pair_sets
    first = max((n for n, chosen in enumerate(sets) if len(chosen) < 2), key=lambda n: found.utilities[n])
    beyond = len(sets[first]) + 1
    reachable = [n for n, chosen in enumerate(sets) if set(sets[first]) <= set(chosen) and len(chosen) <= beyond]
    best = max(found.utilities[reachable])
    chances = [
        LAWS["sequential"](found, price, None)[found.utilities >= best - 1e-12].sum() for price in ("1", "8", "64")
    ]
    assert chances == sorted(chances)
    assert chances[0] < 0.5 < 0.75 < chances[-1]


def test_two_stages_refuse_features() -> None:
    context, rng = world(0)
    found = inspected(context, random_pairs(rng, NODES, 0.6), Product())
    with pytest.raises(ValueError, match="at most two pairs and no feature"):
        LAWS["sequential"](found, "1", None)


def test_one_draw_is_the_release_itself() -> None:
    context, rng = world(3)
    found = inspected(context, random_pairs(rng, NODES, 0.6), Product())
    assert np.array_equal(LAWS["one draw"](found, "1", None), release_law(found, "1"))


def test_one_coin_a_pair_needs_every_set() -> None:
    context, rng = world(0)
    found = inspected(context, random_pairs(rng, NODES, 0.6), SUPPORTS["sequential"])
    with pytest.raises(ValueError, match="needs every set of pairs"):
        LAWS["per edge"](found, "1", None)


def test_inert_masks_change_no_prediction() -> None:
    context, rng = world(1)
    graph = PrivateGraph.from_edges(random_pairs(rng, NODES, 0.6), number_of_nodes=NODES)
    joint, inert = (inspect(graph, context, 0, Method(rule)) for rule in (Product(most_features=2), InertMasks()))
    shape = len(inert.candidates.pair_sets), len(inert.candidates.feature_sets)
    table = inert.predictions.reshape(shape)
    assert (table == table[:, :1]).all()
    owned, _ = context.feature_row(0)
    assert not set(inert.candidates.features) & set(owned.tolist())
    assert len(joint.candidates.features) == len(inert.candidates.features)


def test_inert_masks_need_absent_features() -> None:
    rng = np.random.default_rng(0)
    context = PublicContext(np.ones((NODES, 9)), np.array([(0, 1)]), random_gcn(rng, 9))
    with pytest.raises(ValueError, match="too many features"):
        InertMasks().propose(context, 0)


def test_feature_neighbours_are_the_most_similar_and_read_no_graph() -> None:
    features = np.array([[1, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1], [0, 0, 0]], float)
    model = random_gcn(np.random.default_rng(0), 3)
    expected = ((0, 1), (0, 2))
    for snapshot in (np.array([(0, 3)]), np.array(list(combinations(range(5), 2)))):
        context = PublicContext(features, snapshot, model)
        assert LinkPredictor(2).pairs(context, 0) == expected
