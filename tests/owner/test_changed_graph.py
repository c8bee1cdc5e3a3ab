"""New edges arrive: accounts, sketch and stored answers go on, and the same graph never gets a second budget."""

from fractions import Fraction
from pathlib import Path

import pytest

from privcfs.embedded.loan import load_bank
from privcfs.errors import SettingsError
from privcfs.gate import schema_trials
from privcfs.owner.vault_file import read_vault_file
from tests.shell import Shell

NAMED = """\
[graph]
edges = { file = "links.csv", source = "from", target = "to", kind = "kind" }
people_know_their_edges = true
id = "a bank"
[public]
features = { file = "clients.csv", nodes = "client", raw = true }
snapshot = { file = "public_links.csv", source = "from", target = "to" }
model = "gcn.safetensors"
schema = "features.toml"
[budget]
ledger = "sqlite:///budget.db"
limit = "10"
limit_per_node = "3"
head = "head.json"
[method]
reads = "own-edges"
"""


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A made-up bank's files with headers, as an owner has them; little is learned, so that tests are quick."""
    monkeypatch.setattr(schema_trials, "TARGETS", 8)
    load_bank().write(tmp_path)
    (tmp_path / "vault.toml").write_text(NAMED)
    return tmp_path


def test_accounts_and_answers_go_on_when_new_edges_arrive(bank: Path) -> None:
    before = read_vault_file(bank / "vault.toml").vault()
    release = before.release("client-214", "1", request_id="mine")
    digest, node = before.digest, before.context.node("client-214")
    with (bank / "links.csv").open("a") as file:
        file.write("client-214,client-240,transfer\n")
    after = read_vault_file(bank / "vault.toml").vault()
    assert after.digest == digest, "nothing public has changed"
    assert after.release("client-214", "1", request_id="mine") == release
    assert after.ledger.node_balance(node).spent == Fraction(1)
    after.release("client-214", "1", request_id="another")
    assert after.ledger.node_balance(node).spent == Fraction(2)
    own = {pair for one in after.advise("client-214", alternatives=9).changes for pair in one.intervention.delete}
    assert own <= {(node, other) for other in range(240)} | {(other, node) for other in range(240)}


def test_a_changed_graph_under_another_ledger_is_refused_where_it_lies(bank: Path) -> None:
    read_vault_file(bank / "vault.toml").vault()
    with (bank / "links.csv").open("a") as file:
        file.write("client-214,client-240,transfer\n")
    (bank / "other.toml").write_text(NAMED.replace("budget.db", "second.db").replace('head = "head.json"\n', ""))
    with pytest.raises(SettingsError, match="one private graph has one budget"):
        read_vault_file(bank / "other.toml").vault()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('source = "from"', 'soruce = "from"', "graph.edges has an unknown key soruce"),
        ('nodes = "client"', "nodes = 3", "public.features.nodes is 3; it must be text in quotes"),
        ("raw = true", 'columns = "Age"', "public.features.columns must be a list of names in quotes"),
        ('file = "links.csv", ', "", "graph.edges.file must be text in quotes"),
        ('model = "gcn.safetensors"', 'model = { file = "gcn.safetensors" }', "public.model must be text in quotes"),
    ],
)
def test_a_mistake_in_named_columns_is_refused(bank: Path, old: str, new: str, words: str) -> None:
    assert old in NAMED
    (bank / "vault.toml").write_text(NAMED.replace(old, new, 1))
    with pytest.raises(SettingsError, match=words):
        read_vault_file(bank / "vault.toml").vault()


def test_the_command_line_reads_named_columns_too(bank: Path) -> None:
    shell = Shell(bank)
    listed = shell.ask("candidates", "client-214", "--most", "3")
    assert listed["labels"][str(listed["target"])] == "client-214"
    assert "Wrote" in shell.run("train", "--labels", "labels.csv", "--force").stdout
