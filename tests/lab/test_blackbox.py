"""The black-box auditor: its bound is valid, it misses no broken twin, and it never convicts what ships."""

from functools import partial

import numpy as np
import pytest

from privcfs import Method
from privcfs.gate.mechanisms import MECHANISMS
from privcfs.lab.audit import trial, twins
from privcfs.lab.audit.blackbox import (
    Bound,
    audit,
    clopper_pearson,
    lower_bound,
    most_provable,
    question,
    second_opinion,
)
from privcfs.lab.audit.depth import QUICK
from privcfs.lab.audit.hostile import ONE_AGAINST_MANY, TARGET
from privcfs.private.utilities import UTILITIES


def silent(_: str) -> None:
    """No progress."""


def test_the_bound_is_rarely_above_the_truth() -> None:
    """Two laws whose largest ratio is e: of 400 audits at 95 % confidence, few may say more."""
    first = np.array([0.5, 0.25, 0.25])
    second = np.array([0.5 / np.e, 0.25, 0.75 - 0.5 / np.e])
    rng = np.random.default_rng(0)
    above = 0
    for _ in range(400):
        draws = [rng.choice(3, 400, p=law).tolist() for law in (first, second)]
        above += lower_bound(*draws).convicts(1.0)
    assert above <= 0.05 * 400


def test_the_bound_approaches_the_truth() -> None:
    rng = np.random.default_rng(1)
    draws = [rng.choice(2, 200_000, p=law).tolist() for law in ((0.8, 0.2), (0.4, 0.6))]
    assert np.log(3) - 0.05 < lower_bound(*draws).epsilon < np.log(3)


def test_the_same_answers_prove_nothing() -> None:
    draws = np.random.default_rng(2).choice(5, 1000).tolist()
    assert lower_bound(draws, draws[::-1]).epsilon == 0


def test_limits_are_those_of_clopper_and_pearson() -> None:
    low, high = clopper_pearson(np.array([0, 3, 10]), 10, 0.025)
    assert np.allclose(low, [0, 0.06674, 0.69150], atol=1e-5)
    assert np.allclose(high, [0.30850, 0.65245, 1], atol=1e-5)


def test_answers_that_never_meet_prove_as_much_as_so_many_draws_can() -> None:
    assert lower_bound(["a"] * 1000, ["b"] * 1000).epsilon == pytest.approx(most_provable(1000))


def test_a_second_auditor_agrees() -> None:
    for bound in (Bound(0, 120, 20, 500), Bound(0, 400, 10, 500)):
        ours = lower_bound(_seen(bound.hits), _seen(bound.misses))
        assert ours.hits, ours.misses
        assert second_opinion(ours) == pytest.approx(ours.epsilon, abs=0.15)


def _seen(hits: int) -> list[bool]:
    half = [True] * hits + [False] * (500 - hits)
    return half + half


def test_nothing_that_ships_is_convicted() -> None:
    found = list(trial.acquittals(QUICK, silent))
    assert {(one.mechanism, one.utility) for one in found} == {(m, u) for m in MECHANISMS for u in UTILITIES}
    for one in found:
        assert not one.bound.convicts(float(one.claim)), one
        assert one.truth <= float(one.claim)
    assert max(one.truth for one in found) > 3.5, "the graphs are hostile: the claim is nearly used up"


def test_every_twin_is_convicted_and_the_honest_part_is_not() -> None:
    found = list(trial.convictions(QUICK, silent))
    assert len(found) == 14
    for one in found:
        assert one.convicted == one.tried, one
        assert one.honest_passes, one
        assert one.seen


def test_conviction_has_the_power_that_is_claimed() -> None:
    """Twenty cheap trials here; sixty of every twin stand in docs/results."""
    build = lambda graph: Method(twins.PrivateOrder(graph, ONE_AGAINST_MANY.rule))  # noqa: E731
    convicted = 0
    for _ in range(20):
        vaults = ONE_AGAINST_MANY.vault(build=build), ONE_AGAINST_MANY.vault(trial.LEAF, build=build)
        first, second = (question(vault, TARGET, "1") for vault in vaults)
        convicted += audit(first, second, draws=120).convicts(1.0)
    assert convicted >= 19


def test_a_power_of_60_in_60_is_at_least_95_percent() -> None:
    assert trial.Conviction("", "", 60, 60, "", True).power > 0.95
    assert trial.Conviction("", "", 60, 55, "", True).power < 0.9


def test_the_peeking_measure_is_told_by_nothing_but_its_answers() -> None:
    build = trial._black_box_twins(ONE_AGAINST_MANY)["base measure that peeks"][3]
    first, second = (ONE_AGAINST_MANY.vault(*missing, build=build) for missing in ((), (trial.LEAF,)))
    assert first.digest == second.digest
    assert first.propose(TARGET) == second.propose(TARGET)
    honest = partial(ONE_AGAINST_MANY.vault, build=trial._honest)
    assert honest().propose(TARGET) == first.propose(TARGET)
