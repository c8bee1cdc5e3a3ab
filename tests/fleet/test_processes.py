"""Several processes of one machine: what a process that dies leaves undone is done again, and paid once."""

import os
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest
from tools.fleet import write_vault

from privcfs.cli.batch import opened_once
from privcfs.errors import PrivcfsError
from privcfs.fleet import processes
from privcfs.fleet.parts import Job, parts
from privcfs.fleet.processes import release_in_processes
from privcfs.gate.vault import Vault

TARGETS = [str(node) for node in range(40)]


def dying_once(path: str, mark: str) -> Vault:
    """Opens the vault, except in the first process, which dies."""
    try:
        Path(mark).touch(exist_ok=False)
    except FileExistsError:
        return opened_once(path)
    os._exit(9)


def dying() -> Vault:
    os._exit(9)


@pytest.fixture
def path(tmp_path: Path) -> str:
    write_vault(tmp_path, "sqlite:///budget.db", guided=False)
    return str(tmp_path / "vault.toml")


def test_parts_of_a_process_that_dies_are_repeated_and_paid_once(path: str, tmp_path: Path) -> None:
    vault = opened_once(path)
    job = Job(partial(dying_once, path, str(tmp_path / "mark")), vault.digest, Fraction(1), "owner")
    done = list(release_in_processes(job, parts("job", TARGETS), 2))
    assert (tmp_path / "mark").exists(), "a process has died"
    assert [answer.target for one in done for answer in one.answers] == TARGETS, "in the order of the file"
    assert vault.balance().spent == len(TARGETS)


def test_processes_that_always_die_end_the_job(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "RETRIES", 1)
    vault = opened_once(path)
    (done,) = release_in_processes(Job(dying, vault.digest, Fraction(1), "owner"), parts("job", TARGETS), 2)
    assert isinstance(done.refusal(), PrivcfsError)
    assert vault.balance().spent == 0
