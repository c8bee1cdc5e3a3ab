"""Advice as a certificate and in the words of the person concerned."""

import json
from dataclasses import replace
from typing import Any

import pytest

from privcfs.errors import InputError
from privcfs.public.advice import Advice, Change
from privcfs.public.interventions import Intervention
from privcfs.public.words import share_in_words, to_person


def example(**fields: Any) -> Advice:
    change = Change(Intervention(delete=((3, 7),), add=((1, 3), (4, 5)), mask=(2,)), 0.4)
    one = Advice(3, (change,), {1: 0.7, 0: 0.3}, "digest", ("MODEL_KEPT",), labels={3: "ann", 7: "bob"})
    return replace(one, **fields)


def test_a_certificate_of_advice_is_read_as_it_was_written() -> None:
    one = example(told=1)
    assert Advice.from_json(one.to_json()) == one
    assert Advice.from_json(one.to_json()).to_dict() == one.to_dict()


def test_the_premises_stand_on_the_certificate_in_sentences() -> None:
    first, second = example().to_dict()["premises"]
    assert first.startswith("You know all of your own connections")
    assert second.startswith("The model that decides is not published")
    assert len(example(assumptions=("OF_ANOTHER_VERSION",)).premises) == 1


def test_what_she_was_told_is_said_to_be_used_only_where_it_was() -> None:
    assert example().about_told == ""
    assert "count most here" in example(told=1).about_told
    assert "could not be used" in example(told=2).about_told


def test_a_change_is_said_to_the_person_herself() -> None:
    assert to_person(example().intervention, 3) == [
        "end your connection with bob",
        "connect with 1",
        "the connection between 4 and 5 is made",
        "leave out feature 2",
    ]
    assert to_person(Intervention(delete=((1, 2),)), 3) == ["the connection between 1 and 2 ends"]
    assert to_person(Intervention(), 3) == ["no change is known that would help"]


def test_what_is_believed_is_never_said_to_be_certain() -> None:
    assert [share_in_words(one) for one in (0.0, 0.302, 0.996, 1.0)] == [
        "less than 1 %",
        "30 %",
        "more than 99 %",
        "more than 99 %",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("no JSON", "it is not JSON"),
        ("[" * 100_000, "it is nested too deeply"),
        ("[]", "a field has another type"),
        ('{"kind": "advice", "format": 1}', "it lacks 'target'"),
        ('{"kind": "advice", "format": 2}', "kind 'advice', format 2"),
        (json.dumps({**example().to_dict(), "told": "x"}), "invalid literal"),
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_advice_is_refused_with_its_fault(text: str, fault: str) -> None:
    with pytest.raises(InputError, match=f"this is not advice of privcfs .*{fault}"):
        Advice.from_json(text)
