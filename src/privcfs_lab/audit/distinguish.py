"""How well anyone can tell two graphs apart by one release: exactly, from the two release distributions."""

from dataclasses import dataclass
from math import exp, sqrt
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Law = NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True)
class Distinction:
    """What separates two release distributions over the same candidates."""

    ratio: float  # the largest ratio of probabilities, either way round
    auc: float  # of the likelihood-ratio attack, which no attack exceeds
    advantage: float  # the most by which true positives exceed false positives: total variation


def distinguish(first: Law, second: Law) -> Distinction:
    """Exact, ties counted half."""
    ratios = first / second
    _, level = np.unique(ratios, return_inverse=True)
    one, other = np.bincount(level, first), np.bincount(level, second)
    below = np.cumsum(other) - other
    return Distinction(
        ratio=float(max(ratios.max(), (1 / ratios).max())),
        auc=float(one @ (below + other / 2)),
        advantage=float(np.abs(first - second).sum() / 2),
    )


def sampled_auc(first: Law, second: Law, draws: int, rng: np.random.Generator) -> float:
    """The same attack from draws alone, as an auditor without the distributions' sums would estimate it."""
    scores = np.log(first) - np.log(second)
    here, there = (np.sort(scores[rng.choice(len(law), draws, p=law / law.sum())]) for law in (first, second))
    below = np.searchsorted(there, here, "left") + np.searchsorted(there, here, "right")
    return float(below.mean() / (2 * draws))


def gaussian_auc(distance: NDArray[np.float64] | float, deviation: float) -> NDArray[np.float64]:
    """The same attack on a vector with Gaussian noise, by how far apart the two vectors are."""
    auc: NDArray[np.float64] = ndtr(distance / (deviation * sqrt(2)))
    return auc


def laplace_auc(epsilon: float) -> float:
    """The same attack on one number with Laplace noise calibrated to its change; clamping takes nothing away."""
    return 1 - exp(-epsilon) * (1 + epsilon / 2) / 2
