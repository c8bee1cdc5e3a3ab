"""The public list that a release is drawn from."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

from privcfs.public.context import PublicContext
from privcfs.public.interventions import Intervention, Pair

Choice = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Caps:
    """The most pairs and the most features that one candidate of a rule may name."""

    pairs: int
    features: int

    @property
    def largest(self) -> int:
        """The paper's k_max."""
        return self.pairs + self.features


@dataclass(frozen=True, slots=True)
class Candidates:
    """All combinations of a pair set with a feature set, in a fixed public order; the first is the empty set.

    A pair set holds positions in `deletions + additions`, a feature set positions in `features`.
    """

    target: int
    caps: Caps
    deletions: tuple[Pair, ...] = ()
    additions: tuple[Pair, ...] = ()
    features: tuple[int, ...] = ()
    pair_sets: tuple[Choice, ...] = ((),)
    feature_sets: tuple[Choice, ...] = ((),)

    def __len__(self) -> int:
        return len(self.pair_sets) * len(self.feature_sets)

    def __getitem__(self, position: int) -> Intervention:
        if not 0 <= position < len(self):
            raise IndexError(f"candidate {position} of {len(self)}")
        pair_set, feature_set = divmod(position, len(self.feature_sets))
        chosen = self.pair_sets[pair_set]
        border = len(self.deletions)
        return Intervention(
            delete=tuple(self.deletions[i] for i in chosen if i < border),
            add=tuple(self.additions[i - border] for i in chosen if i >= border),
            mask=tuple(self.features[i] for i in self.feature_sets[feature_set]),
        )

    def __iter__(self) -> Iterator[Intervention]:
        return (self[position] for position in range(len(self)))


class CandidateRule(ABC):
    """Proposes candidates from public data alone: it is never given a graph, so it cannot read an edge."""

    @property
    @abstractmethod
    def caps(self) -> Caps:
        """Public bounds on the size of a candidate, whatever the target."""

    @abstractmethod
    def propose(self, context: PublicContext, target: int) -> Candidates:
        """The candidates for one target."""


@lru_cache(maxsize=64)
def subsets(count: int, most: int) -> tuple[Choice, ...]:
    """Subsets of range(count) with at most `most` members: smaller first, then in lexicographic order."""
    return tuple(choice for size in range(most + 1) for choice in combinations(range(count), size))
