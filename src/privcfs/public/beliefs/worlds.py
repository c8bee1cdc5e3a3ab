"""Imagined graphs: the snapshot, and as many further pairs as are believed hidden, sampled from public data alone."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SettingsError
from privcfs.public.beliefs.surroundings import homophily
from privcfs.public.candidates.partners import snapshot_logits
from privcfs.public.context import PublicContext
from privcfs.tables.neighbours import distinct

Floats = NDArray[np.float64]
Pairs = NDArray[np.int64]
# All imagined graphs together have at most so many pairs, which take half a gigabyte.
MOST_PAIRS = 1 << 25


@final
@dataclass(frozen=True, slots=True)
class Worlds:
    """How imagined graphs are sampled: by degree, and mostly between nodes of one class.

    The class of a node is sampled from the public model's class probabilities on the snapshot graph. Nothing here has
    to be true: a wrong belief costs usefulness, never privacy.

    Attributes:
        number: How many graphs are imagined; fewer if they are large.
        disclosed: The share of the private pairs that the snapshot is believed to hold.
        degree: The mean degree that is believed where the snapshot holds no pairs.
    """

    number: int = 128
    disclosed: float = 0.5
    degree: float = 4.0

    def __post_init__(self) -> None:
        if self.number < 1 or not 0 <= self.disclosed <= 1 or self.degree < 0:
            raise SettingsError("worlds need a number of at least 1, a disclosed share from 0 to 1 and a degree.")

    def imagine(self, context: PublicContext) -> list[Pairs]:
        """The pairs of each imagined graph; the same for the same public context."""
        rng = np.random.default_rng(context.seed)
        known, count = context.snapshot.pairs, context.number_of_nodes
        logits = snapshot_logits(context)
        cumulative = np.cumsum(_softmax(logits), axis=1)
        same_class = homophily(known, logits.argmax(axis=1))
        weights = np.bincount(known.ravel(), minlength=count) + 1.0
        hidden = self._number_of_hidden_pairs(context)
        affordable = MOST_PAIRS // (len(known) + hidden + 1) + 1
        graphs = []
        for _ in range(min(self.number, affordable)):
            classes = _sample_classes(cumulative, rng.random(count))
            sampled = _sample_pairs(classes, weights, same_class, hidden, rng)
            graphs.append(distinct(np.concatenate([known, sampled]), count))
        return graphs

    def _number_of_hidden_pairs(self, context: PublicContext) -> int:
        """How many pairs are believed to be missing from the snapshot."""
        known = len(context.snapshot.pairs)
        if known == 0 or self.disclosed == 0:
            return int(context.number_of_nodes * self.degree / 2)
        return round(known * (1 - self.disclosed) / self.disclosed)


def _softmax(logits: Floats) -> Floats:
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities: Floats = exponentials / exponentials.sum(axis=1, keepdims=True)
    return probabilities


def _sample_classes(cumulative: Floats, uniform: Floats) -> Pairs:
    """One class for each row of cumulative probabilities, by inversion of a uniform number for each row."""
    chosen: Pairs = (uniform[:, None] > cumulative).sum(axis=1).clip(max=cumulative.shape[1] - 1)
    return chosen


def _sample_pairs(
    classes: Pairs, weights: NDArray[np.floating], same_class: float, count: int, rng: np.random.Generator
) -> Pairs:
    """Samples pairs: the first end by weight; the second end by weight within the first one's class, or among all.

    With probability `same_class` the second end is of the class of the first. Self-loops are dropped, so there may be
    fewer than `count` pairs. Both ends are sampled by inversion of cumulative weights; for the second end, nodes stand
    in order of class, so that each class is one interval of the cumulative weights.
    """
    cumulative = np.cumsum(weights)
    first = np.searchsorted(cumulative, rng.random(count) * cumulative[-1]).clip(max=len(cumulative) - 1)
    by_class = np.argsort(classes, kind="stable")
    cumulative_by_class = np.cumsum(weights[by_class])
    class_starts = np.searchsorted(classes[by_class], np.arange(classes.max() + 2))
    class_bounds = np.concatenate([[0.0], cumulative_by_class])[class_starts]
    within_class = rng.random(count) < same_class
    low = np.where(within_class, class_bounds[classes[first]], 0.0)
    high = np.where(within_class, class_bounds[classes[first] + 1], cumulative_by_class[-1])
    point = low + rng.random(count) * (high - low)
    second = by_class[np.searchsorted(cumulative_by_class, point).clip(max=len(by_class) - 1)]
    pairs = np.sort(np.column_stack([first, second]), axis=1)
    without_loops: Pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return without_loops
