"""`privcfs batch` on Ray: several processes, and two simulated machines of which one dies."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as parquet
import pytest
from tools.vaults import write_vault

from privcfs.embedded import load_dataset
from privcfs.gate.ledger import open_ledger
from tests.shell import Shell

pytest.importorskip("ray", reason="needs Ray: pip install 'privcfs[fleet]'")
TARGETS = 200
# A machine of the cluster dies as soon as some releases are finished.
CLUSTER = """
import json, subprocess, sys, threading, time
from ray.cluster_utils import Cluster
from privcfs.gate.ledger import open_ledger

url, *command = sys.argv[1:]
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
second = cluster.add_node(num_cpus=1)
job = subprocess.Popen([*command, "--cluster", cluster.address], stdout=subprocess.PIPE, text=True)
ledger = open_ledger(url)
while ledger.head().position < 60 and job.poll() is None:
    time.sleep(0.05)
before = ledger.head().position
cluster.remove_node(second, allow_graceful=False)
said, _ = job.communicate(timeout=240)
cluster.shutdown()
print(json.dumps({"before": before, "code": job.returncode, "said": said}))
"""


@pytest.fixture
def owner(tmp_path: Path, postgres_url: str) -> Shell:
    write_vault(tmp_path, postgres_url, "1000", "exponential")
    nodes = load_dataset("cora").test[:TARGETS]
    (tmp_path / "targets.txt").write_text("\n".join(str(node) for node in nodes))
    shell = Shell(tmp_path)
    shell.run("budget")
    return shell


def examine(owner: Shell, url: str, price: float) -> None:
    """Every target is released exactly once, and nothing more is spent."""
    table = parquet.read_table(owner.folder / "releases.parquet").to_pylist()
    rows = [row for row in open_ledger(url).rows() if row["kind"] in ("HELD", "RELEASED")]
    assert len(table) == TARGETS
    assert len(rows) == 2 * TARGETS
    assert open_ledger(url).balance().spent == TARGETS * price
    kept = {row["body"] for row in rows if row["kind"] == "RELEASED"}
    assert {row["release"] for row in table} == kept


def test_several_processes_release_every_target_once(owner: Shell, postgres_url: str) -> None:
    found = owner.ask("batch", "--targets", "targets.txt", "--epsilon", "1", "--workers", "2")
    assert found["releases"] == TARGETS
    examine(owner, postgres_url, 1)


def test_a_machine_that_dies_loses_and_doubles_nothing(owner: Shell, postgres_url: str) -> None:
    words = ["batch", "--targets", "targets.txt", "--epsilon", "0.5", "--json"]
    command = [sys.executable, "-c", "from privcfs.cli import main; main()", *words]
    script = [sys.executable, "-c", CLUSTER, postgres_url, *command]
    done = subprocess.run(script, cwd=owner.folder, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr[-3000:]
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert result["code"] == 0, done.stderr[-3000:]
    assert 60 <= result["before"] < 2 * TARGETS, "the machine died in the middle"
    examine(owner, postgres_url, 0.5)


def test_a_cluster_that_does_not_answer_is_named(owner: Shell, postgres_url: str) -> None:
    done = owner.run("batch", "--targets", "targets.txt", "--epsilon", "1", "--cluster", "127.0.0.1:1")
    assert done.returncode == 3, done.stderr
    assert "the Ray cluster at 127.0.0.1:1 cannot be reached" in " ".join(done.stderr.split())
    assert open_ledger(postgres_url).balance().spent == 0
