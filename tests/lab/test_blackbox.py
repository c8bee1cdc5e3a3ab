"""The black-box auditor: its bound is valid, it misses no broken twin, and it never convicts what ships."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from privcfs.gate.mechanisms import MECHANISMS
from privcfs.private.utilities import UTILITIES
from privcfs_lab.audit import trial
from privcfs_lab.audit.blackbox import (
    Bound,
    clopper_pearson,
    lower_bound,
    most_provable,
    second_opinion,
)
from privcfs_lab.audit.depth import QUICK
from privcfs_lab.audit.hostile import ONE_AGAINST_MANY


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
        assert (ours.hits, ours.misses) == (bound.hits, bound.misses)
        assert second_opinion(ours) == pytest.approx(ours.epsilon, abs=1e-9)


def _seen(hits: int) -> list[bool]:
    half = [True] * hits + [False] * (500 - hits)
    return half + half


def test_nothing_that_ships_is_convicted_and_so_many_draws_could_have() -> None:
    found = list(trial.acquittals(QUICK, silent))
    assert {(one.mechanism, one.utility) for one in found} == {(m, u) for m in MECHANISMS for u in UTILITIES}
    for one in found:
        assert one.within is True, one
    assert max(one.truth for one in found) > 0.9, "the graphs are hostile: the claim is nearly used up"


def test_a_verdict_needs_enough_draws() -> None:
    few = trial.Acquittal("", "", "", "4", Bound(0.5, 10, 5, 60), 3.5)
    assert few.within is None
    assert replace(few, bound=Bound(4.5, 10, 5, 60)).within is False
    assert replace(few, truth=4.1).within is False


def test_every_twin_is_convicted_and_the_honest_part_is_not() -> None:
    found = list(trial.convictions(QUICK, silent))
    assert {one.twin for one in found} >= {
        *("half the sensitivity", "half the sensitivity in the draw alone", "support filtered by validity"),
        *("order that follows private edges", "base measure that peeks", "subset selection times a base measure"),
        *("float32 sampler", "refunds", "unfinished prices do not count", "free retries", "charge after read"),
        *("seeded generator", "error that depends on an edge", "failure that depends on an edge"),
    }
    for one in found:
        assert one.convicted == one.tried, one
        assert one.within, one
        assert one.seen


def test_a_draw_that_is_not_the_stated_law_is_convicted_by_asking() -> None:
    claim, draws, graphs, build = trial._black_box_twins(ONE_AGAINST_MANY)[trial.DRAW_ALONE]
    assert trial._audit(ONE_AGAINST_MANY, graphs, build, claim, draws).convicts(float(claim))


def test_a_power_of_60_in_60_is_at_least_95_percent() -> None:
    assert trial.Conviction("", "", 60, 60, "", True).power > 0.95
    assert trial.Conviction("", "", 60, 55, "", True).power < 0.9
    assert not trial.Conviction("", "", 60, 55, "", True).within
    assert trial.Conviction("", "", 1, 1, "", True).power < 0.06
    assert trial.Conviction("", "", 1, 1, "", True, certain=True).power == 1


def test_the_peeking_measure_is_told_by_nothing_but_its_answers() -> None:
    build = trial._black_box_twins(ONE_AGAINST_MANY)["base measure that peeks"][3]
    first, second = (ONE_AGAINST_MANY.vault(*missing, build=build) for missing in ((), (trial.FIRST,)))
    assert first.digest == second.digest
    assert first.propose(ONE_AGAINST_MANY.target) == second.propose(ONE_AGAINST_MANY.target)
    honest = partial(ONE_AGAINST_MANY.vault, build=trial._honest)
    assert honest().propose(ONE_AGAINST_MANY.target) == first.propose(ONE_AGAINST_MANY.target)
