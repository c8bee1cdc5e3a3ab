"""One graph, one budget: across vault files, ledgers, and changes of the graph."""

import json

import pytest

from privcfs.errors import SettingsError
from tests.shell import Shell


def again(shell: Shell, **changes: str) -> None:
    """Another vault file for the same edges."""
    text = (shell.folder / "vault.toml").read_text()
    for old, new in changes.items():
        text = text.replace({"ledger": "budget.db", "head": "head.json"}[old], new)
    (shell.folder / "other.toml").write_text(text)


def test_a_second_vault_file_cannot_open_a_second_budget(shell: Shell) -> None:
    shell.ask("explain", "person-1", "--epsilon", "1")
    again(shell, ledger="second.db", head="second.json")
    said = shell.fails(SettingsError, "explain", "person-1", "--epsilon", "1", "--vault", "other.toml")
    assert "edges.csv spends from another ledger" in " ".join(said.split())
    assert not (shell.folder / "second.db").exists()


def test_a_second_vault_file_may_share_the_budget(shell: Shell) -> None:
    shell.ask("explain", "person-1", "--epsilon", "1")
    again(shell, head="second.json")
    (shell.folder / "second.json").write_text((shell.folder / "head.json").read_text())
    shell.ask("explain", "person-1", "--epsilon", "1", "--vault", "other.toml")
    assert shell.ask("budget")["spent"] == "2"


def test_a_lost_ledger_is_not_begun_again(shell: Shell) -> None:
    shell.ask("explain", "person-1", "--epsilon", "1")
    for name in ("budget.db", "head.json"):
        (shell.folder / name).unlink()
    assert "restore it" in shell.fails(SettingsError, "explain", "person-1", "--epsilon", "1")


def test_another_ledger_in_the_place_of_the_first_is_refused(shell: Shell) -> None:
    shell.ask("explain", "person-1", "--epsilon", "1")
    tie = shell.folder / "edges.csv.ledger.json"
    kept = tie.read_text()
    for name in ("budget.db", "head.json", tie.name):
        (shell.folder / name).unlink()
    shell.ask("explain", "person-1", "--epsilon", "1")
    tie.write_text(kept)
    assert "one private graph" in shell.fails(SettingsError, "explain", "person-1", "--epsilon", "1")


@pytest.mark.parametrize("edges", ["source,target\nperson-1,person-2\n", None], ids=["other edges", "one more"])
def test_a_graph_that_changes_keeps_its_budget(shell: Shell, edges: str | None) -> None:
    first = shell.ask("explain", "person-1", "--epsilon", "1", "--request-id", "before")
    path = shell.folder / "edges.csv"
    path.write_text(edges or path.read_text() + "\nperson-0,person-11\n")
    assert shell.ask("budget")["spent"] == "1"
    assert shell.ask("explain", "person-1", "--epsilon", "1", "--request-id", "before") == first
    shell.ask("explain", "person-1", "--epsilon", "1")
    assert shell.ask("budget")["spent"] == "2"
    assert json.loads((path.parent / "edges.csv.ledger.json").read_text())["graph_id"]
