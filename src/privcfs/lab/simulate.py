"""One seed of the paper's setting: a backbone trained on all edges, and an order in which edges are disclosed.

The snapshots are drawn from the private edges: they simulate a disclosure and never reach a real vault.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.embedded import Dataset, load_dataset
from privcfs.lab.training import Labelled, Training, train_gcn
from privcfs.private.graph import PrivateGraph
from privcfs.public.assumptions import SIMULATED, Assumption
from privcfs.public.backbones.gcn import GCN
from privcfs.public.context import PublicContext

Pairs = NDArray[np.int64]
ASSUMPTIONS = SIMULATED - {Assumption.BACKBONE_FROM_SNAPSHOT} | {Assumption.BACKBONE_PUBLIC}


@final
@dataclass(frozen=True, eq=False)
class Simulation:
    """Everything that one seed decides. Seed 0 uses the embedded weights and snapshot order."""

    name: str
    seed: int

    @cached_property
    def data(self) -> Dataset:
        """Features, labels and split."""
        return load_dataset(self.name)

    @cached_property
    def pairs(self) -> Pairs:
        """The edges that play the secret."""
        return self.data.edges()

    @cached_property
    def backbone(self) -> GCN:
        """Trained on all edges, as the paper does."""
        if self.seed == 0:
            return self.data.backbone("paper")
        seen = Labelled(self.data.features, self.pairs, self.data.labels, self.data.train)
        return train_gcn(seen, Training(seed=self.seed))

    @cached_property
    def graph(self) -> PrivateGraph:
        """The secret."""
        return PrivateGraph.from_edges(self.pairs, number_of_nodes=len(self.data.labels))

    def snapshot(self, disclosed: float) -> Pairs:
        """The first share of one random order of the edges, so that snapshots are nested."""
        order = np.random.default_rng(self.seed).permutation(len(self.pairs))
        chosen: Pairs = self.pairs[np.sort(order[: round(disclosed * len(self.pairs))])]
        return chosen

    def context(self, disclosed: float) -> PublicContext:
        """The public side when that share of the edges is disclosed."""
        return PublicContext(self.data.features, self.snapshot(disclosed), self.backbone, assumptions=ASSUMPTIONS)

    @cached_property
    def margins(self) -> NDArray[np.float64]:
        """Probability of the best class minus that of the second, for every node. Private."""
        logits = self.backbone.logits(self.data.features, self.pairs)
        probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        best = np.sort(probabilities, axis=1)[:, -2:]
        margins: NDArray[np.float64] = best[:, 1] - best[:, 0]
        return margins
