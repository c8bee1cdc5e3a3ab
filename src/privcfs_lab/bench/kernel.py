"""The evaluators against the machine: one list of the paper's size, and how its cost grows."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from privcfs.embedded import Dataset
from privcfs.errors import MissingDependency
from privcfs.gate.method import Method
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.public.assumptions import SIMULATED
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.candidates.pairs import OneHop
from privcfs.public.candidates.product import Product
from privcfs.public.context import PublicContext
from privcfs.public.interventions import EncodedChange, FeatureChange
from privcfs.public.models.gcn import GCN
from privcfs.public.models.model import Model
from privcfs.public.models.torch_module import TorchModel
from privcfs_lab.bench.part import Extent, Part
from privcfs_lab.bench.timing import MATRIX, median, multiply
from privcfs_lab.figures.bench import Point, draw_growth
from privcfs_lab.figures.page import Picture

TARGET = 55  # twelve neighbours, some of them in triangles with it
PUBLIC_PAIRS = tuple(range(1, 13))
DEGREES = (4, 8, 16, 32, 64, 128, 256, 512, 1024)
BRANCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # further neighbours of each of twelve
CURVE_REPEATS = 9


def kernel_part(data: Dataset, extent: Extent) -> Part:
    """The fast evaluator against matrix products on the same core, and against each of its sizes."""
    with threadpool_limits(1):
        peak = 2 * MATRIX**3 / median(multiply(), 5)
        count, fast = _fast_seconds(data, extent.repeats)
        changed = _changed_seconds(data, extent.repeats)
        growth = {
            "candidates (12 neighbours)": _by_support(data),
            "neighbours (12 of them public)": _by_degree(data),
            "nodes two steps away (12 neighbours)": _by_two_hops(data),
        }
    limit = candidate_flops(12, data.model("snapshot")) / peak
    rows = [
        ("candidates", f"{count:,}", "23,621"),
        ("fast evaluator, one core", f"{fast * 1e9:.0f} ns a candidate", "at most 45 ns"),
        ("the same, features changed and not masked", f"{changed * 1e9:.0f} ns a candidate", "as with masks"),
        ("matrix-multiply rate (sgemm), same core", f"{peak / 1e9:.0f} GFLOP/s", "-"),
        ("arithmetic of one candidate by itself at that rate", f"{limit * 1e9:.0f} ns", "-"),
        ("fast evaluator over that", f"{fast / limit:.1f}", "-"),
    ]
    words = "Milliseconds of an evaluation against candidates, neighbours and nodes two steps away."
    return Part(rows, [Picture(words, lambda: draw_growth(growth))])


def generic_part(data: Dataset, __: Extent) -> Part:
    """The same list as a PyTorch Geometric module, on all cores, and the fast evaluator once more beside it."""
    graph = data.private_graph()
    context = fully_public(data, graph, as_module(data.model("snapshot")))
    candidates = Method().candidates.propose(context, TARGET)
    generic = median(lambda: evaluate(graph, context, candidates, UNLIMITED), 3) / len(candidates)
    with threadpool_limits(1):
        _, fast = _fast_seconds(data, 9)
    return Part(
        [
            ("generic torch evaluator, all cores", f"{1 / generic:,.0f} candidates a second", "at least 4,000"),
            ("generic over fast", f"{generic / fast:,.0f}", "-"),
        ]
    )


def fully_public(data: Dataset, graph: PrivateGraph, model: Model) -> PublicContext:
    """A snapshot that holds all of the target's edges, so that the support has its full size."""
    pairs = sorted((min(TARGET, int(node)), max(TARGET, int(node))) for node in graph.neighbours(TARGET))
    return PublicContext(data.features, pairs, model, assumptions=SIMULATED)


def _fast_seconds(data: Dataset, repeats: int) -> tuple[int, float]:
    """Candidates of the paper's full list, and seconds of each under the fast evaluator."""
    graph = data.private_graph()
    context = fully_public(data, graph, data.model("snapshot"))
    candidates = Method().candidates.propose(context, TARGET)
    return len(candidates), median(lambda: evaluate(graph, context, candidates, UNLIMITED), repeats) / len(candidates)


