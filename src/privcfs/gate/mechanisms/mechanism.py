"""How one candidate is chosen from sealed scores.

Zone: gate
Claim: for any two score vectors on one public grid whose entries differ by at most its span, the probabilities of each
    candidate differ by a factor of at most e**epsilon.
Why: each mechanism proves it in its own header.
Check: tests/contracts/test_mechanisms.py::test_hostile_scores_never_pass_the_bound
"""

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.randomness import Randomness
from privcfs.private.utilities.utility import Scores


class Mechanism(ABC):
    """Never sees a graph. `draw` uses whole numbers only; `probabilities` is for reports."""

    name: ClassVar[str]

    @abstractmethod
    def draw(self, scores: Scores, epsilon: Fraction, randomness: Randomness) -> int:
        """The position of the drawn candidate."""

    @abstractmethod
    def probabilities(self, scores: Scores, epsilon: Fraction) -> NDArray[np.float64]:
        """The law of `draw`, rounded to floats."""

    @abstractmethod
    def exact_probabilities(self, scores: Scores, epsilon: Fraction) -> list[Fraction]:
        """The law of `draw` without rounding, for supports of at most a few hundred candidates."""

    @abstractmethod
    def advantage(self, epsilon: Fraction) -> float:
        """The most by which anyone's true-positive rate can exceed their false-positive rate after one release."""
