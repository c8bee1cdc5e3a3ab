"""Worst cases: the construction, the ceiling of a list, and searches that find at least what sampling finds."""

from fractions import Fraction
from itertools import product
from math import log

import numpy as np
import pytest

from privcfs import Method
from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.mechanisms.exponential import Exponential
from privcfs.gate.method import GUIDED
from privcfs.private.utilities import UTILITIES
from privcfs.private.utilities.gated import Gated
from privcfs.private.utilities.utility import Scores
from privcfs_lab.audit.distinguish import Law, distinguish
from privcfs_lab.audit.hostile import HALF_AGAINST_HALF, ONE_AGAINST_MANY, HostileWorld
from privcfs_lab.audit.twins import Overconfident
from privcfs_lab.audit.worst_case import Climbed, exhaustive, list_ceiling, score_ends
from privcfs_lab.measuring.inspection import inspect
from privcfs_lab.measuring.simulate import Simulation


def laws(world: HostileWorld, method: Method, epsilon: str) -> list[Law]:
    return [
        inspect(world.graph(*missing), world.context, world.target, method).probabilities(epsilon)
        for missing in ((), (world.secret,))
    ]


def test_one_edge_moves_every_score_by_the_whole_range() -> None:
    for world in (ONE_AGAINST_MANY, HALF_AGAINST_HALF):
        here, there = (
            inspect(world.graph(*missing), world.context, world.target, Method(world.rule)).utilities
            for missing in ((), (world.secret,))
        )
        moved = np.abs(here - there)
        assert moved[0] == 0
        assert np.allclose(moved[1:], 0.8)


@pytest.mark.parametrize("epsilon", ["1", "8"])
def test_the_construction_has_its_closed_form_and_tends_to_epsilon(epsilon: str) -> None:
    shares = []
    for leaves in (5, 20, 120):
        world = HostileWorld(1, leaves)
        loss = log(distinguish(*laws(world, Method(world.rule), epsilon)).ratio)
        assert loss == pytest.approx(log(world.ratio(float(epsilon))), abs=1e-9)
        shares.append(loss / float(epsilon))
    assert shares[0] < shares[1] < shares[2] < 1
    assert HostileWorld(1, 10**9).ratio(float(epsilon)) == pytest.approx(np.exp(float(epsilon)), rel=1e-4)


def test_half_against_half_comes_close_to_the_ceiling_of_any_attack() -> None:
    world = HostileWorld(60, 60)
    told = distinguish(*laws(world, Method(world.rule), "1"))
    assert 0.98 * Exponential().advantage(Fraction(1)) < told.advantage <= Exponential().advantage(Fraction(1))


@pytest.mark.parametrize("utility", UTILITIES)
def test_every_graph_on_five_nodes_stays_within_the_lists_ceiling(utility: str) -> None:
    world = HostileWorld(1, 1)
    method = Method(world.rule, UTILITIES[utility])
    every = exhaustive(world.context, world.target, method, {"it": method.mechanism}, "4")
    found = {adjacency: loss for (_, adjacency), loss in every.items()}
    ceiling = list_ceiling(
        world.rule.propose(world.context, world.target), method.utility, method.mechanism, Fraction(4)
    )
    assert found["edge"] <= found["node"] <= found["any graph"] <= ceiling + 1e-9 <= 4 + 1e-9
    assert found["edge"] > 1


def test_exhaustion_convicts_an_overconfident_mechanism() -> None:
    world = HostileWorld(1, 1)
    loud = Method(world.rule, mechanism=Overconfident(8))
    assert exhaustive(world.context, world.target, loud, {"loud": loud.mechanism}, "1")["loud", "edge"] > 1


@pytest.mark.parametrize("utility", UTILITIES)
def test_scores_of_every_graph_lie_between_their_ends(utility: str) -> None:
    world = HostileWorld(1, 1)
    candidates = world.rule.propose(world.context, world.target)
    low, high = score_ends(candidates, UTILITIES[utility])
    for missing in product(*([(), (node,)] for node in range(1, 5))):
        gone = [node for part in missing for node in part]
        scores = inspect(world.graph(*gone), world.context, world.target, Method(world.rule, UTILITIES[utility])).scores
        assert (low <= scores.unseal()).all()
        assert (scores.unseal() <= high).all()
    failed = UTILITIES[utility].failed(candidates).unseal()
    assert (low <= failed).all()
    assert (failed <= high).all()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_no_scores_within_the_ends_pass_the_ceiling(mechanism: str) -> None:
    world = HostileWorld(2, 3)
    candidates, rng = world.rule.propose(world.context, world.target), np.random.default_rng(0)
    low, high = score_ends(candidates, Gated())
    grid, drawn = Gated().grid(candidates.caps), MECHANISMS[mechanism]
    ceiling = list_ceiling(candidates, Gated(), drawn, Fraction(4))
    for _ in range(300):
        vectors = [np.where(rng.random(len(low)) < 0.5, low, high) for _ in range(2)]
        shares = [drawn.probabilities(Scores(vector, grid), Fraction(4)) for vector in vectors]
        assert np.abs(np.log(shares[0] / shares[1])).max() <= ceiling + 1e-9


def test_climbing_finds_more_than_sampling_and_stays_within_the_ceiling() -> None:
    found = Climbed("citeseer", "borderline").records(Simulation("citeseer", 0), 2)
    assert (found["loss"] >= found["sampled"]).all()
    assert (np.diff(found["loss"].reshape(-1, 3), axis=1) >= 0).all()
    assert (found["loss"] <= found["ceiling"]).all()
    assert found["loss"].max() > 2


def test_climbing_stays_below_the_price_of_a_guided_release_and_convicts_half_the_sensitivity() -> None:
    world = Simulation("citeseer", 0)
    guided = Climbed("citeseer", "borderline", GUIDED, "1").records(world, 1)
    assert 0.3 < guided["loss"].max() <= 1 + 1e-9
    assert (guided["ceiling"] == 1).all()
    twin = Climbed("citeseer", "borderline", Method(mechanism=Overconfident()), "4").records(world, 1)
    assert twin["loss"].max() > 4
