"""The arxiv citation graph (Hu and others 2020), whole or its core of 15,000 nodes.

With OGB's own files in the folder its features are real. Without them the graph, labels and split are real and the
features are a stand-in drawn from the labels, never from an edge; the caption of every result says which.
"""

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.errors import MissingDependency
from privcfs_lab.datasets.dataset import Dataset, Numbers, Split, borrowed, read_npz, undirected

CORE = 15_000
DIMENSIONS = 128
STRENGTH = 2.5  # distance of class means from the origin, in standard deviations of the noise along one axis
STAND_IN = (
    "The graph, labels and split are those of ogbn-arxiv. Its features were not at hand: each node has a stand-in of "
    "128 numbers, its class's random direction plus Gaussian noise (seed 0): made from labels, never from an edge."
)
CORE_NOTE = "The core is taken to be the 15,000 nodes of highest out-degree: an inference from the paper's edge count."


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Raw:
    features: NDArray[np.float32]
    citing: Numbers
    cited: Numbers
    labels: Numbers
    split: Split
    caption: str


def load(folder: Path, name: str) -> Dataset:
    """The whole graph ("arxiv") or its core ("arxiv-core")."""
    raw = _from_ogb(folder) if (folder / "ogbn_arxiv").is_dir() else _from_graph(folder)
    kept, caption = np.arange(len(raw.labels)), raw.caption
    if name == "arxiv-core":
        kept, caption = core(raw.citing, len(raw.labels)), f"{caption} {CORE_NOTE}".strip()
    number = np.full(len(raw.labels), -1)
    number[kept] = np.arange(len(kept))
    inside = (number[raw.citing] >= 0) & (number[raw.cited] >= 0)
    pairs = undirected(number[raw.citing[inside]], number[raw.cited[inside]])
    split = Split(*(number[part[number[part] >= 0]] for part in raw.split))
    return Dataset(name, sp.csr_array(raw.features[kept]), pairs, raw.labels[kept], split, caption)


def core(citing: Numbers, nodes: int) -> Numbers:
    """The nodes that cite most; of equals, those with the smaller number."""
    order = np.argsort(-np.bincount(citing, minlength=nodes), kind="stable")
    return np.sort(order[:CORE])


def _from_graph(folder: Path) -> _Raw:
    arrays = read_npz(folder / "arxiv/arxiv_graph_nofeat.npz")
    labels = arrays["y"].astype(np.int64)
    citing, cited = arrays["edge_index"].astype(np.int64)
    parts = Split(*(np.sort(arrays[part].astype(np.int64)) for part in ("train", "valid", "test")))
    return _Raw(stand_in(labels), citing, cited, labels, parts, STAND_IN)


def stand_in(labels: Numbers) -> NDArray[np.float32]:
    """One row per node: a random direction for its class, plus noise."""
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(int(labels.max()) + 1, DIMENSIONS))
    directions *= STRENGTH / np.linalg.norm(directions, axis=1, keepdims=True)
    rows: NDArray[np.float32] = (directions[labels] + rng.normal(size=(len(labels), DIMENSIONS))).astype(np.float32)
    return rows


def _from_ogb(folder: Path) -> _Raw:
    """Through OGB's own package, which unpacks and orders the files."""
    try:
        from ogb.nodeproppred import NodePropPredDataset
    except ImportError:
        raise MissingDependency("ogbn-arxiv is read by the package ogb; run: pip install ogb.") from None
    with borrowed(folder / "ogbn_arxiv") as fresh, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        data = NodePropPredDataset(name="ogbn-arxiv", root=str(fresh))
        split = data.get_idx_split()
    graph, labels = data[0]
    parts = Split(*(np.sort(np.asarray(split[part], np.int64)) for part in ("train", "valid", "test")))
    citing, cited = graph["edge_index"].astype(np.int64)
    return _Raw(graph["node_feat"], citing, cited, labels.ravel().astype(np.int64), parts, "")
