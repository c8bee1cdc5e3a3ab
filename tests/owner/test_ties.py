"""One graph, one budget: across vault files, ledgers, and changes of the graph."""

import json
import shutil

import pytest

from privcfs import PrivateGraph
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
    for name in ("budget.db", "head.json", "graphs.json", tie.name):
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


def moved(shell: Shell, name: str, how: str) -> None:
    """The edges under another name: as a link, a copy, or renamed."""
    edges = shell.folder / "edges.csv"
    if how == "symbolic link":
        (shell.folder / name).symlink_to(edges)
    elif how == "hard link":
        (shell.folder / name).hardlink_to(edges)
    elif how == "copy":
        shutil.copy(edges, shell.folder / name)
    elif how == "copy in another order":
        header, *rows = edges.read_text().splitlines()
        flipped = [",".join(reversed(row.split(","))) for row in reversed(rows)]
        (shell.folder / name).write_text("\n".join([header, *flipped]))
    else:
        edges.rename(shell.folder / name)


HOW = ["symbolic link", "hard link", "copy", "copy in another order", "renamed"]


@pytest.mark.parametrize("how", HOW)
def test_a_link_a_copy_or_another_name_gets_no_second_budget(shell: Shell, how: str) -> None:
    shell.ask("explain", "person-1", "--epsilon", "1")
    moved(shell, "current.csv", how)
    text = (shell.folder / "vault.toml").read_text().replace('"edges.csv"', '"current.csv"')
    for old, new in (("budget.db", "second.db"), ("head.json", "second.json")):
        text = text.replace(old, new)
    (shell.folder / "other.toml").write_text(text)
    said = shell.fails(SettingsError, "explain", "person-1", "--epsilon", "1", "--vault", "other.toml")
    assert "current.csv spends from another ledger" in " ".join(said.split())
    assert not list(shell.folder.glob("second.*")), "nothing is made for a refused budget"
    (shell.folder / "other.toml").write_text(
        (shell.folder / "vault.toml").read_text().replace('"edges.csv"', '"current.csv"')
    )
    shell.ask("explain", "person-1", "--epsilon", "1", "--vault", "other.toml")
    assert shell.ask("budget")["spent"] == "2", "with the same ledger it is the same budget"


def test_a_list_that_looks_at_names_alone_is_found_out(shell: Shell) -> None:
    """The broken twin: without its list of graphs, the program knows a copy as something new."""
    shell.ask("explain", "person-1", "--epsilon", "1")
    (shell.folder / "graphs.json").unlink()
    moved(shell, "current.csv", "copy")
    text = (
        (shell.folder / "vault.toml")
        .read_text()
        .replace('"edges.csv"', '"current.csv"')
        .replace("budget.db", "second.db")
    )
    (shell.folder / "other.toml").write_text(text.replace("head.json", "second.json"))
    assert shell.run("explain", "person-1", "--epsilon", "1", "--vault", "other.toml").returncode == 0


def test_an_empty_or_damaged_tie_is_called_that(shell: Shell) -> None:
    shell.ask("explain", "person-1", "--epsilon", "1")
    tie = shell.folder / "edges.csv.ledger.json"
    for content in ("", "{"):
        tie.write_text(content)
        said = " ".join(shell.fails(SettingsError, "explain", "person-1", "--epsilon", "1").split())
        assert "edges.csv.ledger.json is empty or damaged; it should name the ledger of edges.csv" in said
    tie.unlink()
    shell.ask("explain", "person-1", "--epsilon", "1")
    assert json.loads(tie.read_text())["graph_id"]


def test_a_damaged_list_of_graphs_is_named(shell: Shell) -> None:
    (shell.folder / "graphs.json").write_text("[]")
    said = " ".join(shell.fails(SettingsError, "explain", "person-1", "--epsilon", "1").split())
    assert "the list of graphs" in said
    assert "mend it, or name another with PRIVCFS_GRAPHS" in said


def test_the_list_says_nothing_of_the_edges_without_its_key() -> None:
    graph = PrivateGraph.from_edges([[0, 1]], number_of_nodes=3)
    same = PrivateGraph.from_edges([[1, 0]], number_of_nodes=3)
    other = PrivateGraph.from_edges([[0, 2]], number_of_nodes=3)
    assert graph.fingerprint(b"key") == same.fingerprint(b"key") != other.fingerprint(b"key")
    assert graph.fingerprint(b"key") != graph.fingerprint(b"another key")
