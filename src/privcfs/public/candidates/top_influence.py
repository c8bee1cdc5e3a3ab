"""Which features may be masked: the paper's feature universe."""

from dataclasses import dataclass
from typing import final

import numpy as np

from privcfs.public.context import PublicContext


@final
@dataclass(frozen=True, slots=True)
class TopInfluence:
    """The `most` non-zero features of the target with the largest |value| x first-layer weight; ties by number.

    Features whose value is zero are left out: masking them would do nothing.
    """

    most: int = 12

    def features(self, context: PublicContext, target: int) -> tuple[int, ...]:
        """Feature numbers, most influential first."""
        numbers, values = context.feature_row(target)
        influence = np.abs(values.astype(np.float64)) * context.backbone.feature_weights()[numbers]
        best = np.argsort(-influence, kind="stable")[: self.most]
        return tuple(int(number) for number in numbers[best])
