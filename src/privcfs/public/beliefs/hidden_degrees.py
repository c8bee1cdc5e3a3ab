"""Laws of hidden degrees: how many pairs of a node the snapshot does not show, given how many it shows."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
LEAST_MEAN = 0.02


class HiddenDegrees(ABC):
    """A law of hidden degrees."""

    @abstractmethod
    def sample(self, public_degrees: Numbers, rng: np.random.Generator) -> Numbers:
        """A hidden degree for each public degree."""


@final
@dataclass(frozen=True, slots=True)
class SameForAll(HiddenDegrees):
    """A Poisson law with one mean for all nodes."""

    mean: float = 2.0

    def sample(self, public_degrees: Numbers, rng: np.random.Generator) -> Numbers:
        return rng.poisson(self.mean, len(public_degrees))


@final
@dataclass(frozen=True, slots=True)
class Growing(HiddenDegrees):
    """A negative binomial law whose mean grows with the public degree.

    Attributes:
        base: The mean for a node without public pairs.
        slope: What each public pair adds to the mean.
        shape: The shape of the negative binomial law; the variance is mean + mean^2 / shape.
    """

    base: float
    slope: float
    shape: float

    def sample(self, public_degrees: Numbers, rng: np.random.Generator) -> Numbers:
        means = np.maximum(self.base + self.slope * public_degrees, LEAST_MEAN)
        counts: Numbers = rng.poisson(rng.gamma(self.shape, means / self.shape))
        return counts


def fit_growing(public: Numbers, hidden: Numbers, mean: float, public_mean: float) -> Growing:
    """Fits slope and shape to observed degrees, and the base so that the mean is `mean` at `public_mean`.

    `public` and `hidden` are degrees of the same nodes in the two parts of a snapshot. The share of hidden pairs there
    need not be that of the private graph, therefore the overall mean is given.
    """
    variance = float(public.var())
    slope = float(np.cov(public, hidden)[0, 1] / variance) if variance > 0 else 0.0
    slope = min(max(slope, 0.0), mean / max(public_mean, 1e-9))
    fitted = np.maximum(hidden.mean() + slope * (public - public.mean()), LEAST_MEAN)
    excess = float((np.square(hidden - fitted) - fitted).sum() / np.square(fitted).sum())
    return Growing(mean - slope * public_mean, slope, float(np.clip(1 / max(excess, 1e-3), 0.3, 100.0)))
