"""`privcfs batch`: many targets, one price each, and a job that stops goes on for nothing."""

import json

import pyarrow.parquet as parquet
import pytest

from privcfs.errors import BudgetExhausted, InputError, SettingsError
from privcfs.public.release import Release
from tests.shell import Shell

ALL = [f"person-{number}" for number in range(12)]


@pytest.fixture
def owner(shell: Shell) -> Shell:
    (shell.folder / "targets.txt").write_text("\n".join(ALL) + "\n\n")
    rewrite(shell, 'limit_per_analyst = "4"', 'limit_per_analyst = "10"')
    return shell


def rewrite(shell: Shell, old: str, new: str) -> None:
    path = shell.folder / "vault.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_every_target_is_released_once_and_again_for_nothing(owner: Shell) -> None:
    found = owner.ask("batch", "--targets", "targets.txt", "--epsilon", "0.5")
    assert (found["releases"], found["spent"]) == (12, "6")
    table = parquet.read_table(owner.folder / "releases.parquet").to_pylist()
    assert [row["target"] for row in table] == ALL
    (owner.folder / "release.json").write_text(table[3]["release"])
    assert owner.ask("verify", "release.json")["valid"]
    again = owner.ask("batch", "--targets", "targets.txt", "--epsilon", "0.5", "--out", "again.parquet")
    assert again["spent"] == "6"
    assert parquet.read_table(owner.folder / "again.parquet").to_pylist() == table
    assert {Release.from_json(row["release"]).target for row in table} == set(range(12))


def test_a_job_beyond_the_budget_keeps_what_it_paid_for_and_goes_on_later(owner: Shell) -> None:
    said = owner.fails(BudgetExhausted, "batch", "--targets", "targets.txt", "--epsilon", "1", "--job", "mine")
    assert "10 of 12 are released; go on with --job mine" in " ".join(said.split())
    assert parquet.read_table(owner.folder / "releases.parquet").num_rows == 10
    owner.run("budget", "--set-limit", "20", "--set-analyst-limit", "20")
    rewrite(owner, 'limit = "10" ', 'limit = "20" ')
    rewrite(owner, 'limit_per_analyst = "10"', 'limit_per_analyst = "20"')
    found = owner.ask("batch", "--targets", "targets.txt", "--epsilon", "1", "--job", "mine")
    assert (found["releases"], found["spent"]) == (12, "12")


@pytest.mark.parametrize("text", ["", "person-1\nperson-1\n"], ids=["empty", "twice"])
def test_a_targets_file_is_checked_before_anything_is_paid(owner: Shell, text: str) -> None:
    (owner.folder / "targets.txt").write_text(text)
    assert "different nodes" in owner.fails(InputError, "batch", "--targets", "targets.txt", "--epsilon", "1")
    assert "cannot be read" in owner.fails(InputError, "batch", "--targets", "none.txt", "--epsilon", "1")
    assert owner.ask("budget")["spent"] == "0"


def test_a_file_that_cannot_be_written_costs_nothing_more(owner: Shell) -> None:
    words = ("batch", "--targets", "targets.txt", "--epsilon", "0.5")
    said = owner.fails(SettingsError, *words, "--out", "nowhere/releases.parquet")
    assert "pays nothing twice" in " ".join(said.split())
    assert owner.ask(*words)["spent"] == "6"
    assert json.loads((owner.folder / "head.json").read_text())["position"] == 25
