"""An attack on one edge from sketches never gets more than is stated, and convicts every broken twin."""

from fractions import Fraction
from math import log

import pytest

from privcfs.public.sketches.sketch import SketchPlan
from privcfs_lab.audit.sketches import (
    TWINS,
    Maker,
    alone,
    convictions,
    laws,
    measured,
    one_person,
    predicted_case,
    small_case,
    together,
)

ONE = Fraction(1)
DRAWS = 400


@pytest.mark.parametrize("plan", [SketchPlan(ONE), SketchPlan(Fraction(0), ONE), SketchPlan(ONE, ONE, partners=6)])
def test_a_sketch_tells_as_much_of_an_edge_as_its_price_and_no_more(plan: SketchPlan) -> None:
    found, bound = alone(small_case(), plan, DRAWS)
    assert found.within
    assert 0.999 * float(plan.epsilon) < found.loss <= float(plan.epsilon)
    assert found.measured == pytest.approx(found.loss, rel=1e-3), "some sketch says all of it"
    assert 0 < bound.epsilon <= found.loss, "what draws prove agrees with the law"


def test_a_pair_of_the_snapshot_loses_nothing() -> None:
    found, bound = alone(small_case(public=True), SketchPlan(ONE, ONE), 100)
    assert (found.loss, float(found.accounts), found.auc, bound.epsilon) == (0.0, 0.0, 0.5, 0.0)
    assert laws(SketchPlan(ONE), hidden=False) == []


def test_a_person_loses_the_price_for_each_edge() -> None:
    ratio = one_person(SketchPlan(ONE, ONE), 5)
    assert 0.999 * 10 < log(ratio) <= 10


def test_a_sketch_and_answers_add_up_to_what_the_ledger_states() -> None:
    found = together(SketchPlan(ONE, ONE), 0)
    assert found.within
    assert found.accounts == 2 * 1 + 1 + 2 == found.limits
    assert found.answers == 2 + 1 + 4
    assert found.measured <= found.loss + 1e-9 <= float(found.accounts)


def test_every_twin_is_convicted_and_what_ships_is_not() -> None:
    seen = list(convictions(DRAWS, lambda _: None))
    assert {one.twin for one in seen} == set(TWINS)
    for one in seen:
        assert one.convicted, one
        assert one.honest_passes, one


def test_one_edge_moves_more_counts_if_classes_are_predicted_privately() -> None:
    assert measured(predicted_case(), Maker(), SketchPlan(Fraction(0), ONE), 100).epsilon <= 1
