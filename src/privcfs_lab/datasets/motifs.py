"""Graphs with a known reason for each label: a motif hangs on every labelled node (Ying and others 2019).

Drawn by PyTorch Geometric's generators with a fixed seed; every node has the same features, so only structure tells.
"""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from privcfs_lab.datasets.dataset import Dataset, Split, undirected

NAMES = ("ba-shapes", "tree-cycles", "tree-grid")
FEATURES = 10
SEED = 0


def load(_: Path, name: str) -> Dataset:
    """Label 0 is the base graph, all others are places in a motif; 80 % of the nodes train, 10 % test."""
    drawn = _drawn(_generator(name))
    first, second = drawn.edge_index.numpy()
    labels = drawn.y.numpy() if name == "ba-shapes" else drawn.node_mask.numpy().astype(np.int64)
    order = np.random.default_rng(SEED).permutation(len(labels))
    train, test = round(0.8 * len(labels)), round(0.9 * len(labels))
    split = Split(*(np.sort(part) for part in (order[:train], order[train:test], order[test:])))
    features = sp.csr_array(np.ones((len(labels), FEATURES), np.float32))
    return Dataset(name, features, undirected(first, second), labels, split, "made by PyTorch Geometric's generators")


def _generator(name: str) -> Callable[[], Any]:
    from torch_geometric.datasets import ExplainerDataset
    from torch_geometric.datasets.graph_generator import BAGraph, TreeGraph
    from torch_geometric.datasets.motif_generator import CycleMotif, GridMotif, HouseMotif

    base, motif, count = {
        "ba-shapes": (BAGraph(300, 5), HouseMotif(), 80),
        "tree-cycles": (TreeGraph(8, undirected=True), CycleMotif(6), 60),
        "tree-grid": (TreeGraph(8, undirected=True), GridMotif(), 80),
    }[name]
    return lambda: ExplainerDataset(base, motif, num_motifs=count)[0]


def _drawn(generate: Callable[[], Any]) -> Any:
    """One graph; the state of every random generator is put back."""
    import torch

    kept, plain = np.random.get_state(), random.getstate()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(SEED)
        np.random.seed(SEED)
        random.seed(SEED)
        drawn = generate()
    np.random.set_state(kept)
    random.setstate(plain)
    return drawn
