"""Own-edge reading, accounts of nodes and advice: what the audit compares, and the twins that it must reject."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import combinations
from math import log
from pathlib import Path

import numpy as np
import pytest

from privcfs.gate.accounting import Limit
from privcfs.gate.entries import enter
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs_lab.audit import accounts, own_trial
from privcfs_lab.audit.accounts import (
    EDGE,
    LIMIT,
    ONE,
    Plan,
    attack,
    conduct_of_accounts,
    hostile_choice,
    hostile_confirmation,
    hostile_scene,
    population,
    release_turn,
    replay,
    select_turn,
)
from privcfs_lab.audit.checks import as_pairs
from privcfs_lab.audit.own_edges import (
    HONEST,
    PRICE,
    Place,
    advice_differences,
    alike_at,
    around,
    compare_alike,
    every_graph,
    holds_for_any,
    law_of,
    own_variants,
    small_context,
    with_own,
    worst_of_any,
)
from privcfs_lab.models.modules import untrained

NODES = 12


def graph(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return as_pairs({pair for pair in combinations(range(NODES), 2) if rng.random() < 0.3})


def test_every_graph_on_five_nodes_that_agrees_at_the_target_has_the_same_law() -> None:
    found = compare_alike(every_graph(1, 3))
    assert found.pairs == 3 * 63
    assert not found.different


@pytest.mark.parametrize("kind", ["as it is", "isolated", "a hub", "no public pair is an edge", "public pairs alone"])
def test_unusual_targets_have_the_same_law_whatever_is_elsewhere(kind: str) -> None:
    context, rng = small_context(3, NODES), np.random.default_rng(0)
    pairs = own_variants(context, 2, graph(3), rng)[kind]
    place = around(kind, context, 2, pairs, 10, rng)
    own = {tuple(pair) for pair in pairs.tolist() if 2 in pair}
    for other in place.alike:
        assert {tuple(pair) for pair in other.tolist() if 2 in pair} == own
    assert len({other.tobytes() for other in place.alike}) > 4, "graphs do differ elsewhere"
    assert not compare_alike(iter([place])).different


def test_an_empty_graph_is_like_one_in_which_the_target_is_alone() -> None:
    context = small_context(3, NODES)
    place = Place("empty", context, 2, graph(0)[:0], (with_own(graph(3), 2, []),))
    assert not compare_alike(iter([place])).different


@pytest.mark.parametrize(("kind", "layers"), [("GraphSAGE", 2), ("GCN", 3)])
def test_torch_modules_too(kind: str, layers: int) -> None:
    context = small_context(0, NODES, untrained(kind, layers, features=6, classes=3))
    rng = np.random.default_rng(1)
    assert not compare_alike(iter([around(kind, context, 0, graph(1), 5, rng)])).different
    selves = [
        Place("", context, target, pairs, ())
        for target in range(6)
        for pairs in own_variants(context, target, graph(1), rng).values()
    ]
    number, ratio = worst_of_any(iter(selves))
    assert number == 15 * 6
    assert ratio is not None
    assert ratio > 1
    assert holds_for_any(ratio)


def test_any_two_graphs_are_within_the_price_and_use_all_of_it() -> None:
    number, ratio = worst_of_any(every_graph(1))
    assert number == 120
    assert ratio is not None
    assert holds_for_any(ratio)
    assert log(ratio) > 0.99 * PRICE
    assert not holds_for_any(ratio * Fraction(1_000_001, 1_000_000))
    assert not holds_for_any(None)


def test_a_law_has_everything_on_which_an_answer_depends() -> None:
    """A difference of any part is seen."""
    context = small_context(3, NODES)
    law = law_of(context, 2, graph(3))
    other = law_of(context, 2, with_own(graph(3), 2, [0, 1, 5, 7]))
    assert other != law
    assert (other.terms, other.candidates, other.mechanism) == (law.terms, law.candidates, law.mechanism)
    assert other.work > law_of(context, 2, with_own(graph(3), 2, [])).work
    assert law_of(context, 2, graph(3), seconds=1e-9).given_up


def test_a_coalition_sees_the_same_bytes() -> None:
    context, rng = small_context(2, NODES), np.random.default_rng(0)
    for members in ((0,), (0, 3), (1, 4, 7)):
        graphs = [graph(2), *alike_at(graph(2), members, NODES, 3, rng)]
        assert advice_differences(context, members, graphs) == []
    others = [graph(2), *alike_at(graph(2), (1,), NODES, 3, rng)]
    assert advice_differences(context, (0,), others), "her own edges do change it"


@pytest.fixture(scope="module")
def everyone() -> list[accounts.Turn]:
    return [release_turn(node) for node in range(accounts.NODES)]


def test_the_attack_on_one_edge_reaches_twice_the_limit_and_never_passes_it(everyone: list[accounts.Turn]) -> None:
    found = attack(hostile_scene(), Plan(everyone, runs=3))
    assert found.answers == 2 * accounts.NODES
    assert found.accounts == found.limits == 2 * (LIMIT.per_node or 0) == 4
    assert 0.999 * 4 < found.loss <= 4
    assert found.measured <= 4
    assert 0.85 < found.auc < 1
    assert found.within


def test_whole_graph_questions_and_sketches_count_in_full(everyone: list[accounts.Turn]) -> None:
    scene = hostile_scene()
    found = attack(scene, Plan([*everyone, hostile_confirmation(scene, ONE)], sketch=ONE))
    assert found.limits == 4 + 2 + 1
    assert 0.999 * 7 < found.loss <= 7
    assert found.within


def test_an_edge_between_others_is_not_told_by_any_account(everyone: list[accounts.Turn]) -> None:
    scene = hostile_scene()
    silent = [turn for node, turn in enumerate(everyone) if node not in scene.edge]
    found = attack(scene, Plan(silent))
    assert [found.ratio, found.accounts] == [1, 0]
    assert (found.measured, found.auc) == (0.0, 0.5)
    assert found.answers == 2 * (accounts.NODES - 2)


def test_a_verdict_needs_loss_accounts_limits_and_balances() -> None:
    scene, nodes = hostile_choice()
    found = attack(scene, Plan([select_turn(nodes)]))
    assert found.within
    assert not replace(found, accounts=Fraction(1)).within
    assert not replace(found, limits=Fraction(1)).within
    assert not replace(found, measured=2.1).within
    assert not replace(found, balances_agree=False).within


def make_sqlite(folder: Path) -> Callable[[Limit], Ledger]:
    return lambda limit: SqliteLedger(folder / "budget.db", limit)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_accounts_equal_an_independent_replay_of_the_rows(kind: str, tmp_path: Path) -> None:
    for seed in range(2):
        folder = tmp_path / str(seed)
        folder.mkdir()
        assert population(MemoryLedger if kind == "memory" else make_sqlite(folder), seed) == []
    assert conduct_of_accounts(MemoryLedger if kind == "memory" else make_sqlite(tmp_path)) == []


def test_a_replay_tells_entries_for_one_edge_from_others() -> None:
    ledger = MemoryLedger(LIMIT)
    enter(ledger, "a sketch", "1", adjacency=EDGE)
    found = replay(ledger)
    assert [found.edge_level, found.everything, found.whole] == [1, 0, 0]
    assert not found.nodes


TWINS = {
    *("a reader one hop too far", "a charge at one end only", "a charge for existing edges only"),
    *("a region from private neighbours, in the list", "a region from private neighbours, in the charge"),
    *("accounts that refuse nothing", "an over-ask that empties an account", "advice from the whole graph"),
    *("advice for a node that is not one's own", "advice in the ledger's chain"),
    *("a plan made with own edges and kept", "a release that prints its own score"),
    *("a time-out under another question's load",),
}


def test_every_twin_is_rejected_and_the_honest_part_is_not() -> None:
    found = list(own_trial.convictions(lambda _: None))
    assert {one.twin for one in found} == TWINS
    for one in found:
        assert one.convicted == 1, one
        assert one.honest_passes, one
        assert one.seen


def test_the_law_is_the_same_under_load_and_paid_advice_is_the_same_in_the_ledger() -> None:
    assert own_trial.same_under_load(HONEST)
    assert own_trial.advice_paid_alike()
