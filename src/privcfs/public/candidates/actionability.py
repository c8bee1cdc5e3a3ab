"""What the owner allows an answer to name: a public setting, the same for every private graph."""

from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SettingsError
from privcfs.public.interventions import Pair
from privcfs.tables.neighbours import places


@final
@dataclass(frozen=True, slots=True)
class Actionability:
    """Nodes whose pairs stay as they are, features that cannot be masked, and who may be joined to a target."""

    immutable_nodes: frozenset[int] = frozenset()
    immutable_features: frozenset[int] = frozenset()
    partners: frozenset[int] | None = None  # anyone, where there is none

    def pairs(self, pairs: tuple[Pair, ...]) -> tuple[Pair, ...]:
        """Those that may be changed, in their order."""
        return tuple(pair for pair in pairs if not self.immutable_nodes & set(pair))

    def features(self, features: tuple[int, ...]) -> tuple[int, ...]:
        """Those that may be masked, in their order."""
        return tuple(feature for feature in features if feature not in self.immutable_features)

    def joinable(self, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether each node may be joined to a target."""
        barred = places(np.array(sorted(self.immutable_nodes), np.int64), nodes) >= 0
        if self.partners is None:
            return ~barred
        return ~barred & (places(np.array(sorted(self.partners), np.int64), nodes) >= 0)


@lru_cache(maxsize=8)
def check_nodes(allowed: Actionability, number_of_nodes: int) -> None:
    """Refuses settings that name nodes that do not exist."""
    for node in allowed.immutable_nodes | (allowed.partners or frozenset()):
        if not 0 <= node < number_of_nodes:
            raise SettingsError(f"actionability names node {node}; give numbers from 0 to {number_of_nodes - 1}.")
