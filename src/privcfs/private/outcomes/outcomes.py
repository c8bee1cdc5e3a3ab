"""What the frozen model would say of the target under each candidate.

Zone: private
Claim: sealed; holds class scores for every candidate in public order and which operations change the private graph.
Why: utilities read it, nothing else does.
Check: tests/private/test_sealed.py::test_a_sealed_value_shows_nothing
"""

from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.private.graph import PrivateGraph
from privcfs.private.sealed import Sealed
from privcfs.public.candidates.candidates import Candidates


@final
class Outcomes(Sealed):
    """`logits` has shape (pair sets, classes, feature sets); `effective` counts real operations per pair set."""

    __slots__ = ("candidates", "effective", "logits")

    def __init__(self, candidates: Candidates, logits: NDArray[np.floating], effective: NDArray[np.int64]) -> None:
        if not np.isfinite(logits).all():
            raise ArithmeticError("the model returned a value that is not finite")
        self.candidates, self.logits, self.effective = candidates, logits, effective

    def original(self) -> int:
        """The prediction on the untouched graph: candidate 0 is the empty set. Ties go to the smaller class."""
        return int(np.argmax(self.logits[0, :, 0]))

    def flips(self) -> NDArray[np.bool_]:
        """Whether each candidate changes the prediction, shape (pair sets, feature sets)."""
        original = self.original()
        kept = self.logits[:, original]
        flips = np.zeros(kept.shape, np.bool_)
        for rival in range(self.logits.shape[1]):
            if rival < original:
                flips |= self.logits[:, rival] >= kept
            elif rival > original:
                flips |= self.logits[:, rival] > kept
        return flips

    def predictions(self) -> NDArray[np.int64]:
        """The predicted class under each candidate, shape (pair sets, feature sets)."""
        classes: NDArray[np.int64] = np.argmax(self.logits, axis=1)
        return classes

    def margins(self) -> NDArray[np.float64]:
        """Probability of the original class minus that of its best rival, shape (pair sets, feature sets)."""
        shifted = self.logits - self.logits.max(axis=1, keepdims=True)
        probabilities = np.exp(shifted, dtype=np.float64)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        original = self.original()
        rivals = np.delete(probabilities, original, axis=1)
        best = rivals.max(axis=1, initial=0.0)
        margins: NDArray[np.float64] = probabilities[:, original] - best
        return margins


def effective_operations(graph: PrivateGraph, candidates: Candidates) -> NDArray[np.bool_]:
    """Which deletions and additions would change the private graph: the rest are no-ops."""
    known = {node: set(graph.neighbours(node).tolist()) for node, _ in candidates.deletions + candidates.additions}
    deletes = [w in known[u] for u, w in candidates.deletions]
    adds = [w not in known[u] for u, w in candidates.additions]
    return np.array(deletes + adds, np.bool_)


@lru_cache(maxsize=64)
def membership(sets: tuple[tuple[int, ...], ...], universe: int) -> NDArray[np.bool_]:
    """One row per public set, one column per member of the universe."""
    table = np.zeros((len(sets), universe), np.bool_)
    rows = np.repeat(np.arange(len(sets)), [len(chosen) for chosen in sets])
    table[rows, [position for chosen in sets for position in chosen]] = True
    table.flags.writeable = False
    return table
