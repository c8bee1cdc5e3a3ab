"""Coauthor CS and Physics (Shchur and others 2018): authors, joined where they wrote a paper together."""

from pathlib import Path

import numpy as np

from privcfs_lab.datasets.dataset import Dataset, planetoid_like_split, read_npz, sparse, undirected

FILES = {
    "coauthor-cs": "Coauthor/CS/raw/ms_academic_cs.npz",
    "coauthor-physics": "Coauthor/Physics/raw/ms_academic_phy.npz",
}


def load(folder: Path, name: str) -> Dataset:
    """Keyword counts as features; the collection has no split, so one is drawn."""
    arrays = read_npz(folder / FILES[name])
    adjacency, labels = sparse(arrays, "adj").tocoo(), arrays["labels"].astype(np.int64)
    caption = "20 training nodes a class, 1,000 test nodes by a public draw."
    pairs = undirected(*adjacency.coords)
    return Dataset(name, sparse(arrays, "attr"), pairs, labels, planetoid_like_split(labels), caption)
