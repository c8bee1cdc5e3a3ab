"""Which pairs may be deleted: the paper's edge universe, one hop or two, and public priors in a snapshot's place."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np

from privcfs.public.context import PublicContext
from privcfs.public.interventions import Pair, pair


class PairUniverse(ABC):
    """Names the deletable pairs of a target, in a public order."""

    @abstractmethod
    def pairs(self, context: PublicContext, target: int) -> tuple[Pair, ...]:
        """Distinct pairs; fewer than the cap, or none, where the snapshot has no more."""


@final
@dataclass(frozen=True, slots=True)
class OneHop(PairUniverse):
    """The target's snapshot pairs, sorted by the other node's number; the first `most`."""

    most: int = 12

    def pairs(self, context: PublicContext, target: int) -> tuple[Pair, ...]:
        neighbours = context.snapshot.neighbours(target)[: self.most]
        return tuple(pair(target, other) for other in neighbours)


@final
@dataclass(frozen=True, slots=True)
class TwoHop(PairUniverse):
    """The target's own snapshot pairs first, then those of its snapshot neighbours, sorted; the first `most`."""

    most: int = 24

    def pairs(self, context: PublicContext, target: int) -> tuple[Pair, ...]:
        near = context.snapshot.neighbours(target)
        own = [pair(target, other) for other in near]
        beyond = {pair(u, w) for u in near for w in context.snapshot.neighbours(u) if w != target}
        return tuple((own + sorted(beyond))[: self.most])


@final
@dataclass(frozen=True, slots=True)
class Listed(PairUniverse):
    """The target's pairs in a public list of its own, such as a graph of metadata; sorted, the first `most`."""

    listed: tuple[Pair, ...]
    most: int = 12

    def pairs(self, context: PublicContext, target: int) -> tuple[Pair, ...]:  # noqa: ARG002
        return tuple(sorted(one for one in set(self.listed) if target in one)[: self.most])


@final
@dataclass(frozen=True, slots=True)
class LinkPredictor(PairUniverse):
    """The `most` nodes of highest cosine similarity of public features: a guess at links; ties by number."""

    most: int = 12

    def pairs(self, context: PublicContext, target: int) -> tuple[Pair, ...]:
        features = context.features
        lengths = np.sqrt(np.asarray(features.multiply(features).sum(axis=1)).ravel())
        likeness = np.asarray((features @ features[[target]].T).todense()).ravel() / np.maximum(lengths, 1e-12)
        order = np.argsort(-likeness, kind="stable")
        return tuple(pair(target, int(node)) for node in order[order != target][: self.most])
