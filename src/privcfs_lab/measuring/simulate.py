"""One seed of the paper's setting: a frozen model, and an order in which edges are disclosed.

The snapshots are drawn from the private edges: they simulate a disclosure and never reach a real vault.
"""

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, final

import numpy as np
from numpy.typing import NDArray

from privcfs.embedded import NAMES, load_dataset
from privcfs.private.graph import PrivateGraph
from privcfs.public.assumptions import SIMULATED, Assumption
from privcfs.public.context import PublicContext
from privcfs.public.models.files import load_model, save_model
from privcfs.public.models.gcn import GCN
from privcfs.public.models.training import Labelled, Training, accuracy, train_gcn
from privcfs_lab.datasets import load
from privcfs_lab.datasets.dataset import Dataset

Pairs = NDArray[np.int64]
TrainedOn = Literal["all edges", "snapshot"]
ASSUMPTIONS = {
    "all edges": SIMULATED - {Assumption.BACKBONE_FROM_SNAPSHOT} | {Assumption.BACKBONE_PUBLIC},
    "snapshot": SIMULATED,
}
HALF = 0.5


@final
@dataclass(frozen=True, eq=False)
class Simulation:
    """Everything that one seed decides. Seed 0 of an embedded data set uses the embedded weights.

    The paper trains on all edges; a deployable model is trained on the snapshot (half of the edges). With `keep`,
    trained weights are kept in that folder.
    """

    name: str
    seed: int
    trained_on: TrainedOn = "all edges"
    keep: Path | None = None

    @cached_property
    def data(self) -> Dataset:
        """Features, labels, split, and the edges that play the secret."""
        return load(self.name)

    @cached_property
    def model(self) -> GCN:
        """Frozen."""
        if self.seed == 0 and self.name in NAMES:
            return load_dataset(self.name).model("paper" if self.trained_on == "all edges" else "snapshot")
        path = self.keep and self.keep / f"{self.name}-{self.seed}-{self.trained_on.replace(' ', '-')}.safetensors"
        if path and path.exists():
            return load_model(path)
        pairs = self.data.pairs if self.trained_on == "all edges" else self.snapshot(HALF)
        fitted = train_gcn(self._labelled(pairs), Training(seed=self.seed))
        if path:
            fresh = path.with_suffix(f".{os.getpid()}.safetensors")
            save_model(fitted, fresh, {})
            fresh.replace(path)
        return fitted

    @cached_property
    def graph(self) -> PrivateGraph:
        """The secret."""
        return PrivateGraph.from_edges(self.data.pairs, number_of_nodes=len(self.data.labels))

    def snapshot(self, disclosed: float) -> Pairs:
        """The first share of one random order of the edges, so that snapshots are nested."""
        pairs = self.data.pairs
        order = np.random.default_rng(self.seed).permutation(len(pairs))
        chosen: Pairs = pairs[np.sort(order[: round(disclosed * len(pairs))])]
        return chosen

    def context(self, disclosed: float) -> PublicContext:
        """The public side when that share of the edges is disclosed."""
        assumptions = ASSUMPTIONS[self.trained_on]
        return PublicContext(self.data.features, self.snapshot(disclosed), self.model, assumptions=assumptions)

    @cached_property
    def margins(self) -> NDArray[np.float64]:
        """Probability of the best class minus that of the second, for every node. Private."""
        logits = self.model.logits(self.data.features, self.data.pairs)
        probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        best = np.sort(probabilities, axis=1)[:, -2:]
        margins: NDArray[np.float64] = best[:, 1] - best[:, 0]
        return margins

    @cached_property
    def accuracy(self) -> float:
        """The share of test nodes that the model gets right on all edges."""
        return accuracy(self.model, self._labelled(self.data.pairs), self.data.split.test)

    def _labelled(self, pairs: Pairs) -> Labelled:
        return Labelled(self.data.features, pairs, self.data.labels, self.data.split.train)
