"""Rank profiles: the stated laws, any public base measure, and never worse than the exponential mechanism."""

from fractions import Fraction
from math import exp

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcfs import Method, Vault
from privcfs.errors import SettingsError
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.mechanisms.exponential import Exponential
from privcfs.gate.mechanisms.rank_profile import FINE, MatchedProfile, SubsetSelection, matched_odds
from privcfs.gate.mechanisms.worst_case import below_bound
from privcfs.gate.randomness import SystemRandomness
from privcfs.private.utilities.utility import Scores
from privcfs.public.grid import Grid
from tests.worlds import random_world

ENDS = Grid(1, (0, 1), 1)
LEVELS = Grid(10, (0, 2, 7, 9, 10), 10)
PRICES = [Fraction(1, 10), Fraction(1), Fraction(4), Fraction(8)]


def good(count: int, among: int) -> Scores:
    return Scores(np.array([1] * count + [0] * (among - count)), ENDS)


def test_the_published_example_of_77_candidates() -> None:
    """One flip among 77, epsilon 8: exponential mechanism 0.418, matched profile 0.505."""
    found = [float(one.probabilities(good(1, 77), Fraction(8))[0]) for one in (Exponential(), MatchedProfile())]
    assert np.allclose(found, [0.418, 0.505], atol=1e-3)


@pytest.mark.parametrize("epsilon", PRICES, ids=str)
@pytest.mark.parametrize("among", [2, 3, 40, 400])
def test_the_matched_profile_is_never_below_the_exponential_mechanism(epsilon: Fraction, among: int) -> None:
    for count in {1, among // 3 or 1, among - 1}:
        ours, theirs = (
            float(one.probabilities(good(count, among), epsilon)[:count].sum())
            for one in (MatchedProfile(), Exponential())
        )
        assert ours >= theirs - 1e-12
    a = Fraction(matched_odds(epsilon, among), FINE)
    ends = a * ((among - 1) * a + 1) / (a + among - 1)
    assert below_bound(ends, epsilon)
    more = a + Fraction(1, 2**40)
    assert not below_bound(more * ((among - 1) * more + 1) / (more + among - 1), epsilon)


def test_subset_selection_has_the_full_epsilon_in_its_odds() -> None:
    law = SubsetSelection(Fraction(1, 10)).probabilities(good(4, 40), Fraction(2))
    assert np.allclose(law[:4].sum(), 4 * exp(2) / (4 * exp(2) + 36))
    split = SubsetSelection(Fraction(1, 16)).exact_probabilities(good(2, 40), Fraction(2))
    assert split[0] > split[2] > 0, "two and a half in front: the third takes part of both"
    assert split[2] > split[3]


bases = st.lists(st.integers(0, 50), min_size=6, max_size=6).filter(any)
values = st.lists(st.sampled_from(LEVELS.levels), min_size=6, max_size=6)


@pytest.mark.parametrize("kind", ["subset", "matched", "exponential"])
@settings(max_examples=80, deadline=None)
@given(base=bases, first=values, second=values, epsilon=st.sampled_from(PRICES), share=st.fractions(0, 1))
def test_any_public_base_measure_keeps_the_ratio(
    kind: str, base: list[int], first: list[int], second: list[int], epsilon: Fraction, share: Fraction
) -> None:
    share = min(max(share.limit_denominator(1000), Fraction(1, 1000)), Fraction(999, 1000))
    mechanism = {
        "subset": SubsetSelection(share, tuple(base)),
        "matched": MatchedProfile(tuple(base)),
        "exponential": Exponential(tuple(base)),
    }[kind]
    laws = [mechanism.exact_probabilities(Scores(np.array(one), LEVELS), epsilon) for one in (first, second)]
    assert all(sum(law) == 1 for law in laws)
    for weight, a, b in zip(base, *laws, strict=True):
        assert (a == 0) == (weight == 0) == (b == 0)
        assert weight == 0 or below_bound(max(a / b, b / a), epsilon)


def test_what_could_not_be_drawn_exactly_is_refused() -> None:
    """Sums of 64 bits would wrap silently, and with them the law."""
    for share in (Fraction(0.1), Fraction(3, 2), Fraction(-1, 2), 0.25):
        with pytest.raises(SettingsError, match="share must be a fraction from 0 to 1"):
            SubsetSelection(share)  # type: ignore[arg-type]
    for base in ((0, 0), (-1, 2), (1, 2**62), (1.0, 2.0)):
        for kind in (SubsetSelection, MatchedProfile, Exponential):
            with pytest.raises(SettingsError, match="a base measure"):
                kind(base=base)  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="less than 2"):
        SubsetSelection(Fraction(1, 2**20), (2**42, 1))


def test_a_base_measure_for_another_list_is_refused_before_anything_is_paid() -> None:
    world = random_world(5)
    vault = Vault(world.graph, world.context, ledger=MemoryLedger(), method=Method(mechanism=Exponential((1, 2, 3))))
    with pytest.raises(SettingsError, match="3 weights for"):
        vault.release(0, "1")
    assert vault.balance().spent == 0


def test_a_base_measure_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="one weight for each candidate"):
        SubsetSelection(base=(1, 2)).draw(good(1, 3), Fraction(1), SystemRandomness())
