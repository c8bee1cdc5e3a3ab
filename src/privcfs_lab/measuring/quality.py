"""How good a release is for one target: the paper's measures as exact expectations over the release distribution."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import log
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.private.utilities.utility import Scores
from privcfs.public.epsilon import Price, parse_epsilon
from privcfs_lab.measuring.inspection import Inspection

Law = NDArray[np.float64]
CONFIDENCE = 0.95


@final
@dataclass(frozen=True, slots=True)
class Quality:
    """Expectations for one target at one price."""

    valid: float  # the drawn candidate flips the prediction
    targeted: float  # ... to the runner-up class
    empty: float  # the empty set is drawn
    size: float  # elements of the drawn candidate
    regret: float  # best utility minus the drawn one's
    regret_95: float  # a regret that 95 % of the draws do not exceed
    collision: float  # two releases are the same


def quality(found: Inspection, law: Law) -> Quality:
    """Exact, by summing over all candidates."""
    regrets = found.utilities.max() - found.utilities
    return Quality(
        valid=float(law @ found.flips),
        targeted=float(law @ (found.flips & (found.predictions == found.runner_up))),
        empty=float(law[0]),
        size=float(law @ found.candidates.sizes),
        regret=float(law @ regrets),
        regret_95=_quantile(regrets, law),
        collision=float(law @ law),
    )


def release_law(found: Inspection, epsilon: Price, printed: Fraction | None = None) -> Law:
    """The release distribution, with our range or with the one that is printed in the paper."""
    scores = found.scores if printed is None else with_range(found.scores, printed)
    return found.mechanism(epsilon).probabilities(scores, parse_epsilon(epsilon))


def with_range(scores: Scores, printed: Fraction) -> Scores:
    """The same scores, drawn as if one candidate could move by `printed`."""
    return Scores(scores.unseal(), replace(scores.grid, span=int(scores.grid.denominator * printed)))


def regret_bound(candidates: float, epsilon: float, range_: float) -> float:
    """The paper's Theorem 2: what the regret of 95 % of the draws cannot exceed."""
    return 2 * range_ / epsilon * (log(candidates) + log(1 / (1 - CONFIDENCE)))


def _quantile(regrets: NDArray[np.float64], law: Law) -> float:
    order = np.argsort(regrets, kind="stable")
    position = int(np.searchsorted(np.cumsum(law[order]), CONFIDENCE))
    return float(regrets[order[min(position, len(order) - 1)]])
