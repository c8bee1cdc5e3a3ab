"""A rehearsal on imagined graphs: public, deterministic, and better than its parts."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from privcfs import Method, Vault
from privcfs.embedded import load_dataset
from privcfs.errors import SettingsError
from privcfs.gate.guidance import Rehearsal
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.gate.method import GUIDED
from privcfs.private.evaluators import imagined as imagining
from privcfs.public.beliefs.plan import short_list
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.costs import Costs
from privcfs.public.candidates.ladders import Ladders
from privcfs.public.candidates.small_sets import SmallSets
from tests.laws import look
from tests.worlds import World, random_pairs, random_world

FEW = Rehearsal(Worlds(number=6))
ONE = Fraction(1)


def prepared(world: World, guide: Rehearsal = FEW, target: int = 0, epsilon: Fraction = ONE) -> SubsetSelection:
    method = Method(SmallSets(), guide=guide)
    candidates = method.candidates.propose(world.context, target)
    mechanism = method.prepare(world.context, candidates, epsilon).mechanism
    assert isinstance(mechanism, SubsetSelection)
    assert len(mechanism.base) == len(candidates)
    return mechanism


def test_the_prepared_draw_is_the_same_whatever_the_private_graph(tmp_path: Path) -> None:
    world = random_world(1, nodes=12)
    other = World(world.context, random_pairs(np.random.default_rng(9), 12, 0.7))
    method = Method(SmallSets(), guide=FEW)
    found = []
    for number, one in enumerate((world, other)):
        vault = Vault(one.graph, one.context, ledger=f"sqlite:///{tmp_path / str(number)}.db", limit="9", method=method)
        vault.release(0, "1")
        found.append((vault.digest, look(one.graph, one.context, 0, method).mechanism("1")))
    assert found[0] == found[1]
    assert prepared(world) == prepared(other)


def test_a_long_list_is_rehearsed_on_few_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    world = random_world(2, nodes=12)
    candidates, utility = SmallSets().propose(world.context, 0), Method().utility
    assert len(Rehearsal(Worlds(20)).belief(world.context, candidates, utility).margins) == 1 + 20
    monkeypatch.setattr(imagining, "MOST_OUTCOMES", 1)
    assert len(Rehearsal(Worlds(21)).belief(world.context, candidates, utility).margins) == 1 + 8


@pytest.mark.parametrize("wrong", [{"number": 0}, {"disclosed": 1.5}, {"degree": -1}])
def test_a_belief_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingsError, match="worlds need a number of at least 1"):
        Worlds(**wrong)  # type: ignore[arg-type]


def optimum(flips: np.ndarray, likelihood: np.ndarray, odds: float) -> float:
    """The best expected validity of any selection whose probabilities stay within the odds: a linear programme."""
    graphs, count = flips.shape
    cost = -np.concatenate([likelihood @ flips, likelihood])
    first = np.hstack([-(odds - 1) * flips, np.eye(graphs)])
    second = np.hstack([np.ones((graphs, count)), np.eye(graphs)])
    sides = np.concatenate([np.zeros(graphs), np.ones(graphs)])
    return -float(linprog(cost, A_ub=np.vstack([first, second]), b_ub=sides, bounds=(0, None)).fun)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_short_list_is_nearly_the_best_that_any_selection_can_have(seed: int, epsilon: float) -> None:
    rng = np.random.default_rng(seed)
    flips = (rng.random((12, 40)) < rng.beta(0.6, 1.5, 40)).astype(np.float32)
    flips[:, 0] = 0
    likelihood, odds = np.full(12, 1 / 12, np.float32), float(np.exp(epsilon))
    chosen, expected = short_list(flips, np.ones(40, np.float32), likelihood, odds)
    hits = flips[:, chosen].sum(axis=1)
    reached = float(likelihood @ (hits + (odds - 1) * (hits > 0)) / (len(chosen) + odds - 1))
    best = optimum(flips.astype(float), likelihood, odds)
    assert expected == pytest.approx(reached, abs=1e-5)
    assert best - 0.03 <= reached <= best + 1e-5


def test_a_list_without_hope_is_still_drawn_from() -> None:
    chosen, worth = short_list(np.zeros((3, 5), np.float32), np.ones(5, np.float32), np.full(3, 1 / 3, np.float32), 2.0)
    assert len(chosen) == 1
    assert worth == 0
    world = random_world(3, nodes=5)
    lonely = Method(SmallSets(allowed=Actionability(frozenset(range(5)), frozenset(range(6)))), guide=FEW)
    assert len(lonely.candidates.propose(world.context, 0)) == 1
    assert look(world.graph, world.context, 0, lonely).probabilities("1").tolist() == [1.0]


def test_cheaper_answers_are_preferred_and_dear_ones_never_drawn() -> None:
    world = random_world(11, nodes=12)
    capped = prepared(world, Rehearsal(Worlds(6), costs=Costs(add=3, most=3)))
    candidates = SmallSets().propose(world.context, 0)
    costs = Costs(add=3, most=3).of(candidates)
    assert costs.max() == 6
    assert sum(capped.base) > 0
    assert all(cost <= 3 for cost, weight in zip(costs, capped.base, strict=True) if weight)
    thrifty, careless = (prepared(world, Rehearsal(Worlds(6), thrift=thrift)) for thrift in (0.4, 0.0))
    sizes = candidates.sizes
    assert np.average(sizes, weights=thrifty.base) < np.average(sizes, weights=careless.base)


def test_the_guided_release_beats_the_paper_s_and_the_free_guess_on_real_nodes() -> None:
    data = load_dataset("cora")
    graph, context = data.private_graph(), data.context()
    rng = np.random.default_rng(5)
    valid, paper = [], []
    for target in rng.choice(data.test, 12, replace=False):
        found = look(graph, context, int(target), GUIDED)
        valid.append(found.probabilities("1") @ found.flips)
        theirs = look(graph, context, int(target), Method())
        paper.append(theirs.probabilities("1") @ theirs.flips)
    assert np.mean(valid) > np.mean(paper) + 0.3


@pytest.mark.parametrize("rule", [SmallSets(), SmallSets(3), Ladders()], ids=repr)
def test_actionability_is_kept(rule: SmallSets | Ladders) -> None:
    from dataclasses import replace

    world = random_world(6, nodes=14)
    allowed = Actionability(frozenset({3, 5}), frozenset({0, 1}), frozenset({3, 4, 9, 10}))
    items = list(replace(rule, allowed=allowed).propose(world.context, 0))
    named = {node for item in items for pair in item.delete + item.add for node in pair}
    assert not named & {3, 5}
    assert {node for item in items for pair in item.add for node in pair} <= {0, 4, 9, 10}
    assert not {feature for item in items for feature in item.mask} & {0, 1}
    assert max(item.size for item in items) <= rule.most
    untouchable = replace(rule, allowed=Actionability(frozenset({0})))
    assert not any(item.delete or item.add for item in untouchable.propose(world.context, 0))


def test_no_intervention_is_said_where_nothing_flips_and_rarely_elsewhere() -> None:
    data = load_dataset("cora")
    graph, context = data.private_graph(), data.context()
    method = Method(SmallSets(), guide=Rehearsal(nothing=0.2))
    said: dict[bool, list[float]] = {True: [], False: []}
    for target in data.test[::80]:
        found = look(graph, context, int(target), method)
        said[bool(found.flips.any())].append(float(found.probabilities("6")[0]))
    assert said[True]
    assert said[False]
    assert min(said[False]) > 0.9
    assert np.mean(said[True]) < 0.1


def test_a_guide_that_makes_no_sense_is_refused() -> None:
    for wrong in ({"thrift": -1.0}, {"nothing": 0.95}):
        with pytest.raises(SettingsError, match=r"nothing must lie from 0 to 0\.9"):
            Rehearsal(**wrong)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="doubt is 0; it must lie above 0"):
        Rehearsal(doubt=0)
