"""Speed and memory of one release, measured in one run."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np

from privcfs.embedded import Dataset, load_dataset
from privcfs.errors import MissingDependency
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.gate.method import Method
from privcfs.gate.vault import Vault
from privcfs.lab.report import Column, Page
from privcfs.private.deadline import Deadline
from privcfs.private.graph import PrivateGraph
from privcfs.private.outcomes import evaluate
from privcfs.public.assumptions import SIMULATED
from privcfs.public.backbones.backbone import Backbone
from privcfs.public.backbones.gcn import GCN
from privcfs.public.backbones.torch_module import TorchBackbone
from privcfs.public.candidates.pairs import TwoHop
from privcfs.public.candidates.small_sets import SmallSets
from privcfs.public.context import PublicContext

TARGET = 55  # twelve neighbours, some of them in triangles with it
LONG = Deadline(3600)
MATRIX = 1024


def bench_page(repeats: int) -> Page:
    """Every figure with what was asked for."""
    about = (
        f"Median of {repeats} repetitions, all in one run, one core unless it says otherwise. Cora, node 55: 12 "
        "neighbours, all of them public for this purpose, paper's support. Ratios travel between machines better than "
        "times."
    )
    return Page("Benchmark", about, (Column("what"), Column("value"), Column("asked for")), _rows(repeats))


def _rows(repeats: int) -> list[tuple[str, str, str]]:
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        raise MissingDependency("The benchmark needs threadpoolctl; run: pip install 'privcfs[lab]'.") from None
    data = load_dataset("cora")
    graph = data.private_graph()
    context = _fully_public(data, graph, data.backbone("snapshot"))
    candidates = Method().candidates.propose(context, TARGET)
    count = len(candidates)
    with threadpool_limits(1):
        fast = _median(lambda: evaluate(graph, context, candidates, LONG), repeats) / count
        peak = 2 * MATRIX**3 / _median(_multiply(), 5)
    with threadpool_limits(1):
        release = _release_seconds(graph, context, repeats)
        first, again = _guided_seconds(data)
        long, seconds = _longest(data)
    flops = _flops(len(graph.neighbours(TARGET)), data.backbone("snapshot"))
    generic_context = _fully_public(data, graph, as_module(data.backbone("snapshot")))
    generic = _median(lambda: evaluate(graph, generic_context, candidates, LONG), 3) / count
    return [
        ("candidates", f"{count:,}", "23,621"),
        ("fast evaluator, one core", f"{fast * 1e9:.0f} ns a candidate", "at most 100 ns"),
        ("matrix-multiply peak, same core", f"{peak / 1e9:.0f} GFLOP/s", "-"),
        ("arithmetic limit (one candidate by itself)", f"{flops / peak * 1e9:.0f} ns a candidate", "-"),
        ("fast evaluator over arithmetic limit", f"{fast * peak / flops:.1f}", "-"),
        ("generic torch evaluator, all cores", f"{1 / generic:,.0f} candidates a second", "at least 2,000"),
        ("generic over fast", f"{generic / fast:,.0f}", "-"),
        ("whole release with ledger, median", f"{release * 1e3:.1f} ms", "at most 15 ms"),
        ("guided release, first of a target and price, median of 10", f"{first * 1e3:.0f} ms", "-"),
        ("guided release, rehearsed before", f"{again * 1e3:.0f} ms", "-"),
        (f"a list of {long:,} candidates: propose, evaluate, score, draw", f"{seconds:.1f} s", "-"),
        ("demo, peak resident memory", f"{_demo_megabytes():.0f} MB", "under 300 MB"),
    ]


def as_module(backbone: GCN) -> TorchBackbone:
    """The same GCN as a PyTorch Geometric module."""
    try:
        import torch
        from torch_geometric.nn import GCNConv
    except ImportError:
        raise MissingDependency("The benchmark compares with torch; run: pip install 'privcfs[lab]'.") from None

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = GCNConv(*backbone.first.shape)
            self.second = GCNConv(*backbone.second.shape)

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.second(torch.relu(self.first(x, edge_index)), edge_index)
            return out

    module = Module()
    for layer, weight, bias in (
        (module.first, backbone.first, backbone.first_bias),
        (module.second, backbone.second, backbone.second_bias),
    ):
        layer.lin.weight.data = torch.tensor(weight.T)
        layer.bias.data = torch.tensor(bias)
    return TorchBackbone(
        module,
        hops=2,
        number_of_features=backbone.number_of_features,
        number_of_classes=backbone.number_of_classes,
    )


def _fully_public(data: Dataset, graph: PrivateGraph, backbone: Backbone) -> PublicContext:
    """A snapshot that holds all of the target's edges, so that the support has its full size."""
    pairs = sorted((min(TARGET, int(node)), max(TARGET, int(node))) for node in graph.neighbours(TARGET))
    return PublicContext(data.features, pairs, backbone, assumptions=SIMULATED)


def _release_seconds(graph: PrivateGraph, context: PublicContext, repeats: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'bench.db'}"
        vault = Vault(graph, context, ledger=url, limit="100000", simulation=True, method=Method())
        return _median(lambda: vault.release(TARGET, "1"), repeats)


def _guided_seconds(data: Dataset) -> tuple[float, float]:
    """A guided release with its rehearsal, and one whose imagined graphs were evaluated before."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'bench.db'}"
        vault = Vault(data.private_graph(), data.context(), ledger=url, limit="100000", simulation=True)
        vault.release(0, "1")
        targets = iter(data.test.tolist())
        first = _median(lambda: vault.release(next(targets), "1"), 10)
        return first, _median(lambda: vault.release(0, "1"), 10)


def _longest(data: Dataset) -> tuple[int, float]:
    """The largest of the lists that are worth enumerating, once, without a rehearsal."""
    method = Method(SmallSets(5, TwoHop(27)), mechanism=SubsetSelection(Fraction(1, 1000)))
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'bench.db'}"
        vault = Vault(data.private_graph(), data.context(), ledger=url, limit="100000", simulation=True, method=method)
        target = max(data.test.tolist(), key=lambda node: len(vault.context.snapshot.neighbours(node)))
        started = time.perf_counter()
        vault.release(target, "1")
        return len(vault.propose(target)), time.perf_counter() - started


def _multiply() -> Callable[[], object]:
    matrix = np.random.default_rng(0).random((MATRIX, MATRIX), np.float32)
    return lambda: matrix @ matrix


def _flops(degree: int, backbone: GCN) -> int:
    """One candidate by itself: each hidden row of target and neighbours, then the readout."""
    hidden, classes = backbone.second.shape
    return int((degree + 1) * hidden * 3 + 2 * hidden * classes)


def _median(work: Callable[[], object], repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def _demo_megabytes() -> float:
    """Peak memory of `privcfs demo` in a process of its own, as Linux reports it for that program alone."""
    script = """
import sys
from privcfs.cli import main
try:
    main()
except SystemExit:
    pass
status = open("/proc/self/status").read()
sys.stderr.write(status.split("VmHWM:")[1].split()[0])
"""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", script, "demo", "--folder", folder, "--json"]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
    return int(done.stderr) / 1024
