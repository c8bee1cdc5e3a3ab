"""Cora and CiteSeer as they come with the package: Planetoid's node order and split. Copy this file for a new set."""

from pathlib import Path

from privcfs.embedded import load_dataset
from privcfs_lab.datasets.dataset import Dataset, Split


def load(folder: Path, name: str) -> Dataset:  # noqa: ARG001
    """The embedded arrays; the folder is not needed."""
    data = load_dataset(name)
    split = Split(data.train, data.validation, data.test)
    return Dataset(name, data.features, data.edges(), data.labels, split)
