"""`privcfs batch` in several processes, and on a Ray cluster of two simulated machines of which one dies."""

import socket
import subprocess
import sys
import time
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from tools.fleet import Found, kill_a_machine, write_vault

from privcfs.cli.batch import opened_once
from privcfs.errors import BudgetExhausted, SealedError
from privcfs.fleet.parts import Job, Part, release_far
from privcfs.gate.ledger import open_ledger
from privcfs.gate.vault import Vault
from tests.shell import Shell

pytest.importorskip("ray", reason="needs Ray: pip install 'privcfs[fleet]'")
TARGETS = 200


@pytest.fixture
def owner(tmp_path: Path, postgres_url: str) -> Shell:
    write_vault(tmp_path, postgres_url, guided=False)
    (tmp_path / "targets.txt").write_text("\n".join(str(node) for node in range(TARGETS)))
    shell = Shell(tmp_path)
    shell.run("budget")
    return shell


def test_several_processes_release_every_target_once(owner: Shell, postgres_url: str) -> None:
    found = owner.ask("batch", "--targets", "targets.txt", "--epsilon", "1", "--workers", "2")
    assert found["releases"] == TARGETS
    table = parquet.read_table(owner.folder / "releases.parquet").to_pylist()
    assert [row["target"] for row in table] == [str(node) for node in range(TARGETS)], "in the order of the file"
    rows, spent = list(open_ledger(postgres_url).rows()), open_ledger(postgres_url).balance().spent
    assert Found(TARGETS, Fraction(1), 0, table, rows, spent, 0.0).faults() == []


def test_a_machine_that_dies_loses_and_doubles_nothing(owner: Shell, postgres_url: str) -> None:
    found = kill_a_machine(owner.folder, postgres_url, TARGETS)
    assert found.faults() == []
    doubled = replace(found, rows=found.rows * 2, spent=found.spent * 2)
    assert {fault.split(" ", 1)[1] for fault in doubled.faults()[:TARGETS]} == {"was paid 2 times"}
    assert replace(found, spent=found.spent + 1).faults() == ["101 spent instead of 100"]
    assert replace(found, table=found.table[1:]).faults(), "an answer is missing"
    swapped = [{**row, "release": found.table[0]["release"]} for row in found.table]
    assert replace(found, table=swapped).faults() == ["an answer is not the one that the ledger holds"]


def test_where_the_budget_ends_the_file_has_all_that_is_paid(owner: Shell, postgres_url: str) -> None:
    owner.run("budget", "--set-limit", "70")
    done = owner.run("batch", "--targets", "targets.txt", "--epsilon", "1", "--workers", "2", "--as-many-as-fit")
    assert done.returncode == BudgetExhausted.exit_code, done.stderr
    assert f"70 of {TARGETS} are released" in " ".join(done.stderr.split())
    assert parquet.read_table(owner.folder / "releases.parquet").num_rows == 70
    assert open_ledger(postgres_url).balance().spent == 70


def listening_elsewhere() -> set[str]:
    """Addresses, not of loopback, on which programs of this machine listen: as the kernel writes them."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    here = ("0100007F:", "00000000000000000000000001000000:", "0000000000000000FFFF00000100007F:")
    return {row[1] for row in rows if row[3] == "0A" and not row[1].startswith(here)}


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="only Linux tells who listens where")
def test_workers_of_this_machine_listen_to_it_alone(owner: Shell) -> None:
    before = listening_elsewhere()
    words = [sys.executable, "-c", "from privcfs.cli import main; main()", "batch", "--targets", "targets.txt"]
    job = subprocess.Popen([*words, "--epsilon", "1", "--workers", "2"], cwd=owner.folder, stdout=subprocess.DEVNULL)
    seen: set[str] = set()
    while job.poll() is None:
        seen |= listening_elsewhere() - before
        time.sleep(0.1)
    assert job.returncode == 0
    assert not seen
    with socket.create_server(("127.0.0.2", 0)):
        assert listening_elsewhere() - before, "the check sees whoever listens to another address"


def test_a_cluster_that_does_not_answer_is_named(owner: Shell, postgres_url: str) -> None:
    done = owner.run("batch", "--targets", "targets.txt", "--epsilon", "1", "--cluster", "127.0.0.1:1")
    assert done.returncode == 3, done.stderr
    assert "the Ray cluster at 127.0.0.1:1 cannot be reached" in " ".join(done.stderr.split())
    assert open_ledger(postgres_url).balance().spent == 0


def test_what_is_private_cannot_be_sent(owner: Shell) -> None:
    """Ray sends what it can pickle: names, ids and releases are, a graph is not, however it is wrapped."""
    from ray import cloudpickle

    vault = opened_once(str(owner.folder / "vault.toml"))
    assert cloudpickle.loads(cloudpickle.dumps(Job(partial(opened_once, "vault.toml"), "", Fraction(1), "owner")))
    for private in (vault._graph, vault, Job(lambda: vault, "", Fraction(1), "owner")):
        with pytest.raises(SealedError, match="is private and cannot be pickled"):
            cloudpickle.dumps(private)
    assert cloudpickle.dumps(vault._graph._lists.others), "what is not sealed would be sent"


def test_whatever_fails_on_a_worker_keeps_its_words_there() -> None:
    def broken() -> Vault:
        raise ValueError("edge 3-7")

    done = release_far(Job(broken, "", Fraction(1), "owner"), Part(["1"], ["job:1"]))
    assert done.message == "a worker cannot open the vault (ValueError); try it there."
    assert str(done.refusal()) == done.message
