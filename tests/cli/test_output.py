"""What goes out to a terminal carries no control characters, whatever names and cells a file holds."""

import json
from fractions import Fraction

import pytest

from privcfs.cli.output import complain, emit, odds, printable, say
from privcfs.errors import ContextError

HOSTILE = "ann\x1b[2J\x9b31m\x07\r\x7f\u202e\udcff"


def test_a_line_for_people_has_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"Node {HOSTILE}:\nnext")
    said = capsys.readouterr().out
    assert said == "Node ann\\x1b[2J\\x9b31m\\x07\\r\\x7f\\u202e\\udcff:\nnext\n"


def test_an_error_is_one_printable_line(capsys: pytest.CaptureFixture[str]) -> None:
    complain(ContextError(f"node {HOSTILE}\nError: forged"), as_json=False)
    said = capsys.readouterr().err
    assert said.endswith("\\nError: forged\n")
    assert said.rstrip("\n").isprintable()


def test_json_is_plain_and_still_means_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    emit({"name": HOSTILE})
    complain(ContextError(HOSTILE), as_json=True)
    said = capsys.readouterr()
    assert json.loads(said.out) == {"name": HOSTILE}
    assert json.loads(said.err)["message"] == HOSTILE
    assert said.out.rstrip("\n").isprintable()
    assert said.err.rstrip("\n").isprintable()


def test_ordinary_text_stays_as_it_is() -> None:
    assert printable("Zoë, 東京, 3 ± 1 [bold]") == "Zoë, 東京, 3 ± 1 [bold]"


@pytest.mark.parametrize(
    ("epsilon", "words"), [("0", "1.00"), ("1", "2.72"), ("5", "148.42"), ("8", "2,981"), ("21", "e^21")]
)
def test_the_factor_of_odds_is_rounded_up(epsilon: str, words: str) -> None:
    assert odds(Fraction(epsilon)) == words
