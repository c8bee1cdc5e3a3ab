"""Accounts of nodes on the command line: each node pays for itself, and three numbers say what was told."""

from pathlib import Path

import pytest

from privcfs.errors import BudgetExhausted, SettingsError, UnknownNode
from tests.shell import Shell, newcomer


@pytest.fixture
def owner(tmp_path: Path) -> Shell:
    shell = newcomer(tmp_path)
    path = shell.folder / "vault.toml"
    text = path.read_text().replace('model_is = "secret"', 'model_is = "kept"')
    text = text.replace('model = "public', '# model = "public').replace('# reads = "own', 'reads = "own')
    text = text.replace('limit_per_analyst = "4"', 'limit_per_node = "2"', 1).replace('limit = "10"', 'limit = "1"', 1)
    path.write_text(text.replace('# limit_per_node = "2"           # for', "#                                  for"))
    return shell


def test_everyone_is_answered_and_each_node_pays_for_itself(owner: Shell) -> None:
    people = [f"person-{number}" for number in range(12)]
    assert len(owner.ask("explain", *people, "--epsilon", "1", "--yes")) == 12
    found = owner.ask("budget", "--node", "person-3")
    assert found["spent"] == "0", "nothing read the whole graph"
    assert found["node"]["spent"] == "1"
    assert found["losses"]["one_edge"] == "2"
    assert found["losses"]["any_two_graphs"] == "12"


def test_an_account_that_is_spent_refuses_and_others_go_on(owner: Shell) -> None:
    owner.ask("explain", "person-3", "--epsilon", "2", "--yes")
    refused = owner.fails(BudgetExhausted, "explain", "person-3", "--epsilon", "1", "--yes")
    assert "0 is left on the account of a node. Nothing was charged" in refused
    for told in ("at most epsilon 2 about one edge", "a person with m edges", "any two graphs"):
        assert told in refused, "a refusal says what all answers may have told"
    assert owner.ask("explain", "person-4", "--epsilon", "1")["target"] == 4


def test_what_reads_the_whole_graph_counts_for_everyone(owner: Shell) -> None:
    release = owner.run("explain", "person-3", "--epsilon", "1", "--json", "--yes")
    (owner.folder / "release.json").write_text(release.stdout)
    owner.ask("confirm", "release.json", "--epsilon", "1", "--yes")
    found = owner.ask("budget")
    assert found["spent"] == "1"
    assert found["losses"]["one_edge"] == "2", "never more than all prices together: 1 + 1"
    owner.fails(BudgetExhausted, "confirm", "release.json", "--epsilon", "1", "--yes")


def test_a_choice_among_nodes_charges_each_of_them(owner: Shell) -> None:
    owner.ask("select", "person-3", "person-4", "--epsilon", "1", "--yes")
    assert [owner.ask("budget", "--node", name)["node"]["spent"] for name in ("person-3", "person-4")] == ["1", "1"]


def test_limits_of_nodes_are_the_owners_and_never_below_what_is_spent(owner: Shell) -> None:
    owner.ask("explain", "person-3", "--epsilon", "1", "--yes")
    assert "below" in owner.fails(SettingsError, "budget", "--set-node-limit", "0.5")
    assert owner.ask("budget", "--set-node-limit", "3", "--node", "person-3")["node"]["limit"] == "3"


def test_a_limit_per_node_is_refused_where_the_whole_graph_is_read(owner: Shell) -> None:
    path = owner.folder / "vault.toml"
    text = path.read_text().replace('reads = "own-edges"', 'reads = "whole-graph"').replace("limit_per_node", "# ", 1)
    path.write_text(text)
    owner.ask("explain", "person-3", "--epsilon", "0.1")
    said = owner.fails(SettingsError, "budget", "--set-node-limit", "2")
    assert "this vault file reads the whole graph; set method.reads = 'own-edges' first. No limit was changed." in said
    assert owner.ask("explain", "person-4", "--epsilon", "0.1")["target"] == 4, "the vault goes on as before"


def test_an_unknown_node_is_refused_before_a_budget_is_shown(owner: Shell) -> None:
    done = owner.run("budget", "--node", "nobody")
    assert done.returncode == UnknownNode.exit_code
    assert "is not a node" in done.stderr
    assert done.stdout == ""


def test_budget_says_the_three_numbers_in_words(owner: Shell) -> None:
    owner.ask("explain", "person-3", "--epsilon", "1", "--yes")
    said = owner.run("budget", "--node", "person-3").stdout
    for words in (
        "about one edge",
        "a person with m edges",
        "any two graphs",
        "Account of node person-3: epsilon 1 spent",
    ):
        assert words in said


def test_accounts_with_a_method_that_reads_the_whole_graph_are_refused(owner: Shell) -> None:
    path = owner.folder / "vault.toml"
    path.write_text(path.read_text().replace('reads = "own-edges"', 'reads = "whole-graph"'))
    assert "so an answer counts for everyone" in owner.fails(SettingsError, "explain", "person-3", "--epsilon", "1")


def test_accounts_under_zcdp_are_refused(owner: Shell) -> None:
    path = owner.folder / "vault.toml"
    path.write_text(path.read_text().replace('# contract = "zcdp"', 'contract = "zcdp"').replace("# delta", "delta"))
    assert "accounts" in owner.fails(SettingsError, "explain", "person-3", "--epsilon", "1")


def test_every_certificate_says_what_all_answers_together_may_tell(owner: Shell) -> None:
    release = owner.ask("explain", "person-3", "--epsilon", "1", "--yes")
    for words in ("5-differential privacy for one edge", "a person with m edges", "any two graphs"):
        assert words in release["accounts"]
    (owner.folder / "release.json").write_text(owner.run("explain", "person-4", "--epsilon", "1", "--json").stdout)
    assert owner.ask("verify", "release.json")["valid"]
