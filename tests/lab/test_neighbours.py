"""Neighbouring methods: witnesses stand what they claim to stand, and the page says what it does not rebuild."""

import numpy as np
import pytest

from privcfs.public.interventions import Intervention
from privcfs_lab.attacks.attack import problem_of
from privcfs_lab.baselines.baseline import Operations, Problem, prediction_after, predictions
from privcfs_lab.baselines.greedy import Greedy, touching
from privcfs_lab.baselines.robo_gexp import RoboGExp
from privcfs_lab.experiments.neighbours import METHODS, OURS, ZERO, Standing, judged
from privcfs_lab.measuring.simulate import Simulation
from privcfs_lab.measuring.targets import POPULATIONS


@pytest.fixture(scope="module")
def cora() -> Simulation:
    return Simulation("cora", 0)


@pytest.fixture(scope="module")
def asked(cora: Simulation) -> Problem:
    return problem_of(cora, POPULATIONS["borderline"](cora))


def test_a_witness_stands_every_further_deletion_by_a_full_forward_pass(cora: Simulation, asked: Problem) -> None:
    before, found = predictions(asked), 0
    for target, answer in zip(asked.targets, RoboGExp().explain(asked), strict=True):
        witness = answer.intervention.delete
        assert answer.flips == bool(witness)
        if not answer.flips or len(touching(cora.graph, target)) > 25:
            continue
        found += 1
        others = [pair for pair in touching(cora.graph, target) if pair not in witness]
        for further in [(), *((pair,) for pair in others)]:
            assert prediction_after(asked, target, Intervention(delete=witness + further)) != before[target]
        assert prediction_after(asked, target, Intervention(delete=tuple(others))) == before[target]
    assert found >= 2


def test_a_greedy_answer_is_found_out_where_a_deletion_undoes_it(cora: Simulation, asked: Problem) -> None:
    before, context = predictions(asked), asked.context()
    greedy, robust = (
        {
            judged(cora.graph, context, target, one.intervention, int(before[target]))
            for target, one in zip(asked.targets, method.explain(asked), strict=True)
            if one.flips
        }
        for method in (Greedy(Operations.EDGES), RoboGExp())
    )
    assert (True, False) in greedy
    assert robust == {(True, True)}


def test_what_may_be_answered_has_probability_one(cora: Simulation) -> None:
    for method in (ZERO, OURS, "greedy search, edges"):
        records = Standing("cora", method).records(cora, 3)
        assert (records["stands"] <= records["valid"] + 1e-12).all()
        assert (records["valid"] <= 1 + 1e-9).all()
        assert np.isfinite(records["size"]).all()


def test_every_method_says_what_it_protects_and_whether_it_is_rebuilt() -> None:
    for name in ("RoboGExp (2404.19519)", "XGNNCert (2502.04224)", "DiCE", "CARLA's recourse", "PCR (2410.13812)"):
        assert METHODS[name].rebuilt
    assert all(one.protects and one.certifies for one in METHODS.values())
    assert all(
        bool(one.measured) == (one.rebuilt in ("ours", "yes") or one.rebuilt.startswith("in part"))
        for one in METHODS.values()
    )


def test_the_empty_answer_flips_nothing(cora: Simulation, asked: Problem) -> None:
    target = asked.targets[0]
    before = int(predictions(asked)[target])
    assert judged(cora.graph, asked.context(), target, Intervention(), before) == (False, False)
