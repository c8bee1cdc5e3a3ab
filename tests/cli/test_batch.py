"""`privcfs batch`: many targets, one price each, and a job that stops goes on for nothing."""

import json
import re
from fractions import Fraction

import pyarrow.parquet as parquet
import pytest

from privcfs.errors import BudgetExhausted, InputError, RequestConflict, SettingsError
from privcfs.fleet.parts import Job, parts, release_far, release_part
from privcfs.fleet.results import COLUMNS
from privcfs.gate.vault import Vault
from privcfs.owner.vault_file import read_vault_file
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
    found = owner.ask("batch", "--targets", "targets.txt", "--epsilon", "0.5", "--yes")
    assert (found["releases"], found["spent"]) == (12, "6")
    table = parquet.read_table(owner.folder / "releases.parquet").to_pylist()
    assert [row["target"] for row in table] == ALL
    certificate = json.loads(table[3]["release"])
    assert certificate["labels"]["3"] == "person-3"
    assert not any(re.search(r"(delete|add) [0-9]", row["intervention"] + row["public_guess"]) for row in table)
    (owner.folder / "release.json").write_text(table[3]["release"])
    assert owner.ask("verify", "release.json")["valid"]
    files = ("--out", "again.parquet", "--table", "answers.csv")
    again = owner.ask("batch", "--targets", "targets.txt", "--epsilon", "0.5", "--yes", *files)
    lines = (owner.folder / "answers.csv").read_text().splitlines()
    assert lines[0] == "target,answer,number,epsilon,confidence,size,operation,what,from,to,unit"
    assert {line.split(",")[0] for line in lines[1:]} == set(ALL)
    assert again["spent"] == "6"
    assert parquet.read_table(owner.folder / "again.parquet").to_pylist() == table
    assert {Release.from_json(row["release"]).target for row in table} == set(range(12))


def test_a_job_that_does_not_fit_or_is_dear_pays_for_nothing_before_it_is_agreed(owner: Shell) -> None:
    said = owner.fails(BudgetExhausted, "batch", "--targets", "targets.txt", "--epsilon", "1", "--yes")
    assert "12 releases are to be paid: epsilon 12 is needed, and 10 is left" in " ".join(said.split())
    said = owner.fails(InputError, "batch", "--targets", "targets.txt", "--epsilon", "0.5")
    assert "this spends epsilon 6 of the 10 that is left for owner; add --yes" in " ".join(said.split())
    assert owner.ask("budget")["spent"] == "0"


def test_a_job_beyond_the_budget_keeps_what_it_paid_for_and_goes_on_later(owner: Shell) -> None:
    asked = ("batch", "--targets", "targets.txt", "--epsilon", "1", "--job", "mine")
    said = owner.fails(BudgetExhausted, *asked, "--as-many-as-fit")
    words = " ".join(said.split())
    assert "Nothing was charged" not in words
    assert "10 of 12 are released and paid; go on with --job mine" in words
    assert "The first without an answer is person-10." in words
    assert parquet.read_table(owner.folder / "releases.parquet").num_rows == 10
    owner.run("budget", "--set-limit", "20", "--set-analyst-limit", "20")
    found = owner.ask("batch", "--targets", "targets.txt", "--epsilon", "1", "--yes", "--job", "mine")
    assert (found["releases"], found["spent"]) == (12, "12")


@pytest.mark.parametrize("text", ["", "person-1\nperson-1\n"], ids=["empty", "twice"])
def test_a_targets_file_is_checked_before_anything_is_paid(owner: Shell, text: str) -> None:
    (owner.folder / "targets.txt").write_text(text)
    assert "different nodes" in owner.fails(InputError, "batch", "--targets", "targets.txt", "--epsilon", "1")
    assert "cannot be read" in owner.fails(InputError, "batch", "--targets", "none.txt", "--epsilon", "1")
    assert owner.ask("budget")["spent"] == "0"


def test_a_file_that_cannot_be_written_is_named_before_anything_is_paid(owner: Shell) -> None:
    words = ("batch", "--targets", "targets.txt", "--epsilon", "0.5", "--yes")
    said = owner.fails(SettingsError, *words, "--out", "nowhere/releases.parquet")
    assert "pays nothing twice" in " ".join(said.split())
    assert owner.ask("budget")["spent"] == "0"
    assert owner.ask(*words)["spent"] == "6"
    assert json.loads((owner.folder / "head.json").read_text())["position"] == 25


