"""Facebook Page-Page (Rozemberczki, Allen and Sarkar 2021): verified pages, joined where they like each other."""

from pathlib import Path

import numpy as np

from privcfs_lab.datasets.dataset import Dataset, planetoid_like_split, read_npz, sparse, undirected


def load(folder: Path) -> Dataset:
    """Words of the page's description as features; 179 self-loops are dropped; the split is drawn."""
    arrays = read_npz(folder / "FacebookPagePage/raw/facebook.npz")
    adjacency, labels = sparse(arrays, "adj").tocoo(), arrays["labels"].astype(np.int64)
    caption = "20 training nodes a class, 1,000 test nodes by a public draw."
    pairs = undirected(*adjacency.coords)
    return Dataset("facebook", sparse(arrays, "attr"), pairs, labels, planetoid_like_split(labels), caption)
