"""Laws of hidden degrees: how many pairs of a node the snapshot does not show, given how many it shows."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from math import lgamma, log, log1p
from typing import final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
LEAST_MEAN = 0.02
# The law of whole degrees is estimated up to this one. It is used for public degrees of which whole degrees beyond it
# are unlikely: up to this part of the public degree that the largest one would have on average.
LARGEST, TABULATED_PART = 128, 0.5
# Before the first step of the estimation, few nodes are believed to have no pair at all.
FIRST_WITHOUT_PAIRS = 0.01
# Steps of the estimation, and the part of each degree's probability that every step moves to either neighbouring one.
# Without any smoothing, small graphs get laws with gaps.
STEPS, SMOOTHING = 200, 0.005


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


@final
@dataclass(frozen=True, slots=True)
class Thinned(HiddenDegrees):
    """The law that follows if each pair of a graph is shown independently with one probability.

    A node of whole degree k then shows a binomial number of its k pairs, and Bayes' rule says how many it hides. This
    tells nodes that show nothing because they have few pairs from nodes that have none, which no line can do: where
    every node has a pair, a node without public pairs hides at least one.

    Attributes:
        degrees: The probability of each whole degree from 0 on.
        shown: The probability that a pair is shown.
        otherwise: The law for public degrees that are too large for `degrees`.
    """

    degrees: tuple[float, ...]
    shown: float
    otherwise: Growing

    def sample(self, public_degrees: Numbers, rng: np.random.Generator) -> Numbers:
        table = _cumulative(self)
        counts = self.otherwise.sample(public_degrees, rng)
        chosen = np.flatnonzero(public_degrees < len(table))
        public = public_degrees[chosen]
        # Row d of the table, to which d was added, ascends from d to d + 1: all rows together ascend.
        points = public + rng.random(len(chosen))
        counts[chosen] = np.searchsorted(table.ravel(), points, side="right") - public * table.shape[1]
        return counts


@lru_cache(maxsize=8)
def _cumulative(law: Thinned) -> Floats:
    """Row d: d plus the probability that a node with d public pairs hides at most 0, 1, 2, ... pairs.

    Degrees whose posterior law cannot be told, because no whole degree that they need is possible, are left out.
    """
    whole, largest = np.array(law.degrees), len(law.degrees) - 1
    joint = _shown_given_whole(largest, law.shown) * whole
    rows = []
    for public in range(int(TABULATED_PART * law.shown * largest) + 1):
        hidden = joint[public, public:]
        if not hidden.sum() > 0:
            break
        row = np.full(largest + 1, 1.0)
        row[: len(hidden)] = np.cumsum(hidden) / hidden.sum()
        row[len(hidden) - 1] = 1.0
        rows.append(public + row)
    return np.array(rows).reshape(len(rows), largest + 1)


def _shown_given_whole(largest: int, shown: float) -> Floats:
    """The binomial law, (public degrees, whole degrees), both from 0 to `largest`."""
    whole = np.arange(largest + 1)
    public = whole[:, None]
    hidden = np.maximum(whole - public, 0)
    factorials = _log_gamma(whole + 1.0)  # the logarithms of k!
    ways = factorials - factorials[:, None] - factorials[hidden]
    law: Floats = np.exp(ways + _log_power(shown, public) + log1p(-shown) * hidden) * (whole >= public)
    return law


def _log_gamma(values: NDArray[np.floating]) -> NDArray[np.floating]:
    """The logarithm of the gamma function. That of scipy takes long to import, and every first answer needs it."""
    return np.array([lgamma(value) for value in values.tolist()])


def _log_power(base: float, exponents: Numbers) -> Floats:
    """The logarithm of a power of a number from 0 to 1; 0 to the power of 0 is 1."""
    logarithm = log(base) if base else -np.inf
    found: Floats = np.zeros(exponents.shape)
    np.multiply(exponents, logarithm, out=found, where=exponents > 0)
    return found


def fit_thinned(public: Numbers, shown: float, otherwise: Growing) -> Thinned:
    """Estimates the law of whole degrees from public ones by expectation and maximisation, slightly smoothed.

    `shown` lies strictly between 0 and 1.
    """
    observed = np.bincount(public[public <= LARGEST], minlength=LARGEST + 1) / max(len(public), 1)
    binomial = _shown_given_whole(LARGEST, shown)
    whole = 1 / np.square(np.arange(1.0, LARGEST + 2))
    whole *= (1 - FIRST_WITHOUT_PAIRS) / whole[1:].sum()
    whole[0] = FIRST_WITHOUT_PAIRS
    for _ in range(STEPS):
        whole *= binomial.T @ (observed / np.maximum(binomial @ whole, 1e-300))
        moved = SMOOTHING * np.diff(whole[1:])
        whole[1:-1] += moved
        whole[2:] -= moved
    return Thinned(tuple(round(float(one), 9) for one in whole / whole.sum()), shown, otherwise)


def at_least_one(mean: float, shape: float) -> HiddenDegrees:
    """The law where nothing is shown and every node is believed to have a pair: 1 plus a negative binomial number.

    Without a pair, a node would hardly be part of a graph. A mean below 1 says that some have none, and a very large
    mean makes the difference vanish; then the law is plainly negative binomial.
    """
    growing = Growing(mean, 0.0, shape)
    if not 1 <= mean <= LARGEST / 8:
        return growing
    more = np.arange(LARGEST)
    ways = _log_gamma(more + shape) - lgamma(shape) - _log_gamma(more + 1.0)
    odds = (mean - 1) / (mean - 1 + shape)
    degrees = np.append(0.0, np.exp(ways + _log_power(odds, more) + shape * log1p(-odds)))
    return Thinned(tuple(round(float(one), 9) for one in degrees / degrees.sum()), 0.0, growing)
