"""Data sets of the experiments. One file per source, one line per set; each is loaded from a folder of the user's.

Only the embedded ones come with the package. The folder is named by the environment variable PRIVCFS_DATA and laid out
as PyTorch Geometric lays out its own.
"""

import os
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path

from privcfs.errors import InputError
from privcfs_lab.datasets import arxiv, coauthor, facebook, german_credit, motifs, planetoid, shipped
from privcfs_lab.datasets.dataset import Dataset

Loader = Callable[[Path], Dataset]

DATASETS: Mapping[str, Loader] = {
    "cora": partial(shipped.load, name="cora"),
    "citeseer": partial(shipped.load, name="citeseer"),
    "pubmed": planetoid.load,
    "coauthor-cs": partial(coauthor.load, name="coauthor-cs"),
    "coauthor-physics": partial(coauthor.load, name="coauthor-physics"),
    "facebook": facebook.load,
    "german-credit": german_credit.load,
    "arxiv": partial(arxiv.load, name="arxiv"),
    "arxiv-core": partial(arxiv.load, name="arxiv-core"),
    **{name: partial(motifs.load, name=name) for name in motifs.NAMES},
}


def data_folder() -> Path:
    """Where the user keeps data sets that do not come with the package."""
    return Path(os.environ.get("PRIVCFS_DATA", "data"))


@lru_cache(maxsize=2)
def load(name: str) -> Dataset:
    """One data set by name, from the user's folder."""
    if name not in DATASETS:
        raise InputError(f"data set {name!r} is unknown; choose one of {', '.join(DATASETS)}.")
    return DATASETS[name](data_folder())