def _changed_seconds(data: Dataset, repeats: int) -> float:
    """Seconds of each candidate of the same list, with changes of features in the place of masks."""
    graph = data.private_graph()
    context = fully_public(data, graph, data.model("snapshot"))
    candidates = with_changes(context, Method().candidates.propose(context, TARGET))
    return median(lambda: evaluate(graph, context, candidates, UNLIMITED), repeats) / len(candidates)


def with_changes(context: PublicContext, candidates: Candidates) -> Candidates:
    """The same list with as many changes as it has masks: every other word is left out, and the others are added."""
    present = set(context.feature_row(candidates.target)[0].tolist())
    strongest = np.argsort(-context.model.feature_weights(), kind="stable").tolist()
    absent = [number for number in strongest if number not in present][: len(candidates.features)]
    value = float(context.feature_row(candidates.target)[1].max())
    chosen = [(one, 0.0) if number % 2 else (absent[number], value) for number, one in enumerate(candidates.features)]
    changes = tuple(EncodedChange(FeatureChange(f"word {one}", str(to)), (one,), (to,)) for one, to in chosen)
    return replace(candidates, features=(), changes=changes)


def candidate_flops(degree: float, model: GCN) -> int:
    """One candidate by itself: each hidden row of target and neighbours, then the readout."""
    hidden, classes = model.second.shape
    return int((degree + 1) * hidden * 3 + 2 * hidden * classes)


def _by_support(data: Dataset) -> list[Point]:
    """Lists of one target with more and more of its pairs."""
    graph = data.private_graph()
    context = fully_public(data, graph, data.model("snapshot"))
    found = []
    for most in PUBLIC_PAIRS:
        candidates = Product(OneHop(most)).propose(context, TARGET)
        seconds = median(lambda c=candidates: evaluate(graph, context, c, UNLIMITED), CURVE_REPEATS)  # type: ignore[misc]
        found.append(Point(len(candidates), 1e3 * seconds))
    return found


def _by_degree(data: Dataset) -> list[Point]:
    """Targets with more and more private neighbours, twelve of which are public."""
    return [Point(degree, _star_milliseconds(data, degree, 4)) for degree in DEGREES]


def _by_two_hops(data: Dataset) -> list[Point]:
    """Targets of twelve neighbours whose neighbours have more and more of their own."""
    return [Point(12 * branch, _star_milliseconds(data, 12, branch)) for branch in BRANCHES]


def _star_milliseconds(data: Dataset, degree: int, branch: int) -> float:
    pairs = np.array(list(_star(degree, branch)), np.int64)
    nodes = int(pairs.max()) + 1
    rows = np.random.default_rng(0).integers(0, data.features.shape[0], nodes)
    public: NDArray[np.int64] = pairs[: min(degree, 12)]
    context = PublicContext(data.features[rows], public, data.model("snapshot"), assumptions=SIMULATED)
    graph = PrivateGraph.from_edges(pairs, number_of_nodes=nodes)
    candidates = Method().candidates.propose(context, 0)
    return 1e3 * median(lambda: evaluate(graph, context, candidates, UNLIMITED), CURVE_REPEATS)


def _star(degree: int, branch: int) -> Iterator[tuple[int, int]]:
    yield from ((0, 1 + one) for one in range(degree))
    yield from ((1 + one, 1 + degree + one * branch + leaf) for one in range(degree) for leaf in range(branch))


def as_module(model: GCN) -> TorchModel:
    """The same GCN as a PyTorch Geometric module."""
    try:
        import torch
        from torch_geometric.nn import GCNConv
    except ImportError:
        raise MissingDependency("The benchmark compares with torch; run: pip install 'privcfs[lab]'.") from None

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = GCNConv(*model.first.shape)
            self.second = GCNConv(*model.second.shape)

        def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
            out: torch.Tensor = self.second(torch.relu(self.first(x, edge_index)), edge_index)
            return out

    module = Module()
    for layer, weight, bias in (
        (module.first, model.first, model.first_bias),
        (module.second, model.second, model.second_bias),
    ):
        layer.lin.weight.data = torch.tensor(weight.T)
        layer.bias.data = torch.tensor(bias)
    return TorchModel(
        module,
        hops=2,
        number_of_features=model.number_of_features,
        number_of_classes=model.number_of_classes,
    )