def test_the_honest_zero_stands_beside_every_answer(owner: Shell) -> None:
    owner.ask("batch", "--targets", "targets.txt", "--epsilon", "0.5", "--yes")
    table = parquet.read_table(owner.folder / "releases.parquet").to_pylist()
    said = owner.run("explain", "person-3", "--epsilon", "0.1").stdout
    assert f"public data alone suggest: {table[3]['public_guess'].replace('; ', ', ')}" in said
    assert all(row["intervention"] and row["public_guess"] for row in table)


def test_columns_are_typed_and_confidences_stand_beside_answer_and_guess(owner: Shell) -> None:
    owner.ask("batch", "--targets", "targets.txt", "--epsilon", "0.5", "--yes")
    table = parquet.read_table(owner.folder / "releases.parquet")
    assert {field.name: str(field.type) for field in table.schema} == COLUMNS
    guesses = {name: owner.ask("guess", name)["confidence"] for name in ALL[:3]}
    for row in table.to_pylist():
        assert row["epsilon"] == 0.5
        assert row["confidence"] == float(json.loads(row["release"])["confidence"])
        assert 0 <= row["public_guess_confidence"] <= 1
        if row["target"] in guesses:
            assert f"{row['public_guess_confidence']:.3f}" == guesses[row["target"]]


@pytest.fixture
def accounts(owner: Shell) -> Shell:
    """Nodes have accounts of 1."""
    rewrite(owner, 'model_is = "secret"', 'model_is = "kept"')
    rewrite(owner, 'model = "public', '# model = "public')
    rewrite(owner, '# reads = "own', 'reads = "own')
    rewrite(owner, 'limit_per_analyst = "10"', 'limit_per_node = "1"')
    rewrite(owner, '# limit_per_node = "2"           # for', "#                                  for")
    return owner


@pytest.mark.parametrize("workers", ["1", "2"])
def test_an_account_that_is_spent_stops_nobody_else(accounts: Shell, workers: str) -> None:
    accounts.ask("explain", "person-0", "person-7", "--epsilon", "1", "--yes")
    asked = ("batch", "--targets", "targets.txt", "--epsilon", "0.5", "--yes", "--workers", workers)
    found = accounts.ask(*asked)
    assert (found["releases"], found["refused"], found["spent"]) == (10, 2, "7")
    table = parquet.read_table(accounts.folder / "releases.parquet").to_pylist()
    assert [row["target"] for row in table] == [name for name in ALL if name not in ("person-0", "person-7")]
    said = " ".join(accounts.run(*asked).stdout.split())
    assert "2 were refused, because the accounts of their nodes do not reach: person-0 is the first." in said
    assert accounts.ask("budget", "--node", "person-0")["node"]["spent"] == "1"
    assert accounts.ask("budget")["spent"] == "0", "nothing read the whole graph"


def test_where_no_account_reaches_nothing_is_paid(accounts: Shell) -> None:
    said = accounts.fails(BudgetExhausted, "batch", "--targets", "targets.txt", "--epsilon", "1.5", "--yes")
    assert "epsilon 1.5 fits none of the accounts of these nodes. Nothing was charged." in " ".join(said.split())
    assert not (accounts.folder / "releases.parquet").exists()
    assert "add --yes" in accounts.fails(InputError, "batch", "--targets", "targets.txt", "--epsilon", "1")


def test_an_analysts_own_limit_still_stops_a_job(accounts: Shell) -> None:
    rewrite(accounts, 'limit_per_node = "1"', 'limit_per_node = "1"\nlimit_per_analyst = "4"')
    said = accounts.fails(BudgetExhausted, "batch", "--targets", "targets.txt", "--epsilon", "0.5", "--yes")
    assert "6 is needed, and 4 is left for owner" in " ".join(said.split())
    asked = ("batch", "--targets", "targets.txt", "--epsilon", "0.5", "--as-many-as-fit")
    assert "8 of 12 are released" in " ".join(accounts.fails(BudgetExhausted, *asked).split())


