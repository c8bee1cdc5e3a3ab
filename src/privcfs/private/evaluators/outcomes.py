"""What the frozen model would say of the target under each candidate.

Zone: private
Claim: sealed; holds class scores for every candidate in public order and which operations change the private graph.
Why: utilities read it, nothing else does.
Check: tests/private/test_sealed.py::test_a_sealed_value_shows_nothing
"""

from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.private.graph import PrivateGraph
from privcfs.private.sealed import Sealed
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.goals import Goal, classes_of


@final
class Outcomes(Sealed):
    """`logits` has shape (classes, candidates); `effective` counts real operations per pair set."""

    __slots__ = ("candidates", "effective", "logits")

    def __init__(self, candidates: Candidates, logits: NDArray[np.floating], effective: NDArray[np.int64]) -> None:
        if not (np.isfinite(logits.min()) and np.isfinite(logits.max())):
            raise ArithmeticError("the model returned a value that is not finite")
        self.candidates, self.logits, self.effective = candidates, logits, effective

    def original(self) -> int:
        """The prediction on the untouched graph: candidate 0 is the empty set. Ties go to the smaller class."""
        return int(np.argmax(self.logits[:, 0]))

    def flips(self, desired: Goal = None) -> NDArray[np.bool_]:
        """Whether each candidate changes the prediction; with `desired`, whether to that class or one of these."""
        original = self.original()
        if desired is not None:
            wanted = classes_of(desired, len(self.logits))
            reached: NDArray[np.bool_] = wanted[self.predictions()] & ~wanted[original]
            return reached
        kept = self.logits[original]
        flips = np.zeros(kept.shape, np.bool_)
        for rival, scores in enumerate(self.logits):
            if rival < original:
                flips |= scores >= kept
            elif rival > original:
                flips |= scores > kept
        return flips

    def predictions(self) -> NDArray[np.int64]:
        """The predicted class under each candidate."""
        classes: NDArray[np.int64] = np.argmax(self.logits, axis=0)
        return classes

    def margins(self) -> NDArray[np.float64]:
        """Probability of the original class minus that of its best rival."""
        shifted = self.logits - self.logits.max(axis=0)
        probabilities = np.exp(shifted, dtype=np.float64)
        probabilities /= probabilities.sum(axis=0)
        original = self.original()
        rivals = np.delete(probabilities, original, axis=0)
        margins: NDArray[np.float64] = probabilities[original] - rivals.max(axis=0, initial=0.0)
        return margins


def effective_operations(graph: PrivateGraph, candidates: Candidates) -> NDArray[np.bool_]:
    """Which deletions and additions would change the private graph: the rest are no-ops."""
    pairs = np.array(candidates.deletions + candidates.additions, np.int64).reshape(-1, 2)
    effective = graph.has_edges(pairs)
    effective[len(candidates.deletions) :] ^= True
    return effective
