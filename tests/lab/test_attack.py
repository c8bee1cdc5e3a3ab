"""The exact likelihood-ratio attack: known cases, bounds, and the sampled estimate beside it."""

from fractions import Fraction
from math import exp, tanh

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.private.utilities.utility import Scores
from privcfs.public.grid import Grid
from privcfs_lab.audit.distinguish import distinguish, sampled_auc


def test_equal_laws_cannot_be_told_apart() -> None:
    law = np.array([0.2, 0.3, 0.5])
    found = distinguish(law, law)
    assert found.auc == pytest.approx(0.5)
    assert (found.ratio, found.advantage) == (1, 0)


def test_randomised_response_attains_its_ceilings() -> None:
    for epsilon in (0.5, 1, 4):
        keep = exp(epsilon) / (1 + exp(epsilon))
        found = distinguish(np.array([keep, 1 - keep]), np.array([1 - keep, keep]))
        assert found.ratio == pytest.approx(exp(epsilon))
        assert found.advantage == pytest.approx(tanh(epsilon / 2))
        assert found.auc == pytest.approx((1 + tanh(epsilon / 2)) / 2)


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=30), st.integers(0, 1000))
def test_an_auc_is_symmetric_and_bounded_by_the_advantage(weights: list[float], seed: int) -> None:
    first = np.array(weights) / sum(weights)
    second = np.random.default_rng(seed).permutation(first)
    found, back = distinguish(first, second), distinguish(second, first)
    assert found.auc == pytest.approx(back.auc)
    assert found.ratio == pytest.approx(back.ratio)
    assert (1 + found.advantage) / 2 - 1e-9 <= found.auc <= 1 / 2 + found.advantage - found.advantage**2 / 2 + 1e-9


def test_draws_estimate_the_exact_value() -> None:
    rng = np.random.default_rng(0)
    first, second = rng.dirichlet(np.ones(20)), rng.dirichlet(np.ones(20))
    exact = distinguish(first, second).auc
    estimates = [sampled_auc(first, second, 400, rng) for _ in range(30)]
    assert np.mean(estimates) == pytest.approx(exact, abs=0.01)


@pytest.mark.parametrize("share", [Fraction(1, 50), Fraction(1, 4), Fraction(1, 2), Fraction(4, 5)], ids=str)
def test_the_ceiling_of_subset_selection_is_reached_and_not_passed(share: Fraction) -> None:
    mechanism, count = SubsetSelection(share), 200
    front = int(count * share)
    moved = min(front, count - front)
    first, second = np.zeros(count, np.int64), np.zeros(count, np.int64)
    first[:front], second[count - front :] = 1, 1
    laws = [mechanism.probabilities(Scores(one, Grid(1, (0, 1), 1)), Fraction(2)) for one in (first, second)]
    advantage = float(np.maximum(laws[0] - laws[1], 0).sum())
    assert moved
    assert abs(advantage - mechanism.advantage(Fraction(2))) < 1e-9
    assert abs(distinguish(*laws).auc - mechanism.auc(Fraction(2))) < 1e-9
    assert mechanism.auc(Fraction(2)) <= (1 + tanh(1)) / 2 + 1e-12
