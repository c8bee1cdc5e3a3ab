"""The trivial mechanism: it ignores the scores. Copy it to start a new one.

Zone: gate
Claim: pure 0-DP.
Why: the draw depends on the public number of candidates alone.
Check: tests/contracts/test_mechanisms.py::test_hostile_scores_never_pass_the_bound
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.mechanisms.decay import bits_for, spread
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.randomness import Randomness
from privcfs.private.utilities.utility import Scores


@final
@dataclass(frozen=True, slots=True)
class Uniform(Mechanism):
    """Draws each candidate with the same probability, which is all that an epsilon of 0 would allow."""

    name: ClassVar[str] = "uniform"

    def draw(self, scores: Scores, epsilon: Fraction, randomness: Randomness) -> int:  # noqa: ARG002
        count = len(scores.unseal())
        bits = bits_for(count)
        return spread(bits, randomness.integer(bits), count)

    def probabilities(self, scores: Scores, epsilon: Fraction) -> NDArray[np.float64]:  # noqa: ARG002
        count = len(scores.unseal())
        return np.full(count, 1 / count)

    def exact_probabilities(self, scores: Scores, epsilon: Fraction) -> list[Fraction]:  # noqa: ARG002
        count = len(scores.unseal())
        return [Fraction(1, count)] * count

    def renyi(self, order: float, epsilon: Fraction) -> float:  # noqa: ARG002
        return 0.0

    def advantage(self, epsilon: Fraction) -> float:  # noqa: ARG002
        return 0.0