def test_a_finished_job_is_read_back_without_a_rehearsal(owner: Shell) -> None:
    vault = read_vault_file(owner.folder / "vault.toml").vault()
    job = Job(lambda: vault, vault.digest, Fraction(1, 2), "owner")
    (part,) = parts("mine", ALL)
    first = release_part(vault, job, part)
    assert first.refusal() is None
    assert release_part(Idle(vault), job, part) == first  # type: ignore[arg-type]
    dearer = job._replace(epsilon=Fraction(1))
    assert isinstance(release_part(vault, dearer, part).refusal(), RequestConflict)


class Idle:
    """A vault that answers nothing new."""

    def __init__(self, vault: Vault) -> None:
        self.context, self.digest, self.guess, self.ledger = vault.context, vault.digest, vault.guess, vault.ledger

    def release_all(self, questions: list[object], analyst: str) -> list[Release]:
        assert not questions, analyst
        return []


def test_a_refused_job_leaves_the_file_of_another_as_it_was(owner: Shell) -> None:
    owner.ask("batch", "--targets", "targets.txt", "--epsilon", "0.5", "--yes", "--job", "mine")
    before = (owner.folder / "releases.parquet").read_bytes()
    owner.fails(RequestConflict, "batch", "--targets", "targets.txt", "--epsilon", "0.1", "--job", "mine")
    assert (owner.folder / "releases.parquet").read_bytes() == before
    assert not list(owner.folder.glob("*.new"))


def test_names_that_are_too_long_are_refused_before_anything_is_paid(owner: Shell) -> None:
    said = owner.fails(InputError, "batch", "--targets", "targets.txt", "--epsilon", "1", "--job", "j" * 195)
    assert "at most 200 letters" in " ".join(said.split())
    assert owner.ask("budget")["spent"] == "0"


def test_suggestions_are_not_taken_for_answers_of_a_job(owner: Shell) -> None:
    owner.ask("explain", "person-2", "--epsilon", "2", "--suggestions", "2", "--request-id", "mine")
    found = owner.ask("batch", "--targets", "targets.txt", "--epsilon", "0.5", "--yes", "--job", "mine")
    assert (found["releases"], found["spent"]) == (12, "8")


def test_a_worker_whose_files_differ_pays_for_nothing(owner: Shell) -> None:
    vault = read_vault_file(owner.folder / "vault.toml").vault()
    (part,) = parts("mine", ALL)
    done = release_far(Job(lambda: vault, "another digest", Fraction(1, 2), "owner"), part)
    assert isinstance(done.refusal(), SettingsError)
    assert "differ from those here" in done.message
    assert vault.ledger.balance().spent == 0


def test_after_a_refusal_the_file_still_has_all_that_is_paid(owner: Shell) -> None:
    """The first target of a part is new and does not fit; the others were paid before."""
    (owner.folder / "few.txt").write_text("\n".join(ALL[1:11]))
    owner.ask("batch", "--targets", "few.txt", "--epsilon", "1", "--yes", "--job", "mine")
    asked = ("batch", "--targets", "targets.txt", "--epsilon", "1", "--job", "mine")
    said = owner.fails(BudgetExhausted, *asked, "--as-many-as-fit")
    assert "10 of 12 are released" in " ".join(said.split())
    assert "The first without an answer is person-0." in " ".join(said.split())
    assert [row["target"] for row in parquet.read_table(owner.folder / "releases.parquet").to_pylist()] == ALL[1:11]


def test_a_batch_says_what_an_answer_takes_and_refuses_too_little_time_before_it_pays(owner: Shell) -> None:
    asked = ("batch", "--targets", "targets.txt", "--epsilon", "0.5", "--yes")
    rewrite(owner, "# answer_seconds = 0.5 ", "answer_seconds = 0.0001 ")
    said = " ".join(owner.fails(SettingsError, *asked).split())
    assert "answer_seconds is 0.0001, but evaluating public data needs" in said
    assert owner.ask("budget")["spent"] == "0"
    rewrite(owner, "answer_seconds = 0.0001 ", "# answer_seconds = 0.5 ")
    done = owner.run(*asked)
    assert "On public data, a first answer about a node takes" in done.stdout
    assert done.returncode == 0, done.stderr
    assert "On public data" not in owner.run(*asked).stdout, "everything is paid already"
