import json
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcfs import Intervention, Release
from privcfs.errors import BadEpsilon, InputError
from privcfs.public.epsilon import parse_epsilon, show
from privcfs.public.release import Guarantee


def test_an_intervention_is_sorted_and_unique() -> None:
    intervention = Intervention(delete=((5, 2), (2, 5), (1, 0)), add=((9, 3),), mask=(7, 1, 7))
    assert intervention == Intervention(delete=((0, 1), (2, 5)), add=((3, 9),), mask=(1, 7))
    assert intervention.size == 5
    assert str(intervention) == "delete 0-1, delete 2-5, add 3-9, mask feature 1, mask feature 7"
    assert str(Intervention()) == "no intervention"
    assert Intervention.from_dict(intervention.to_dict()) == intervention


def test_a_pair_is_never_both_deleted_and_added() -> None:
    with pytest.raises(InputError, match=r"pair \(1, 2\) is both deleted and added"):
        Intervention(delete=((1, 2),), add=((2, 1),))
    with pytest.raises(InputError, match="not node 3 to itself"):
        Intervention(delete=((3, 3),))


@given(st.integers(1, 64 * 10**9))
def test_a_price_survives_being_shown(nano: int) -> None:
    price = Fraction(nano, 10**9)
    assert parse_epsilon(show(price)) == price


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", 1),
        (" 0.1 ", Fraction(1, 10)),
        (2, 2),
        (Decimal("0.25"), Fraction(1, 4)),
        (".5", Fraction(1, 2)),
        ("+3.", 3),
    ],
)
def test_prices_are_exact(value: str, expected: Fraction) -> None:
    assert parse_epsilon(value) == expected


@pytest.mark.parametrize("value", ["", "one", "1/3", "1,5", "0x1", "inf", "1e0", "0.1234567891", "--1", "1 2"])
def test_what_is_no_decimal_is_refused(value: str) -> None:
    with pytest.raises(BadEpsilon, match="write a decimal such as"):
        parse_epsilon(value)


def example() -> Release:
    epsilon = Fraction(1, 2)
    guarantee = Guarantee(epsilon, Fraction(24, 25))
    return Release(4, Intervention(mask=(2,)), epsilon, "m", guarantee, "d", ("TARGET_PUBLIC",), "ann", "r")


def test_a_release_reads_itself_back() -> None:
    assert Release.from_json(example().to_json()) == example()
    assert json.loads(example().to_json())["guarantee"]["delta"] == "0"


@pytest.mark.parametrize(
    "change",
    [{"format": 2}, {"target": "x"}, {"epsilon": "nan"}, {"intervention": {}}, {"intervention": {"delete": [[1]]}}],
    ids=str,
)
def test_a_faulty_certificate_is_refused(change: dict[str, object]) -> None:
    fields = {**example().to_dict(), **change}
    with pytest.raises(InputError, match=r"release|epsilon"):
        Release.from_json(json.dumps(fields))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "[" * 100_000, '{"format": 1, "target": Infinity}'], ids=lambda t: t[:9]
)
def test_what_is_no_certificate_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a certificate of privcfs"):
        Release.from_json(text)
