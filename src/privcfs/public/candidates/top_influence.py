"""Which features may be masked: the paper's feature universe, and one that reads no feature row."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.context import PublicContext
from privcfs.public.per_context import per_context


class FeatureUniverse(ABC):
    """Names the maskable features of a target, in a public order."""

    most: int

    @abstractmethod
    def features(self, context: PublicContext, target: int) -> tuple[int, ...]:
        """Distinct feature numbers, at most `most`. Masking a feature that the target lacks does nothing."""


@final
@dataclass(frozen=True, slots=True)
class Schema(FeatureUniverse):
    """The `most` features that the public model reads most strongly, whoever the target is; ties by number.

    For vaults whose features are secret: the list says nothing about the target's own row.
    """

    most: int = 12

    def features(self, context: PublicContext, target: int) -> tuple[int, ...]:  # noqa: ARG002
        best = np.argsort(-_feature_weights(context), kind="stable")[: self.most]
        return tuple(int(number) for number in best)


@final
@dataclass(frozen=True, slots=True)
class TopInfluence(FeatureUniverse):
    """The `most` non-zero features of the target with the largest |value| x first-layer weight; ties by number.

    Features whose value is zero are left out: masking them would do nothing.
    """

    most: int = 12

    def features(self, context: PublicContext, target: int) -> tuple[int, ...]:
        numbers, values = context.feature_row(target)
        influence = np.abs(values.astype(np.float64)) * _feature_weights(context)[numbers]
        best = np.argsort(-influence, kind="stable")[: self.most]
        return tuple(int(number) for number in numbers[best])


@per_context(maxsize=1)
def _feature_weights(context: PublicContext) -> NDArray[np.float64]:
    return context.model.feature_weights()
