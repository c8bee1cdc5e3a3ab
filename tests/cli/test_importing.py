"""`privcfs import`: the owner's files as stores, and a vault on them."""

import json

import pytest

from privcfs.errors import ContextError, GraphError, InputError, SettingsError
from tests.shell import Shell

FILES = {"edges": "edges.csv", "snapshot": "public_edges.csv", "features": "features.csv"}


def words(*names: str) -> list[str]:
    return [word for name in names for word in (f"--{name}", FILES[name])]


def bring(shell: Shell) -> list[str]:
    """All files as stores, and a vault file that names them."""
    found = shell.ask("import", "big", "--node-ids", "nodes.txt", *words(*FILES))
    path = shell.folder / "vault.toml"
    text = path.read_text()
    for name, file in FILES.items():
        text = text.replace(f'"{file}"', f'"big/{name}.store"')
    path.write_text(text)
    written: list[str] = found["written"]
    return written


def test_a_vault_on_stores_answers_as_the_vault_on_files(shell: Shell) -> None:
    before = shell.ask("candidates", "person-1")
    first = shell.ask("explain", "person-1", "--epsilon", "1")
    assert bring(shell) == ["big/features.store", "big/snapshot.store", "big/edges.store"]
    assert shell.ask("candidates", "person-1") == before
    second = shell.ask("explain", "person-1", "--epsilon", "1")
    assert second["context_digest"] == first["context_digest"]
    assert shell.ask("budget")["spent"] == "2", "one graph, one budget"


def test_stores_stay_tied_to_their_budget(shell: Shell) -> None:
    shell.ask("explain", "person-1", "--epsilon", "1")
    bring(shell)
    path = shell.folder / "vault.toml"
    path.write_text(path.read_text().replace("budget.db", "second.db").replace("head.json", "second.json"))
    said = shell.fails(SettingsError, "explain", "person-1", "--epsilon", "1")
    assert "edges.store spends from another ledger" in " ".join(said.split())


def test_what_is_said_tells_nothing_of_what_is_in_the_stores(shell: Shell) -> None:
    done = shell.run("import", "big", "--node-ids", "nodes.txt", *words(*FILES))
    manifest = json.loads((shell.folder / "big/edges.store/store.json").read_text())
    for secret in (*manifest["checksums"].values(), str(manifest["lengths"]["others"])):
        assert secret not in done.stdout + done.stderr
    released = shell.run("explain", "person-1", "--epsilon", "1", "--json").stdout
    assert not any(secret in released for secret in manifest["checksums"].values())


def test_stores_are_checked_on_demand(shell: Shell) -> None:
    bring(shell)
    assert len(shell.ask("import", "big", "--check")["checked"]) == 3
    file = shell.folder / "big/edges.store/others.bin"
    file.write_bytes(bytes([file.read_bytes()[0] ^ 1]) + file.read_bytes()[1:])
    assert "edges.store has changed" in " ".join(shell.fails(GraphError, "import", "big", "--check").split())


@pytest.mark.parametrize(
    ("given", "kind", "text"),
    [
        ([], InputError, "give --edges, --snapshot or --features to import, or --check alone"),
        (["--check", *words("edges")], InputError, "or --check alone"),
        (["--check"], InputError, "has no store"),
        (words("edges"), InputError, "nothing says how many nodes there are"),
        (["--nodes", "7", "--node-ids", "nodes.txt", *words("edges")], InputError, "number of nodes is said to be"),
        (["--nodes", "12", *words("edges")], GraphError, "edges line 2 names an unknown node in"),
        (["--features", "nodes.txt"], ContextError, "unknown ending"),
        (["--nodes", "12", "--edges", "none.csv"], GraphError, "does not exist"),
    ],
)
def test_mistakes_are_named(given: list[str], kind: type[InputError], text: str, shell: Shell) -> None:
    assert text in " ".join(shell.fails(kind, "import", "big", *given).split())
    assert not list(shell.folder.glob("big/*"))


def test_private_edges_cannot_be_named_as_the_snapshot(shell: Shell) -> None:
    path = shell.folder / "vault.toml"
    path.write_text(path.read_text().replace('"public_edges.csv"', '"./edges.csv"'))
    said = shell.fails(SettingsError, "candidates", "person-1")
    assert "private edges are not public" in " ".join(said.split())


def test_private_edges_cannot_be_imported_as_the_snapshot(shell: Shell) -> None:
    given = ("--node-ids", "nodes.txt", "--edges", "edges.csv", "--snapshot", "edges.csv")
    assert "private edges are not public" in " ".join(shell.fails(ContextError, "import", "big", *given).split())
    bring(shell)
    for file in (shell.folder / "big/edges.store").iterdir():
        (shell.folder / "big/snapshot.store" / file.name).write_bytes(file.read_bytes())
    said = shell.fails(SettingsError, "candidates", "person-1")
    assert "private edges are not public" in " ".join(said.split())


def test_a_store_that_spends_from_another_ledger_is_not_written_over(shell: Shell) -> None:
    shell.ask("explain", "person-1", "--epsilon", "1")
    bring(shell)
    tie = shell.folder / "big/edges.store.ledger.json"
    assert tie.read_text() == (shell.folder / "edges.csv.ledger.json").read_text()
    tie.write_text("{}")
    for file in (shell.folder / "big/edges.store").iterdir():
        file.unlink()
    (shell.folder / "big/edges.store").rmdir()
    said = shell.fails(SettingsError, "import", "big", "--node-ids", "nodes.txt", *words("edges"))
    assert "edges.store spends from another ledger" in " ".join(said.split())
    assert tie.read_text() == "{}"


def test_a_mistyped_name_leaves_nothing_that_a_second_try_would_trip_over(shell: Shell) -> None:
    given = ("--node-ids", "nodes.txt", *words("features", "snapshot"))
    assert "does not exist" in shell.fails(GraphError, "import", "big", *given, "--edges", "edgse.csv")
    assert len(shell.ask("import", "big", *given, *words("edges"))["written"]) == 3
    assert "exists already" in shell.fails(ContextError, "import", "big", *words("features"))
