"""Every mechanism in the table: exact law, exact draw, ratio at most e**epsilon on hostile scores."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.mechanisms.exponential import Exponential
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.mechanisms.worst_case import below_bound, hostile_ratio
from privcfs.gate.randomness import SystemRandomness
from privcfs.private.utilities.gated import Gated
from privcfs.private.utilities.utility import Scores
from privcfs.public.candidates.candidates import Caps
from privcfs.public.grid import Grid

DEFAULT = Gated().grid(Caps(2, 3))
SMALL = Grid(10, (0, 2, 7, 9, 10), 10)
PRICES = [Fraction(1, 10), Fraction(1), Fraction(4), Fraction(8), Fraction(64)]
each = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS.keys())


@each
@pytest.mark.parametrize("epsilon", PRICES, ids=str)
@pytest.mark.parametrize("others", [1, 100, 150])
def test_hostile_scores_never_pass_the_bound(mechanism: Mechanism, epsilon: Fraction, others: int) -> None:
    assert below_bound(hostile_ratio(mechanism, epsilon, others=others), epsilon)


@pytest.mark.parametrize("epsilon", PRICES, ids=str)
def test_the_shipped_grid_is_as_safe_as_the_short_one(epsilon: Fraction) -> None:
    grid = Grid(DEFAULT.denominator, DEFAULT.levels, DEFAULT.span)
    assert below_bound(hostile_ratio(Exponential(), epsilon, grid), epsilon)


@pytest.mark.parametrize("epsilon", [Fraction(1), Fraction(4), Fraction(8)], ids=str)
def test_hostile_scores_reject_the_twin_with_half_the_sensitivity(epsilon: Fraction) -> None:
    assert not below_bound(hostile_ratio(Exponential(), 2 * epsilon), epsilon)


levels = st.sampled_from(SMALL.levels)
vectors = st.integers(1, 12).flatmap(
    lambda size: st.tuples(*(st.lists(levels, min_size=size, max_size=size) for _ in range(2)))
)


@each
@settings(max_examples=60, deadline=None)
@given(pair=vectors, epsilon=st.sampled_from(PRICES))
def test_any_two_score_vectors_keep_the_ratio(
    mechanism: Mechanism, pair: tuple[list[int], list[int]], epsilon: Fraction
) -> None:
    laws = [mechanism.exact_probabilities(Scores(np.array(values), SMALL), epsilon) for values in pair]
    assert all(sum(law) == 1 for law in laws)
    assert all(below_bound(max(a / b, b / a), epsilon) for a, b in zip(*laws, strict=True))


@each
def test_reported_probabilities_are_the_exact_ones(mechanism: Mechanism) -> None:
    rng = np.random.default_rng(0)
    for epsilon in PRICES:
        scores = Scores(rng.choice(SMALL.levels, 40), SMALL)
        reported = mechanism.probabilities(scores, epsilon)
        exact = np.array([float(share) for share in mechanism.exact_probabilities(scores, epsilon)])
        assert np.allclose(reported, exact, rtol=1e-10, atol=0)


@each
def test_probabilities_of_a_full_support_sum_to_one(mechanism: Mechanism) -> None:
    values = np.random.default_rng(1).choice(DEFAULT.levels, 23_621)
    for epsilon in PRICES:
        law = mechanism.probabilities(Scores(values, DEFAULT), epsilon)
        assert abs(law.sum() - 1) < 1e-9
        assert law.min() > 0


@each
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(6)], ids=str)
def test_draws_follow_the_stated_law(mechanism: Mechanism, epsilon: Fraction) -> None:
    scores = Scores(np.array([0, 10, 0, 2, 9, 10, 7, 0, 0, 2]), SMALL)
    expected = mechanism.probabilities(scores, epsilon)
    assert fits(draws(mechanism, scores, epsilon), expected)


@pytest.mark.parametrize("epsilon", [Fraction(2)], ids=str)
def test_a_wrong_law_is_noticed_with_so_many_draws(epsilon: Fraction) -> None:
    scores = Scores(np.array([0, 10, 0, 2, 9, 10, 7, 0, 0, 2]), SMALL)
    assert not fits(draws(Exponential(), scores, epsilon * 13 / 10), Exponential().probabilities(scores, epsilon))


def draws(mechanism: Mechanism, scores: Scores, epsilon: Fraction, count: int = 30_000) -> list[int]:
    randomness = SystemRandomness()
    return [mechanism.draw(scores, epsilon, randomness) for _ in range(count)]


def fits(drawn: list[int], law: Any) -> bool:
    counts = np.bincount(drawn, minlength=len(law))
    return bool(chisquare(counts, law * len(drawn)).pvalue > 1e-6)


def test_opendp_draws_the_same_exponential_mechanism() -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    values, epsilon = np.array([0, 20, 96, 70, 70, 0, 87, 92]), Fraction(4)
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    scale = 2 * DEFAULT.span / float(epsilon)
    second = dp.m.make_noisy_max(*space, dp.zero_concentrated_divergence(), scale=scale)
    law = Exponential().probabilities(Scores(values, DEFAULT), epsilon)
    assert fits([int(second(values)) for _ in range(20_000)], law)
    assert fits(draws(Exponential(), Scores(values, DEFAULT), epsilon, 20_000), law)


def test_opendp_draws_the_same_permute_and_flip() -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    values, epsilon = np.array([0, 20, 96, 70, 70, 0, 87, 92]), Fraction(4)
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.linf_distance(T="i64")
    second = dp.m.make_noisy_max(*space, dp.max_divergence(), scale=2 * DEFAULT.span / float(epsilon))
    law = MECHANISMS["permute-and-flip"].probabilities(Scores(values, DEFAULT), epsilon)
    assert fits([int(second(values)) for _ in range(20_000)], law)


@each
def test_large_and_small_prices_reach_argmax_and_uniform(mechanism: Mechanism) -> None:
    scores = Scores(np.array([0, 10, 2]), SMALL)
    tiny = mechanism.probabilities(scores, Fraction(1, 10**9))
    assert np.allclose(tiny, 1 / 3, atol=1e-9)
    if mechanism is not MECHANISMS["uniform"]:
        assert mechanism.probabilities(scores, Fraction(64))[1] > 1 - 1e-6


def test_permute_and_flip_helps_on_small_supports() -> None:
    values = np.zeros(77, np.int64)
    values[5], values[0] = 19, 4
    scores = Scores(values, Gated().grid(Caps(2, 2)))
    rates = [MECHANISMS[name].probabilities(scores, Fraction(8))[5] for name in ("exponential", "permute-and-flip")]
    assert rates[0] < rates[1] < 1.4 * rates[0]


@each
def test_the_attackers_ceiling_holds_for_hostile_scores(mechanism: Mechanism) -> None:
    for epsilon in PRICES[1:4]:
        ceiling = mechanism.advantage(epsilon)
        for share in (1, 50):
            first, second = np.zeros(100, np.int64), np.full(100, 10)
            first[:share], second[:share] = 10, 0
            laws = [mechanism.probabilities(Scores(values, SMALL), epsilon) for values in (first, second)]
            assert np.maximum(laws[0] - laws[1], 0).sum() <= ceiling + 1e-9


@each
def test_one_candidate_is_always_drawn(mechanism: Mechanism) -> None:
    scores = Scores(np.array([0]), Grid(10, (0,), 0))
    assert mechanism.draw(scores, Fraction(1), SystemRandomness()) == 0
    assert mechanism.exact_probabilities(scores, Fraction(1)) == [1]


@pytest.mark.parametrize(("name", "halved"), [("exponential", 1), ("permute-and-flip", 2)])
def test_regret_stays_below_theorem_2_and_its_analogue(name: str, halved: int) -> None:
    """P(regret >= t) <= n e^(-x t), and half of that for permute-and-flip, on the worst scores and on random ones."""
    rng, epsilon = np.random.default_rng(0), Fraction(20)
    crowd = np.zeros(200, np.int64)
    crowd[3] = 10
    for values in (crowd, rng.choice(SMALL.levels, 200), rng.choice(SMALL.levels, 3)):
        law = MECHANISMS[name].probabilities(Scores(values, SMALL), epsilon)
        regrets = (values.max() - values) / SMALL.denominator
        for t in np.unique(regrets[regrets > 0]):
            bound = len(values) / halved * np.exp(-float(epsilon) * t / (2 * float(SMALL.range)))
            assert law[regrets >= t].sum() <= bound + 1e-12
