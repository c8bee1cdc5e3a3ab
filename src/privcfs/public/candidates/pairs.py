"""Which snapshot pairs may be deleted: the paper's edge universe, one hop or two."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

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
