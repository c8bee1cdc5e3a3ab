"""The owner's path to a sketch: what it would buy, paying for it, naming it, and what goes wrong."""

from pathlib import Path

import pytest

from privcfs.errors import BudgetExhausted, InputError, SettingsError, SketchError
from tests.shell import Shell, newcomer


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return newcomer(tmp_path)


def test_a_sketch_is_rehearsed_paid_named_and_used(shell: Shell) -> None:
    tried = shell.ask("sketch", "--rehearse", "--epsilon", "4")
    assert [one["epsilon"] for one in tried["sketches"]] == ["4"]
    assert shell.ask("budget")["spent"] == "0"
    before = shell.ask("guess", "person-1")
    made = shell.ask("sketch", "--epsilon", "4", "--yes")
    assert made["written"] == "sketch.bin"
    assert "not for any two graphs" in made["guarantee"]
    assert shell.ask("budget")["spent"] == "4"
    assert shell.ask("sketch", "--epsilon", "4")["name"] == made["name"], "asking again pays nothing"
    assert shell.ask("budget")["spent"] == "4"
    shell.name_sketch("sketch.bin")
    after = shell.ask("guess", "person-1")
    assert before.keys() == after.keys()
    release = shell.ask("explain", "person-1", "--epsilon", "1")
    assert "SKETCH_KNOWN" in release["assumptions"]
    (shell.folder / "release.json").write_text(shell.run("explain", "person-1", "--epsilon", "1", "--json").stdout)
    assert shell.run("verify", "release.json").returncode == 0


def test_likeliest_partners_are_covered_and_their_share_is_said(shell: Shell) -> None:
    (tried,) = shell.ask("sketch", "--rehearse", "--epsilon", "3", "--partners", "4")["sketches"]
    assert {"covered", "with_it", "without", "ceiling"} <= tried.keys()
    done = shell.run("sketch", "--epsilon", "3", "--partners", "4", "--yes")
    assert done.returncode == 0, done.stderr
    assert "for 4 likeliest partners of each node" in done.stdout
    assert "of the hidden pairs; what is believed of the others comes from public data" in done.stdout
    shell.name_sketch("sketch.bin")
    assert "SKETCH_KNOWN" in shell.ask("explain", "person-1", "--epsilon", "1")["assumptions"]
    assert "partners is 0" in shell.fails(InputError, "sketch", "--epsilon", "1", "--partners", "0")


def test_what_goes_wrong_is_said(shell: Shell) -> None:
    assert "give --epsilon, or --rehearse" in shell.fails(InputError, "sketch")
    assert "10 is left" in shell.fails(BudgetExhausted, "sketch", "--epsilon", "40", "--yes")
    assert "counts is 5" in shell.fails(InputError, "sketch", "--epsilon", "4", "--counts", "5")
    assert "add --yes" in shell.fails(InputError, "sketch", "--epsilon", "9")
    shell.name_sketch("sketch.bin")
    assert "does not exist; make it with privcfs sketch" in shell.fails(SketchError, "guess", "person-1")
    assert shell.run("sketch", "--epsilon", "1", "--yes").returncode == 0, "the sketch that is named is left out"


def test_a_sketch_that_is_named_before_it_is_paid_is_refused(shell: Shell, tmp_path: Path) -> None:
    """Somebody else's file under the right name, made for the same public data."""
    other = tmp_path / "other"
    other.mkdir()
    elsewhere = newcomer(other)
    assert elsewhere.run("sketch", "--epsilon", "1", "--yes").returncode == 0
    (shell.folder / "sketch.bin").write_bytes((other / "sketch.bin").read_bytes())
    shell.name_sketch("sketch.bin")
    assert "not one that this ledger has paid for" in shell.fails(
        SettingsError, "explain", "person-1", "--epsilon", "1"
    )
    assert "exists and is not the sketch" in shell.fails(SketchError, "sketch", "--epsilon", "1", "--yes")
    assert shell.ask("budget")["spent"] == "0"


def test_a_sketch_of_another_ledger_is_refused(shell: Shell, tmp_path: Path) -> None:
    shell.ask("sketch", "--epsilon", "1", "--yes")
    shell.name_sketch("sketch.bin")
    other = tmp_path / "other"
    other.mkdir()
    for path in shell.folder.iterdir():
        if path.is_file() and path.name not in ("budget.db", "edges.csv.ledger.json", "graphs.json", "head.json"):
            (other / path.name).write_bytes(path.read_bytes())
    said = Shell(other).fails(SettingsError, "explain", "person-1", "--epsilon", "1")
    assert "not one that this ledger has paid for" in said
