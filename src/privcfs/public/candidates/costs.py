"""What the owner counts each operation as."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SettingsError
from privcfs.public.candidates.candidates import Candidates, membership

LARGEST_COST = 1000  # of one operation
Numbers = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of operations: among equally sure answers the cheaper is preferred.

    Changes of features cost what the schema says, in the same currency.
    """

    delete: int = 1
    add: int = 1
    mask: int = 1
    most: int | None = None  # dearer candidates are never drawn

    def __post_init__(self) -> None:
        if not all(isinstance(one, int) and 0 <= one <= LARGEST_COST for one in (self.delete, self.add, self.mask)):
            raise SettingsError(f"costs must be whole numbers from 0 to {LARGEST_COST}.")

    def allow(self, candidates: Candidates) -> NDArray[np.bool_]:
        """Whether each candidate is cheap enough to be drawn."""
        if self.most is None:
            return np.ones(len(candidates), np.bool_)
        cheap: NDArray[np.bool_] = self.of(candidates) <= self.most
        return cheap

    def of(self, candidates: Candidates) -> Numbers:
        """The cost of each candidate."""
        each = np.repeat([self.delete, self.add], [len(candidates.deletions), len(candidates.additions)])
        pairs = membership(candidates.pair_sets, len(each)) @ each
        each = np.array([self.mask] * len(candidates.features) + [one.cost for one in candidates.changes], np.int64)
        masks = membership(candidates.feature_sets, len(each)) @ each
        pair_set, feature_set = candidates.parts()
        costs: Numbers = pairs[pair_set] + masks[feature_set]
        return costs
