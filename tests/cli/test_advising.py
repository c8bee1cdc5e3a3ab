"""Advice on the command line: three steps from a fresh vault, for the person concerned alone."""

import json
from pathlib import Path

import pytest

from privcfs.errors import BadEpsilon, InputError, NotAllowed, SettingsError, UnknownNode, VerificationFailed
from tests.shell import Shell, newcomer


@pytest.fixture
def owner(tmp_path: Path) -> Shell:
    """An owner who keeps the model, as `privcfs init` suggests, and whose people know their edges."""
    shell = newcomer(tmp_path)
    path = shell.folder / "vault.toml"
    text = (
        path.read_text()
        .replace('model_is = "secret"', 'model_is = "kept"')
        .replace('model = "public', '# model = "public')
    )
    path.write_text(text.replace("# people_know_their_edges", "people_know_their_edges"))
    return shell


def test_advice_costs_nothing_and_says_whose_it_is(owner: Shell) -> None:
    done = owner.run("advise", "person-3")
    assert done.returncode == 0, done.stderr
    for words in ("Advice for person-3", "best, with probability", "This is for you alone", "Nothing was paid"):
        assert words in done.stdout
    assert "You know all of your own connections: the owner says so" in done.stdout
    assert "nothing is promised about it" in done.stdout, "what the promise rests on"
    assert "\\x" not in done.stdout, "nothing that a terminal is not shown"
    assert "add person-3" not in done.stdout, "said to her, and not as analysts write it"
    assert owner.ask("budget")["spent"] == "0"


def test_the_same_advice_is_given_again_and_verifies(owner: Shell) -> None:
    first, second = owner.ask("advise", "person-3"), owner.ask("advise", "person-3")
    assert first == second
    assert first["kind"] == "advice"
    (owner.folder / "advice.json").write_text(json.dumps(first))
    assert owner.ask("verify", "advice.json")["valid"]
    (owner.folder / "forged.json").write_text(json.dumps({**first, "target": 4}))
    owner.fails(VerificationFailed, "verify", "forged.json")


def test_advice_is_not_taken_for_a_release(owner: Shell) -> None:
    (owner.folder / "advice.json").write_text(owner.run("advise", "person-3", "--json").stdout)
    said = owner.fails(InputError, "confirm", "advice.json", "--epsilon", "1")
    assert "for the person concerned alone" in said


def test_a_page_has_pictures_and_is_never_replaced(owner: Shell) -> None:
    owner.ask("advise", "person-3", "--page", "advice.html")
    page = (owner.folder / "advice.html").read_text()
    assert "<svg" in page
    assert "This is for you alone" in page
    assert "exists" in owner.fails(SettingsError, "advise", "person-3", "--page", "advice.html")


def test_other_peoples_edges_are_read_at_a_price_and_once(owner: Shell) -> None:
    paid = owner.ask("advise", "person-3", "--epsilon", "1", "--request-id", "mine")
    assert paid["epsilon"] == "1"
    assert "at a price of epsilon 1" in paid["promise"]
    assert owner.ask("advise", "person-3", "--epsilon", "1", "--request-id", "mine") == paid
    assert owner.ask("budget")["spent"] == "1"
    (owner.folder / "advice.json").write_text(json.dumps(paid))
    assert owner.ask("verify", "advice.json")["valid"]
    rows = (owner.folder / "budget.db").read_bytes()
    assert b"HELD" in rows


def test_what_the_person_was_told_weighs_graphs_and_is_hers(owner: Shell) -> None:
    plain, told = owner.ask("advise", "person-3"), owner.ask("advise", "person-3", "--told", "0")
    assert float(told["believed"]["0"]) >= float(plain["believed"].get("0", "0"))
    assert told["told"] == 0
    said = owner.run("advise", "person-3", "--told", "0").stdout
    assert "You said that you were told class 0" in said


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        (["advise", "nobody"], UnknownNode, "is not a node"),
        (["advise", "person-3", "--told", "9"], InputError, "give a class from 0 to 2"),
        (["advise", "person-3", "--epsilon", "0,1"], BadEpsilon, "write a decimal"),
    ],
)
def test_bad_input_is_refused_and_costs_nothing(
    owner: Shell, words: list[str], kind: type[InputError], said: str
) -> None:
    assert said in owner.fails(kind, *words)
    assert owner.ask("budget")["spent"] == "0"


def test_without_the_owners_word_there_is_no_advice(owner: Shell) -> None:
    path = owner.folder / "vault.toml"
    path.write_text(path.read_text().replace("people_know_their_edges = true", "people_know_their_edges = false"))
    assert "has not said that people know all of their own edges" in owner.fails(NotAllowed, "advise", "person-3")


def test_with_a_secret_model_advice_has_a_price(tmp_path: Path) -> None:
    shell = newcomer(tmp_path)
    path = shell.folder / "vault.toml"
    path.write_text(path.read_text().replace("# people_know_their_edges", "people_know_their_edges"))
    assert "give a price" in shell.fails(NotAllowed, "advise", "person-3")
    assert shell.ask("advise", "person-3", "--epsilon", "1")["epsilon"] == "1"
