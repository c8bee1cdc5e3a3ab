"""Pairs without a public graph (the paper's ablation e): the target with the nodes of most similar features.

Certifies: the same as any public candidate list. Operations: delete pairs, few of which exist.
"""

from dataclasses import dataclass
from typing import final

import numpy as np

from privcfs.public.candidates.pairs import PairUniverse
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Pair, pair


@final
@dataclass(frozen=True, slots=True)
class FeatureNeighbours(PairUniverse):
    """The `most` nodes of highest cosine similarity; ties by number."""

    most: int = 12

    def pairs(self, context: PublicContext, target: int) -> tuple[Pair, ...]:
        features = context.features
        lengths = np.sqrt(np.asarray(features.multiply(features).sum(axis=1)).ravel())
        row = features[[target]]
        likeness = np.asarray((features @ row.T).todense()).ravel() / np.maximum(lengths, 1e-12)
        likeness[target] = -np.inf
        best = np.argsort(-likeness, kind="stable")[: self.most]
        return tuple(pair(target, int(node)) for node in best)
