"""Private snapshots: paid first, exact to the last word, useful where the price is high."""

import json
from fractions import Fraction
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from privcfs import Limit, PrivateGraph
from privcfs.embedded import load_dataset
from privcfs.errors import BudgetExhausted, InputError, SettingsError
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.gate.mechanisms.worst_case import below_bound
from privcfs.gate.randomness import SystemRandomness
from privcfs.gate.snapshots import (
    HEIGHTS,
    ONE_EDGE,
    WORD,
    Noise,
    _read,
    _written,
    draw_snapshot,
    levels,
    publish_snapshot,
)
from tests.worlds import random_world

PRICES = [Fraction(1, 10), Fraction(1), Fraction(4), Fraction(8), Fraction(20)]


@pytest.mark.parametrize("heights", [1, HEIGHTS])
@pytest.mark.parametrize("epsilon", PRICES, ids=str)
def test_one_edge_moves_each_noisy_value_by_at_most_its_price(epsilon: Fraction, heights: int) -> None:
    missing = levels(epsilon, heights)
    edge = missing[::-1]
    assert sum(missing) == WORD
    assert min(missing) > 0
    assert len(missing) == 2 * heights
    for one, other in zip(missing, edge, strict=True):
        assert below_bound(Fraction(max(one, other), min(one, other)), epsilon)


@pytest.mark.parametrize("epsilon", PRICES[1:4], ids=str)
def test_a_twin_that_rounds_down_is_noticed(epsilon: Fraction) -> None:
    missing = levels(epsilon, 1)
    assert not below_bound(Fraction(missing[0] + missing[1] // 1000, missing[1] - missing[1] // 1000), epsilon)


def test_randomised_response_keeps_and_invents_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    nodes = 160
    pairs = np.array([(u, w) for u in range(nodes) for w in range(u + 1, nodes) if rng.random() < 0.3], np.int64)
    graph = PrivateGraph.from_edges(pairs, number_of_nodes=nodes)
    drawn = {tuple(pair) for pair in draw_snapshot(graph, Fraction(2), Noise(), SystemRandomness()).tolist()}
    real = {tuple(pair) for pair in pairs.tolist()}
    possible = nodes * (nodes - 1) // 2
    kept = len(drawn & real) / len(real)
    invented = len(drawn - real) / (possible - len(real))
    assert abs(kept - 0.8808) < 0.03
    assert abs(invented - 0.1192) < 0.03


def test_lap_graph_publishes_as_many_pairs_as_asked_and_better_ones_at_a_higher_price() -> None:
    data = load_dataset("cora")
    graph, real = data.private_graph(), {tuple(pair) for pair in data.edges().tolist()}
    shares = []
    for epsilon in (4, 8, 12):
        drawn = draw_snapshot(graph, Fraction(epsilon), Noise(2000), SystemRandomness())
        assert len(drawn) == 2000
        shares.append(len({tuple(pair) for pair in drawn.tolist()} & real) / 2000)
    assert shares[0] < shares[1] < shares[2]
    assert shares[2] > 0.9


def test_a_snapshot_is_paid_first_and_stays_the_same(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "budget.db", Limit.of("9"))
    graph = random_world(1, nodes=12).graph
    first = publish_snapshot(graph, ledger, "6", Noise(5), request_id="snapshot")
    again = publish_snapshot(graph, ledger, "6", Noise(5), request_id="snapshot")
    assert (first == again).all()
    assert ledger.balance().spent == 6
    assert ledger.adjacencies() == {ONE_EDGE}
    with pytest.raises(BudgetExhausted, match="epsilon 6 does not fit"):
        publish_snapshot(graph, ledger, "6", Noise())


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="publish at least one"):
        Noise(0)
    large = PrivateGraph.from_edges(np.empty((0, 2), np.int64), number_of_nodes=50_000)
    with pytest.raises(InputError, match="for 2 to 40,000 nodes"):
        publish_snapshot(large, SqliteLedger(tmp_path / "b.db", Limit.of("9")), "1", Noise())


@pytest.mark.parametrize("nodes", [2, 3, 9, 40])
def test_a_stored_snapshot_is_read_back_and_has_a_public_length(nodes: int) -> None:
    rng = np.random.default_rng(nodes)
    every = np.array(list(combinations(range(nodes), 2)))
    some = [every[rng.random(len(every)) < share] for share in (0, 0.3, 1)]
    assert all((_read(_written(pairs, nodes), nodes) == pairs).all() for pairs in some)
    assert len({len(_written(pairs, nodes)) for pairs in some}) == 1
    old = json.dumps({"snapshot": every.tolist()})
    assert (_read(old, nodes) == every).all(), "what version 0.1 stored stays readable"
    assert len(old) != len(json.dumps({"snapshot": some[1].tolist()})) or nodes == 2, "its length told how many"
