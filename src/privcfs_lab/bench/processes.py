"""Several processes against what the machine's cores can do; all targets; cold starts; memory."""

import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from privcfs.embedded import Dataset
from privcfs.gate.ledger import open_ledger
from privcfs.gate.method import Method
from privcfs.gate.vault import Vault
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs_lab.bench.kernel import TARGET, fully_public
from privcfs_lab.bench.part import Extent, Part
from privcfs_lab.bench.releases import fresh_ledger
from privcfs_lab.bench.timing import RUN_PRIVCFS, cores, many_products, once, scaling, side_by_side
from privcfs_lab.datasets.vault_folder import write_vault
from privcfs_lab.figures.bench import draw_many
from privcfs_lab.figures.page import Picture

EVALUATIONS = 300  # that one process does while scaling is measured
TOGETHER = 16  # targets that are charged together
ROUNDS = 7


def processes_part(data: Dataset, _: Extent) -> Part:
    """All test nodes at the paper's settings, by one process and by as many as there are cores."""
    number = cores()
    with threadpool_limits(1):
        rounds = [_core_scaling(data, number) for _ in range(ROUNDS)]
        alone = _all_nodes(data)
        together = _all_nodes_by_several(data, number)
    batch = _batch(data, number)
    ours, machine = (float(np.median([one[side] for one in rounds])) for side in (0, 1))
    share = float(np.median([one / other for one, other in rounds]))
    nodes = f"all {len(data.test):,} test nodes, paper's settings, durably charged"
    rows = [
        (f"{number} processes: evaluations over one", f"{ours:.2f}", "-"),
        (f"{number} processes: sgemm over one", f"{machine:.2f}", "-"),
        (f"evaluations' share of sgemm's scaling, median of {ROUNDS}", f"{share:.2f}", "at least 0.85"),
        (f"{nodes}: one process", f"{alone[-1]:.1f} s", "-"),
        (f"... {number} processes, one ledger", f"{together:.1f} s", "under 20 s on two cores"),
        (
            f"`privcfs batch --workers {number}`: the same nodes, guided, each for the first time, durably charged",
            f"{batch:.1f} s",
            "under 10 s on two cores",
        ),
    ]
    words = "Seconds against targets; several processes against matrix products."
    workers = [(1, 1.0, 1.0), (number, ours, machine)]
    return Part(rows, [Picture(words, lambda: draw_many(alone, len(data.test), workers))])


def starts_part(_: Dataset, __: Extent) -> Part:
    """From nothing to the first answer of `privcfs explain`, and the most memory of the demo."""
    paper, guided = (_cold_start(*names) for names in (("one-hop", "exponential"), ("small-sets", "rehearsed")))
    return Part(
        [
            ("cold start to the first answer, paper's method", f"{paper:.2f} s", "within 2 s"),
            ("cold start to the first answer, guided", f"{guided:.2f} s", "within 1.5 s"),
            ("demo, peak resident memory", f"{_demo_megabytes():.0f} MB", "under 300 MB"),
        ]
    )


def _core_scaling(data: Dataset, processes: int) -> tuple[float, float]:
    """What so many processes evaluate more than one, and what they multiply more."""
    graph = data.private_graph()
    context = fully_public(data, graph, data.model("snapshot"))
    candidates = Method().candidates.propose(context, TARGET)

    def evaluations() -> None:
        for _ in range(EVALUATIONS):
            evaluate(graph, context, candidates, UNLIMITED)

    return scaling(evaluations, processes), scaling(many_products, processes)


def _release_part(vault: Vault, nodes: list[int]) -> None:
    vault.release_all([(node, "1", f"bench/{node}") for node in nodes])


def _all_nodes(data: Dataset) -> list[float]:
    """One process: seconds until each part was done."""
    with fresh_ledger() as ledger:
        vault = Vault(data.private_graph(), data.paper_context(), ledger=ledger, simulation=True, method=Method())
        nodes, seconds = data.test.tolist(), [0.0]
        started = time.perf_counter()
        for start in range(0, len(nodes), TOGETHER):
            _release_part(vault, nodes[start : start + TOGETHER])
            seconds.append(time.perf_counter() - started)
        assert ledger.balance().spent == len(nodes)
        return seconds


def _all_nodes_by_several(data: Dataset, processes: int) -> float:
    """Several processes with one ledger, each with its share of the targets: seconds until the last is done."""
    with tempfile.TemporaryDirectory() as folder:
        url, nodes = f"sqlite:///{Path(folder) / 'bench.db'}", data.test.tolist()

        def opened() -> Vault:
            context = data.paper_context()
            return Vault(data.private_graph(), context, ledger=url, limit="1000000", simulation=True, method=Method())

        opened()

        def share(number: int) -> None:
            vault, mine = opened(), nodes[number::processes]
            for start in range(0, len(mine), TOGETHER):
                _release_part(vault, mine[start : start + TOGETHER])

        seconds = side_by_side([partial(share, number) for number in range(processes)])
        assert open_ledger(url).balance().spent == len(nodes)
        return seconds


def _batch(data: Dataset, processes: int) -> float:
    """The whole command, from its start to its end, in a folder whose beliefs are learned."""
    with tempfile.TemporaryDirectory() as folder:
        write_vault(Path(folder), "sqlite:///budget.db", "1000000")
        (Path(folder) / "targets.txt").write_text("\n".join(str(node) for node in data.test))
        words = ["batch", "--targets", "targets.txt", "--epsilon", "1", "--json", "--workers", str(processes)]

        def run(*words: str) -> None:
            command = [sys.executable, "-c", RUN_PRIVCFS, *words]
            subprocess.run(command, check=True, capture_output=True, cwd=folder, env=_of_nobody(folder))

        run("guess", "0", "--json")
        return once(partial(run, *words))


def _of_nobody(folder: str) -> dict[str, str]:
    """Settings of a process with a list of graphs of its own: the same edges have a budget in each measurement."""
    return os.environ | {"PRIVCFS_GRAPHS": str(Path(folder) / "graphs.json")}


def _cold_start(candidates: str, mechanism: str, times: int = 5) -> float:
    """Interpreter, imports, files, ledger, release: seconds."""
    with tempfile.TemporaryDirectory() as folder:
        write_vault(Path(folder), "sqlite:///budget.db", "1000000", candidates=candidates, mechanism=mechanism)

        def explain(target: int) -> None:
            command = [sys.executable, "-c", RUN_PRIVCFS, "explain", str(target), "--epsilon", "1", "--json"]
            done = subprocess.run(
                command, check=True, capture_output=True, text=True, cwd=folder, env=_of_nobody(folder)
            )
            assert json.loads(done.stdout)

        return float(np.median([once(partial(explain, target)) for target in range(times)]))


def _demo_megabytes() -> float:
    """In a process of its own, as Linux reports it for that program alone."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", RUN_PRIVCFS, "demo", "--folder", folder, "--json"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stderr) / 1024
