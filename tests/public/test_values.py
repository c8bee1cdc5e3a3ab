import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privcfs import Intervention, Release
from privcfs.errors import BadEpsilon, InputError
from privcfs.public.epsilon import parse_epsilon, show
from privcfs.public.release import Guarantee
from privcfs.public.verdict import Selection, Verdict
from privcfs.public.words import in_words


def test_an_intervention_is_sorted_and_unique() -> None:
    intervention = Intervention(delete=((5, 2), (2, 5), (1, 0)), add=((9, 3),), mask=(7, 1, 7))
    assert intervention == Intervention(delete=((0, 1), (2, 5)), add=((3, 9),), mask=(1, 7))
    assert intervention.size == 5
    assert str(intervention) == "delete 0 - 1, delete 2 - 5, add 3 - 9, mask feature 1, mask feature 7"
    assert str(Intervention()) == "no intervention"
    assert Intervention.from_dict(intervention.to_dict()) == intervention


def test_an_intervention_prints_the_names_that_it_carries() -> None:
    named = Intervention(((0, 1),), ((0, 9),), (7,), names={0: "ann-lee", 1: "bob"})
    assert str(named) == "delete ann-lee - bob, add ann-lee - 9, mask feature 7"
    assert in_words(named) == ["delete ann-lee - bob", "add ann-lee - 9", "mask feature 7"]
    assert in_words(Intervention()) == ["no intervention (this does not mean that none exists)"]
    assert named.nodes == (0, 1, 9)


def test_names_change_neither_equality_nor_hash_nor_repr() -> None:
    named, plain = (Intervention(((0, 1),), names=names) for names in ({0: "ann"}, {}))
    assert named == plain
    assert hash(named) == hash(plain)
    assert repr(named) == repr(plain), "a digest of the method is made from it"


def test_the_text_that_ledgers_keep_has_numbers_whatever_the_names() -> None:
    for names in ({}, {0: "ann"}):
        one = Intervention(((0, 1),), ((0, 9),), (7,), names=names)
        assert one.in_numbers() == "delete 0-1, add 0-9, mask feature 7"
    assert Intervention().in_numbers() == "no intervention"


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


VERSION_0_1 = (
    '{"analyst":"ann","assumptions":["TARGET_PUBLIC"],"context_digest":"d","epsilon":"0.5","format":1,"guarantee":'
    '{"adjacency":"any two private graphs over the same public context","delta":"0","epsilon":"0.5","statement":'
    '"pure 0.5-differential privacy of the whole release, for any two private graphs over the same public context",'
    '"utility_range":"24/25"},"intervention":{"add":[],"delete":[],"mask":[2]},"mechanism":"m","request_id":"r",'
    '"target":4}'
)


def test_a_certificate_without_names_is_the_same_text_as_in_version_0_1() -> None:
    assert example().to_json() == VERSION_0_1
    assert Release.from_json(VERSION_0_1).labels == {}
    assert example().target_name == "4"
    assert str(example()) == "4: mask feature 2 (epsilon 0.5)"


def test_a_release_carries_names_and_reads_them_back() -> None:
    named = replace(example(), intervention=Intervention(add=((4, 10),)), labels={10: "bob", 4: "ann-lee"})
    assert named.to_dict()["labels"] == {"4": "ann-lee", "10": "bob"}
    again = Release.from_json(named.to_json())
    assert again.labels == named.labels
    assert again.to_json() == named.to_json()
    for one in (named, again):
        assert one.target_name == "ann-lee"
        assert str(one.intervention) == "add ann-lee - bob"
        assert str(one) == "ann-lee: add ann-lee - bob (epsilon 0.5)"
    plain = replace(named, labels={})
    assert (plain, hash(plain)) == (named, hash(named)), "names are for people"


def test_verdicts_and_selections_carry_names_and_read_them_back() -> None:
    guarantee = Guarantee(Fraction(1), Fraction(1))
    verdict = Verdict(4, Intervention(delete=((4, 5),)), True, guarantee, "r", {4: "ann-lee", 5: "bob"})
    again = Verdict.from_json(verdict.to_json())
    assert again == verdict
    assert again.labels == verdict.labels
    assert str(again) == "ann-lee: delete ann-lee - bob flips the decision (right with probability 0.731)"
    no = Verdict(4, Intervention(), False, guarantee, "r")
    assert str(no) == "4: no intervention does not flip the decision (right with probability 0.731)"
    selection = Selection.from_json(Selection(4, guarantee, "r", {4: "ann-lee"}).to_json())
    assert (str(selection), selection.target_name, selection.labels) == ("ann-lee", "ann-lee", {4: "ann-lee"})
    for plain in (no, Selection(4, guarantee, "r")):
        assert "labels" not in json.loads(plain.to_json())
        assert plain.target_name == "4"


FAULTY_LABELS: list[object] = [
    None,
    [],
    "ann",
    {"4": 4},
    {"4": ""},
    {"x": "ann"},
    {"04": "ann"},
    {"-4": "ann"},
    {"\u0664": "ann"},
    {"4": "a\x1b[2J"},
    {"9" * 5000: "ann"},
]


@pytest.mark.parametrize("labels", FAULTY_LABELS, ids=lambda labels: repr(labels)[:20])
def test_faulty_names_on_a_certificate_are_refused(labels: object) -> None:
    with pytest.raises(InputError, match=r"is not a certificate of privcfs.*labels"):
        Release.from_json(json.dumps({**example().to_dict(), "labels": labels}))


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
