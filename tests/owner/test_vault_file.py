"""The vault file: one way in for the command line, the service, the fleet and Python, with the same guards."""

import json
from pathlib import Path

import pytest

import privcfs
from privcfs.errors import GraphError, LedgerRolledBack, SettingsError
from privcfs.owner.template import template
from privcfs.owner.vault_file import VaultFile, read_vault_file
from tests.shell import Shell


def vault_file(shell: Shell) -> VaultFile:
    return read_vault_file(shell.folder / "vault.toml")


def test_python_opens_the_vault_that_the_command_line_has(shell: Shell) -> None:
    vault = privcfs.open_vault(shell.folder / "vault.toml")
    release = vault.release("person-3", "1", request_id="same")
    assert shell.ask("explain", "person-3", "--epsilon", "1", "--request-id", "same") == release.to_dict()
    assert vault.balance().spent == 1
    assert str(privcfs.open_vault(str(shell.folder / "vault.toml")).head()) == str(vault.head())


def test_a_vault_opened_in_python_has_the_guards_of_the_command_line(shell: Shell) -> None:
    path = shell.folder / "vault.toml"
    vault = privcfs.open_vault(path)
    vault.release("person-3", "1")
    assert (shell.folder / "head.json").exists(), "the head file follows"
    other = "".join(line for line in path.read_text().splitlines(keepends=True) if not line.startswith("head"))
    (shell.folder / "other.toml").write_text(other.replace("budget.db", "second.db"))
    with pytest.raises(SettingsError, match="one private graph has one budget"):
        privcfs.open_vault(shell.folder / "other.toml")
    head = path.with_name("head.json")
    head.write_text(json.dumps(json.loads(head.read_text()) | {"digest": "0" * 64}))
    with pytest.raises(LedgerRolledBack, match="rolled back or replaced"):
        privcfs.open_vault(path)


def test_the_guards_are_not_those_of_a_vault_made_by_hand(shell: Shell) -> None:
    """The twin: the same parts put together without the vault file know of no tie and get a second budget."""
    file = vault_file(shell)
    file.vault()
    context = file.context()
    ledger = f"sqlite:///{shell.folder / 'second.db'}"
    assert privcfs.Vault(file.graph(context), context, ledger=ledger, limit="10", secrets=file.secrets(context))


def test_an_answering_time_may_be_given(shell: Shell) -> None:
    vault = privcfs.open_vault(shell.folder / "vault.toml", answer_seconds=0.3)
    assert vault._answer_seconds == 0.3


def test_the_public_context_never_opens_a_secret_file(shell: Shell) -> None:
    file = vault_file(shell)
    for name in ("edges.csv", "gcn.safetensors"):
        (shell.folder / name).unlink()
    context = file.context()
    assert file.method(context).candidates.propose(context, 3)
    with pytest.raises(GraphError, match="does not exist"):
        file.graph(context)


def test_a_snapshot_that_is_the_private_edges_is_refused(shell: Shell) -> None:
    path = shell.folder / "vault.toml"
    path.write_text(path.read_text().replace('"public_edges.csv"', '"edges.csv"'))
    with pytest.raises(SettingsError, match="private edges are not public"):
        vault_file(shell).context()


def test_every_template_has_an_id_of_its_own() -> None:
    first, second = (line for text in (template(), template()) for line in text.splitlines() if line.startswith("id"))
    assert first != second


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[graf]\n", r"unknown table \[graf\]"),
        ("[graph]\nedgez = 'x'\n", "unknown key graph.edgez"),
        ("[public]\nmodel = 'x'\nbackbone = 'y'\n", "public.model is given twice; backbone is a former name"),
        ("graph = 3\n", r"unknown table \[graph\]"),
        ("[graph\n", "cannot be read"),
    ],
)
def test_a_mistyped_file_is_an_error(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "vault.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=words):
        read_vault_file(path)


@pytest.mark.parametrize(
    ("method", "actionable", "words"),
    [
        ('candidates = "one-hop"', "immutable_nodes = [3]", "need candidates that are sets or ladders"),
        ('utility = "soft"', "desired = 1", "actionable.desired needs the utility gated"),
    ],
)
def test_a_part_that_cannot_keep_a_restriction_refuses_it(
    shell: Shell, method: str, actionable: str, words: str
) -> None:
    path = shell.folder / "vault.toml"
    text = path.read_text()
    key = method.split(" = ")[0]
    line = next(one for one in text.splitlines() if one.startswith(key))
    restricted = actionable.replace("[3]", '["person-3"]')
    path.write_text(text.replace(line, method) + f"\n[actionable]\n{restricted}\n")
    file = vault_file(shell)
    with pytest.raises(SettingsError, match=words):
        file.method(file.context())
