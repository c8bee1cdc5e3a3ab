from fractions import Fraction

import numpy as np
import pytest

from privcfs.errors import SettingsError
from privcfs.private.evaluators.outcomes import Outcomes
from privcfs.private.utilities.gated import Gated
from privcfs.private.utilities.soft import Soft
from privcfs.private.utilities.utility import Scores
from privcfs.private.utilities.weights import Weights
from privcfs.public.candidates.candidates import Candidates, Caps, subsets
from privcfs.public.grid import Grid

DEFAULT = Caps(2, 3)


def outcomes(logits: list[list[list[float]]], effective: list[int]) -> Outcomes:
    """Three pair sets (none, one pair, two pairs) by two feature sets (none, one)."""
    candidates = Candidates(
        0, DEFAULT, ((0, 1), (0, 2)), (), (5,), pair_sets=((), (0,), (0, 1)), feature_sets=subsets(1, 1)
    )
    by_class = np.array(logits).transpose(1, 0, 2).reshape(len(logits[0]), -1)
    return Outcomes(candidates, np.ascontiguousarray(by_class), np.array(effective))


STAYS, FLIPS = [2.0, 1.0], [1.0, 2.0]


def example() -> Outcomes:
    by_set = [[STAYS, FLIPS], [FLIPS, STAYS], [FLIPS, FLIPS]]
    return outcomes(np.array(by_set).transpose(0, 2, 1).tolist(), [0, 1, 1])


def test_weights_must_be_exact_and_sum_to_one() -> None:
    third = Fraction(1, 3)
    assert Weights(third, third, third).denominator(DEFAULT) == 30
    for wrong in ((third, third, Fraction(1, 2)), (Fraction(2), Fraction(-1), Fraction(0)), (0.7, 0.2, 0.1)):
        with pytest.raises(SettingsError, match="three non-negative fractions that sum to 1"):
            Weights(*wrong)


@pytest.mark.parametrize(
    ("caps", "expected"),
    [
        (DEFAULT, Fraction(24, 25)),
        (Caps(2, 1), Fraction(14, 15)),
        (Caps(2, 2), Fraction(19, 20)),
        (Caps(2, 0), Fraction(9, 10)),
    ],
)
def test_the_range_is_a_fraction_of_the_configuration(caps: Caps, expected: Fraction) -> None:
    assert Gated().grid(caps).range == expected
    assert Soft().grid(caps).range == Fraction(4, 5)


def test_the_default_grid_counts_hundredths() -> None:
    grid = Gated().grid(DEFAULT)
    assert grid.denominator == 100
    assert grid.levels == (0, 20, 70, 74, 75, 78, 79, 80, 82, 83, 84, 86, 87, 88, 92, 96)
    assert grid.span == 96


def test_a_rule_that_proposes_nothing_has_no_range() -> None:
    for utility in (Gated(), Soft()):
        assert utility.grid(Caps(0, 0)).span == 0


def test_gated_scores_follow_the_definition() -> None:
    scores = Gated().score(example()).unseal().reshape(3, 2).tolist()
    assert scores == [[20, 70 + 16 + 10], [70 + 16 + 10, 0], [70 + 12 + 5, 70 + 8 + 5]]


def test_soft_scores_follow_the_definition() -> None:
    values = [[[3.0, 2.0], [0.0, 0.0]], [[3.0, 3.0], [0.0, 0.0]], [[0.0, 5.0], [1.0, 0.0]]]
    scores = Soft().score(outcomes(values, [0, 0, 2])).unseal().reshape(3, 2).tolist()
    margin = np.tanh(1.5), np.tanh(1.0)
    tenths = int(10 * (1 - margin[1] / margin[0]))
    assert scores == [[30, 7 * tenths + 16 + 10], [16, 12], [70 + 12 + 10, 8 + 10]]


def test_an_original_tie_is_no_division_by_zero() -> None:
    scores = Soft().score(outcomes([[[1.0, 1.0], [1.0, 1.0]]] * 3, [0, 0, 0])).unseal()
    assert scores.reshape(3, 2)[0].tolist() == [30, 26]


def test_a_tie_goes_to_the_smaller_class_in_flips_and_predictions_alike() -> None:
    tied = outcomes([[[1.0, 1.0], [2.0, 1.0]]] * 3, [0, 0, 0])
    assert tied.original() == 1
    assert tied.flips()[:2].tolist() == [False, True]
    assert tied.predictions()[:2].tolist() == [1, 0]


def test_scores_outside_the_public_grid_are_refused() -> None:
    with pytest.raises(ArithmeticError, match="outside the public grid"):
        Scores(np.array([0, 3]), Grid(100, (0, 2), 2))
