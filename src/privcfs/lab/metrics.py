"""How good a release is for one target: the paper's measures as exact expectations over the release distribution."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.lab.inspection import Inspection
from privcfs.private.utilities.utility import Scores
from privcfs.public.epsilon import Price, parse_epsilon


@final
@dataclass(frozen=True, slots=True)
class Quality:
    """Expectations for one target at one price."""

    valid: float  # the drawn candidate flips the prediction
    empty: float  # the empty set is drawn
    size: float  # elements of the drawn candidate
    regret: float  # best utility minus the drawn one's
    collision: float  # two releases are the same

    @property
    def valid_if_not_empty(self) -> float:
        """Validity of the releases that name something."""
        return self.valid / (1 - self.empty) if self.empty < 1 else 0.0


def quality(found: Inspection, epsilon: Price, printed: Fraction | None = None) -> Quality:
    """Exact, by summing over all candidates; `printed` draws with the paper's range instead of ours."""
    law = release_law(found, epsilon, printed)
    return Quality(
        valid=float(law @ found.flips),
        empty=float(law[0]),
        size=float(law @ candidate_sizes(found)),
        regret=float(found.utilities.max() - law @ found.utilities),
        collision=float(law @ law),
    )


def release_law(found: Inspection, epsilon: Price, printed: Fraction | None = None) -> NDArray[np.float64]:
    """The release distribution, with our range or with the paper's."""
    scores = found.scores if printed is None else with_range(found.scores, printed)
    return found.method.mechanism.probabilities(scores, parse_epsilon(epsilon))


def with_range(scores: Scores, printed: Fraction) -> Scores:
    """The same scores, drawn as if one candidate could move by `printed`."""
    return Scores(scores.unseal(), replace(scores.grid, span=int(scores.grid.denominator * printed)))


def candidate_sizes(found: Inspection) -> NDArray[np.int64]:
    """Elements of each candidate."""
    pairs = np.array([len(chosen) for chosen in found.candidates.pair_sets])
    masks = np.array([len(chosen) for chosen in found.candidates.feature_sets])
    sizes: NDArray[np.int64] = (pairs[:, None] + masks).ravel()
    return sizes
