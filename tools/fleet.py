"""Releases for thousands of targets: in processes of one machine, and on a Ray cluster of two, of which one dies.

python -m tools.fleet                 5,000 targets; writes docs/fleet.md
python -m tools.fleet --targets 400 --rounds 1 --papers 100 --write -    a short look, printed
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as parquet
from threadpoolctl import threadpool_limits

from privcfs.cli.batch import opened_once
from privcfs.embedded import load_dataset
from privcfs.fleet.cluster import release_on_ray
from privcfs.fleet.parts import TOGETHER, Job, parts
from privcfs.gate.ledger import open_ledger
from privcfs.public.models.files import save_model
from privcfs_lab.bench.rings import STEPS, ring_model, write_ring, write_ring_features
from privcfs_lab.bench.timing import many_products, scaling
from privcfs_lab.datasets.vault_folder import SETTINGS
from privcfs_lab.datasets.vault_folder import write_vault as write_cora
from tools.page import put
from tools.postgres import Postgres

Row = tuple[str, str, str]
PRICE = Fraction(1, 2)
NODES = 20_000
LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # Ray's own word for: listen to this machine alone
WARM = 48  # parts before the clock starts: until then the last worker has opened the vault
PRIVCFS = [sys.executable, "-c", "from privcfs.cli import main; main()"]
# Two machines; the second dies as soon as so many rows are in the ledger.
CLUSTER = """
import json, subprocess, sys, time
from ray.cluster_utils import Cluster
from privcfs.gate.ledger import open_ledger

url, rows, *command = sys.argv[1:]
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
second = cluster.add_node(num_cpus=1)
job = subprocess.Popen([*command, "--cluster", cluster.address], stdout=subprocess.PIPE, text=True)
ledger = open_ledger(url)
while ledger.head().position < int(rows) and job.poll() is None:
    time.sleep(0.05)
before = ledger.head().position
cluster.remove_node(second, allow_graceful=False)
said, _ = job.communicate(timeout=1500)
cluster.shutdown()
print(json.dumps({"before": before, "code": job.returncode, "said": said}))
"""


@dataclass(frozen=True, slots=True)
class Found:
    """What is left after a machine died."""

    targets: int
    price: Fraction
    before: int  # rows of the ledger when it died
    table: list[dict[str, str]]
    rows: list[dict[str, Any]]
    spent: Fraction
    seconds: float

    def faults(self) -> list[str]:
        """Everything that must never happen and did."""
        kept = {row["request_id"]: row["body"].rstrip() for row in self.rows if row["kind"] == "RELEASED"}
        paid = Counter(row["request_id"] for row in self.rows if row["kind"] == "HELD")
        written = {row["request_id"]: row["release"] for row in self.table}
        found = [f"{name} was paid {times} times" for name, times in paid.items() if times > 1]
        if not (len(self.table) == len(written) == len(kept) == len(paid) == self.targets):
            found.append(f"{len(self.table)} answers, {len(kept)} kept, {len(paid)} paid of {self.targets}")
        if written != kept:
            found.append("an answer is not the one that the ledger holds")
        if self.spent != self.targets * self.price:
            found.append(f"{self.spent} spent instead of {self.targets * self.price}")
        if self.before >= 2 * self.targets:
            found.append("the machine died when all was done")
        return found


def write_vault(folder: Path, ledger: str, *, guided: bool = True) -> None:
    """Rings in stores, as `privcfs import` makes them, half of the pairs public; the default method or the paper's."""
    write_ring(folder / "edges.csv", NODES)
    write_ring(folder / "public_edges.csv", NODES, STEPS[::2])
    write_ring_features(folder / "features.store", NODES)
    files = ["--edges", str(folder / "edges.csv"), "--snapshot", str(folder / "public_edges.csv")]
    subprocess.run([*PRIVCFS, "import", str(folder), *files, "--json"], check=True, stdout=subprocess.DEVNULL)
    save_model(ring_model(), folder / "gcn.safetensors", {})
    names = ("small-sets", "rehearsed") if guided else ("one-hop", "exponential")
    settings = SETTINGS.format(ledger=ledger, limit="1000000", candidates=names[0], mechanism=names[1], more="")
    stores = {"public_edges.csv": "snapshot.store", "edges.csv": "edges.store", "features.npz": "features.store"}
    for name, store in stores.items():
        settings = settings.replace(f'"{name}"', f'"{store}"')
    (folder / "vault.toml").write_text(settings)


