from fractions import Fraction

import pytest

from privcfs.errors import BudgetExhausted, SettingsError
from privcfs.gate.accounting import Balance, Limit
from privcfs.public.epsilon import parse_epsilon

TENTH = parse_epsilon("0.1")


def test_ten_charges_of_a_tenth_are_exactly_one() -> None:
    limit, spent = Limit.of("1"), Fraction(0)
    for _ in range(10):
        limit.check(TENTH, spent, spent)
        spent += TENTH
    assert spent == 1
    with pytest.raises(BudgetExhausted, match="1 of the total limit 1 is spent, 0 is left"):
        limit.check(parse_epsilon("0.000000001"), spent, spent)
    assert sum([0.1] * 10) != 1, "what floats would have done"


def test_the_total_limit_comes_first() -> None:
    limit = Limit.of("2", "1")
    with pytest.raises(BudgetExhausted, match="of the total limit 2"):
        limit.check(Fraction(1), Fraction(2), Fraction(1))
    with pytest.raises(BudgetExhausted, match="of the analyst's limit 1"):
        limit.check(Fraction(1), Fraction(1), Fraction(1))


@pytest.mark.parametrize(("total", "each"), [("0", None), ("1", "2"), ("1", "0"), (10**13, None)])
def test_limits_must_make_sense(total: str, each: str | None) -> None:
    with pytest.raises(SettingsError, match="limit"):
        Limit.of(total, each)


@pytest.mark.parametrize("total", [Fraction(1, 3), "10", Fraction(0)], ids=repr)
def test_a_limit_that_could_not_be_read_back_is_refused(total: Fraction) -> None:
    with pytest.raises(SettingsError, match=r"limits must be decimals above 0 .* use Limit\.of"):
        Limit(total)


def test_a_limit_that_is_no_number_is_named() -> None:
    with pytest.raises(SettingsError, match="limit is 'ten'"):
        Limit.of("ten")


def test_left_is_what_the_limit_leaves() -> None:
    assert Balance(Fraction(3), Fraction(1), Fraction(0), 1).left == 2
    assert Balance(None, Fraction(1), Fraction(0), 1).left is None
