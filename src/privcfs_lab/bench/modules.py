"""Other models than a GCN, through the generic evaluator: what the first guided answer about a node takes."""

from functools import partial
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from privcfs.embedded import Dataset
from privcfs.errors import MissingDependency
from privcfs.gate.vault import Vault
from privcfs.private.graph import PrivateGraph
from privcfs.public.assumptions import SIMULATED
from privcfs.public.context import PublicContext
from privcfs.public.models.torch_module import TorchModel
from privcfs_lab.bench.part import Extent, Part, Row
from privcfs_lab.bench.releases import fresh_ledger
from privcfs_lab.bench.timing import Spent, spent

TARGETS = 9  # asked about once each, after one that is not counted
WIDTH, HEADS = 64, 8
# The size of the DBLP citation graph, which is grown here by preferential attachment.
NODES, PAIRS_OF_EACH, FEATURES, OWN_FEATURES, CLASSES = 17_716, 3, 1_639, 5, 4
KINDS = {"two-layer GAT": 2, "three-layer GraphSAGE": 3}
ASKED = {"Cora": "within 2 s", "grown graph": "within 5 s"}


def modules_part(data: Dataset, _: Extent) -> Part:
    """First guided answers about nodes, with untrained weights, on Cora and on a larger graph, by one core."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            return Part([_row(name, place, *_placed(place, data)) for place in ASKED for name in KINDS])
    finally:
        torch.set_num_threads(threads)


def _row(name: str, place: str, features: sp.csr_array, snapshot: NDArray[np.int64], graph: PrivateGraph) -> Row:
    model = untrained(name, features.shape[1])
    context = PublicContext(features, snapshot, model, assumptions=SIMULATED)
    targets = np.random.default_rng(1).permutation(features.shape[0])[: TARGETS + 1].tolist()
    with fresh_ledger() as ledger:
        vault = Vault(graph, context, ledger=ledger, simulation=True)
        vault.release(targets[0], "1")  # learns from public data, once for each vault
        calls = [spent(partial(vault.release, target, "1")) for target in targets[1:]]
    size = f"{features.shape[0]:,} nodes, {features.shape[1]:,} features"
    (wall, work), (slowest, most) = Spent.median(calls), (max(one) for one in zip(*calls, strict=True))
    found = f"{wall:.2f} s, processor time {work:.2f} s; slowest of {TARGETS} {slowest:.2f} s, {most:.2f} s"
    return f"{name} on {place} ({size}): first guided release about a node", found, ASKED[place]


def _placed(place: str, data: Dataset) -> tuple[sp.csr_array, NDArray[np.int64], PrivateGraph]:
    """Features, snapshot and private graph."""
    if place == "Cora":
        return data.features, data.snapshot, data.private_graph()
    rng = np.random.default_rng(0)
    pairs = grown_pairs(NODES, rng)
    columns = np.argsort(rng.random((NODES, FEATURES)), axis=1)[:, :OWN_FEATURES]
    rows = np.repeat(np.arange(NODES), OWN_FEATURES)
    features = sp.csr_array((np.ones(rows.size, np.float32), (rows, columns.ravel())), shape=(NODES, FEATURES))
    return features, pairs[rng.random(len(pairs)) < 0.5], PrivateGraph.from_edges(pairs, number_of_nodes=NODES)


def grown_pairs(nodes: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A graph in which each new node joins a few earlier ones, in proportion to their degrees."""
    ends = list(range(PAIRS_OF_EACH))
    pairs = []
    for node in range(PAIRS_OF_EACH, nodes):
        joined = {ends[place] for place in rng.integers(0, len(ends), PAIRS_OF_EACH).tolist()}
        pairs += [(one, node) for one in sorted(joined)]
        ends += [*sorted(joined), *[node] * len(joined)]
    return np.array(pairs, np.int64)


def untrained(name: str, features: int) -> TorchModel:
    """A module of this kind; its weights are those that it starts from, because speed does not depend on them."""
    try:
        import torch
        from torch_geometric.nn import GATConv, SAGEConv
    except ImportError:
        raise MissingDependency("The benchmark compares with torch; run: pip install 'privcfs[lab]'.") from None
    from privcfs_lab.models.modules import Stack

    widths = [features, *[WIDTH] * (KINDS[name] - 1), CLASSES]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if "GAT" in name:
            layers = [GATConv(features, WIDTH // HEADS, heads=HEADS), GATConv(WIDTH, CLASSES)]
        else:
            layers = [SAGEConv(a, b) for a, b in pairwise(widths)]
    return TorchModel(Stack(layers), hops=KINDS[name], number_of_features=features, number_of_classes=CLASSES)