def kill_a_machine(folder: Path, url: str, targets: int) -> Found:
    """`privcfs batch` on two machines; one dies when a third is done."""
    (folder / "targets.txt").write_text("\n".join(str(node) for node in range(targets)))
    subprocess.run([*PRIVCFS, "budget", "--json"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    words = ["batch", "--targets", "targets.txt", "--epsilon", str(float(PRICE)), "--json"]
    script = [sys.executable, "-c", CLUSTER, url, str(2 * targets // 3), *PRIVCFS, *words]
    started = time.perf_counter()
    done = subprocess.run(script, cwd=folder, capture_output=True, text=True, timeout=1800, env=os.environ | LOOPBACK)
    seconds = time.perf_counter() - started
    assert done.returncode == 0, done.stderr[-3000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["code"] == 0, done.stderr[-3000:]
    table, ledger = parquet.read_table(folder / "releases.parquet").to_pylist(), open_ledger(url)
    return Found(targets, PRICE, result["before"], table, list(ledger.rows()), ledger.balance().spent, seconds)


def releases_a_second(folder: Path, name: str, cluster: str, targets: int) -> float:
    """On a cluster that stands, once its workers are warm."""
    path = str(folder / "vault.toml")
    job = Job(partial(opened_once, path), opened_once(path).digest, PRICE, "owner")
    seconds, todo = [], parts(name, [str(node) for node in range(targets + WARM * TOGETHER)])
    for done in release_on_ray(job, todo, cluster):
        assert done.refusal() is None, done.message
        seconds.append(time.perf_counter())
    return targets / (seconds[-1] - seconds[WARM - 1])


def machines_scale(folder: Path, targets: int, rounds: int) -> list[tuple[float, float, float]]:
    """Of each round: releases a second on one machine, on two over one, and matrix products on two cores over one."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    found = []
    for number in range(rounds):
        one = releases_a_second(folder, f"one-{number}", cluster.address, targets)
        second = cluster.add_node(num_cpus=1)
        two = releases_a_second(folder, f"two-{number}", cluster.address, targets)
        cluster.remove_node(second)
        with threadpool_limits(1):
            found.append((one, two / one, scaling(many_products, 2)))
    cluster.shutdown()
    return found


def papers_rows(papers: int) -> list[Row]:
    """Seconds of `privcfs batch` over test nodes of Cora, from its start to its end; beliefs were learned before."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        write_cora(Path(name), "sqlite:///budget.db", "1000000")
        targets = load_dataset("cora").test[:papers]
        (Path(name) / "targets.txt").write_text("\n".join(str(node) for node in targets))
        subprocess.run([*PRIVCFS, "guess", "0", "--json"], cwd=name, check=True, stdout=subprocess.DEVNULL)
        for workers, asked in ((1, "-"), (2, "1,000 in under 10 s")):
            words = ["batch", "--targets", "targets.txt", "--epsilon", "1", "--workers", str(workers), "--json"]
            started = time.perf_counter()
            subprocess.run(
                [*PRIVCFS, *words, "--job", f"by-{workers}"], cwd=name, check=True, stdout=subprocess.DEVNULL
            )
            seconds = time.perf_counter() - started
            who = "one process" if workers == 1 else f"{workers} processes"
            rows.append((f"Cora: {papers:,} test nodes, {who}", f"{seconds:.1f} s", asked))
    return rows


ABOUT = """# Many targets

Written by `make fleet`. Every target is asked about once, by the default method, so that whatever guides an answer is
prepared for each of them. First, `privcfs batch` over papers of Cora at epsilon 1, the whole command, with a durable
SQLite ledger. Then a ring of {nodes:,} nodes with twenty neighbours each, in stores that `privcfs import` made, half of
the pairs public, epsilon 1/2 a target; ledger in PostgreSQL; a cluster of two machines, simulated by Ray's own utility,
with one core each, on the two cores that the database and Ray itself use too.

| what | found | asked for |
|---|---|---|
"""


def page(papers: list[Row], found: Found, rounds: list[tuple[float, float, float]]) -> str:
    """What was found, with what was asked for."""
    one, two, products = (float(np.median(values)) for values in zip(*rounds, strict=True))
    share = float(np.median([ours / machine for _, ours, machine in rounds]))
    written = 2 * found.targets + 1
    faults = "; ".join(found.faults()[:5]) or "none"
    rows = [
        *papers,
        (
            f"ring: {found.targets:,} targets, one of two machines killed after {found.before:,} of {written:,} rows",
            f"{len(found.table):,} answers, {float(found.spent):,.1f} spent, {found.seconds:.0f} s; faults: {faults}",
            "each exactly once",
        ),
        ("ring, one machine", f"{one:.0f} releases a second", "-"),
        ("two machines over one", f"{two:.2f}", "-"),
        ("two cores over one, matrix products (sgemm)", f"{products:.2f}", "-"),
        (f"share of sgemm's scaling, median of {len(rounds)}", f"{share:.2f}", "at least 0.85"),
    ]
    return ABOUT.format(nodes=NODES) + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main(given: Iterable[str] | None = None) -> None:
    """A machine that dies, then how machines scale; one page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--papers", type=int, default=1000, help="test nodes of Cora")
    parser.add_argument("--write", default="docs/fleet.md", help="the page, or - to print it")
    options = parser.parse_args(None if given is None else list(given))
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", **LOOPBACK}
    os.environ["PRIVCFS_GRAPHS"] = str(Path(tempfile.mkdtemp()) / "graphs.json")  # these graphs are nobody's
    papers = papers_rows(options.papers)
    with Postgres() as server, tempfile.TemporaryDirectory() as name:
        write_vault(Path(name), server.url)
        found = kill_a_machine(Path(name), server.url, options.targets)
        text = page(papers, found, machines_scale(Path(name), min(options.targets, 1600), options.rounds))
    put(text, options.write)


if __name__ == "__main__":
    main()
