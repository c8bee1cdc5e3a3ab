"""The law of a draw, read off the draw itself."""

from fractions import Fraction

import numpy as np
import pytest

from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.mechanisms.exponential import Exponential
from privcfs.gate.mechanisms.permute_and_flip import PermuteAndFlip
from privcfs.gate.mechanisms.rank_profile import MatchedProfile, SubsetSelection
from privcfs.gate.randomness import Randomness, SystemRandomness
from privcfs.private.utilities.gated import Gated
from privcfs.private.utilities.utility import Scores
from privcfs.public.candidates.candidates import Caps
from privcfs.public.grid import Grid
from privcfs_lab.audit.sampler import TOLERANCE, Scripted, deviation, drawn_law
from privcfs_lab.audit.twins import Float32, MeasuredSubset

SHORT = Grid(10, (0, 2, 7, 9, 10), 10)
SCORES = Scores(np.array([0, 10, 2, 9, 7, 0]), SHORT)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(8), Fraction(64)], ids=str)
@pytest.mark.parametrize("name", MECHANISMS)
def test_every_draw_has_exactly_the_law_that_it_states(name: str, epsilon: Fraction) -> None:
    assert deviation(MECHANISMS[name], SCORES, epsilon) <= TOLERANCE


def test_a_float32_sampler_is_caught_and_its_rare_candidates_become_impossible() -> None:
    assert deviation(Float32(), SCORES, Fraction(8)) > 1e-7
    values = np.zeros(400, np.int64)
    values[7] = 96
    grid = Gated().grid(Caps(2, 3))
    law = drawn_law(Float32(), Scores(values, grid), Fraction(64))
    assert sum(share == 0 for share in law) > 300
    assert min(MECHANISMS["exponential"].exact_probabilities(Scores(values, grid), Fraction(64))) > 0


def test_the_check_reads_the_draw_and_not_the_formula() -> None:
    """A sampler that is exact and not private passes here: other checks are named for it."""
    assert deviation(MeasuredSubset(), SCORES, Fraction(4)) <= TOLERANCE


class Partial(PermuteAndFlip):  # type: ignore[misc]
    """Tosses the right coins and prefers the last head."""

    def draw(self, scores: Scores, epsilon: Fraction, randomness: Randomness) -> int:
        first = super().draw(scores, epsilon, randomness)
        return first if randomness.integer(7) < 50 else int(scores.unseal().argmax())


def test_an_uneven_choice_among_heads_is_caught() -> None:
    assert deviation(Partial(), SCORES, Fraction(1)) > 0.1


def test_a_scripted_number_is_played_and_counted() -> None:
    script = Scripted(5, {8: 7})
    assert [script.integer(bits) for bits in (8, 3, 2)] == [7, 5, 1]
    assert Scripted(-1).integer(4) == 15
    assert script.asked == [8, 3, 2]


@pytest.mark.parametrize(
    "mechanism",
    [
        SubsetSelection(Fraction(1, 7), (3, 0, 5, 1, 9, 2)),
        MatchedProfile((3, 0, 5, 1, 9, 2)),
        Exponential((3, 0, 5, 1, 9, 2)),
    ],
    ids=lambda one: one.name,
)
def test_the_draw_has_the_stated_law_under_a_base_measure(mechanism: SubsetSelection) -> None:
    scores = Scores(np.array([0, 10, 0, 2, 9, 7]), SHORT)
    stated = mechanism.exact_probabilities(scores, Fraction(3))
    for real, law in zip(drawn_law(mechanism, scores, Fraction(3)), stated, strict=True):
        assert real == law == 0 or abs(real / law - 1) <= TOLERANCE
    assert np.allclose(mechanism.probabilities(scores, Fraction(3)), [float(one) for one in stated])
    assert mechanism.draw(scores, Fraction(3), SystemRandomness()) != 1
