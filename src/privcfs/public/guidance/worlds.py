"""Imagined graphs: the snapshot and as many further pairs as are thought hidden, drawn from public data alone."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SettingsError
from privcfs.public.candidates.partners import snapshot_scores
from privcfs.public.context import PublicContext
from privcfs.public.surroundings import likeness
from privcfs.tables.neighbours import distinct

Pairs = NDArray[np.int64]
MOST_PAIRS = 1 << 25  # of all imagined graphs together: half a gigabyte


@final
@dataclass(frozen=True, slots=True)
class Worlds:
    """How imagined graphs are drawn: nodes of one class find each other, and those with many pairs find more.

    A node's class is drawn from what the public model says of it on the snapshot graph. `disclosed` is the share of the
    private pairs that the snapshot is thought to hold; where it holds none, nodes are thought to have `degree` pairs.
    Of large graphs, fewer than `number` are imagined. Nothing here has to be true: a wrong belief costs usefulness,
    never privacy.
    """

    number: int = 128
    disclosed: float = 0.5
    degree: float = 4.0

    def __post_init__(self) -> None:
        if self.number < 1 or not 0 <= self.disclosed <= 1 or self.degree < 0:
            raise SettingsError("worlds need a number of at least 1, a disclosed share from 0 to 1 and a degree.")

    def imagine(self, context: PublicContext) -> list[Pairs]:
        """The pairs of each imagined graph; the same for the same public context."""
        rng = np.random.default_rng(int(context.digest[:15], 16))
        scores = snapshot_scores(context)
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        ladder = np.cumsum(chances / chances.sum(axis=1, keepdims=True), axis=1)
        like = likeness(context.snapshot.pairs, scores.argmax(axis=1))
        degrees = np.bincount(context.snapshot.pairs.ravel(), minlength=len(scores)) + 1.0
        missing, worlds = self._hidden(context), []
        for _ in range(min(self.number, MOST_PAIRS // (len(context.snapshot.pairs) + missing + 1) + 1)):
            classes = _choose(ladder, rng.random(len(scores)))
            hidden = _pairs(classes, degrees, like, missing, rng)
            worlds.append(distinct(np.concatenate([context.snapshot.pairs, hidden]), context.number_of_nodes))
        return worlds

    def _hidden(self, context: PublicContext) -> int:
        """How many pairs are thought to be missing from the snapshot."""
        known = len(context.snapshot.pairs)
        if known == 0 or self.disclosed == 0:
            return int(context.number_of_nodes * self.degree / 2)
        return round(known * (1 - self.disclosed) / self.disclosed)


def _choose(ladder: NDArray[np.float64], chance: NDArray[np.float64]) -> Pairs:
    """One class a row, by its cumulative probabilities."""
    chosen: Pairs = (chance[:, None] > ladder).sum(axis=1).clip(max=ladder.shape[1] - 1)
    return chosen


def _pairs(classes: Pairs, degrees: NDArray[np.floating], like: float, count: int, rng: np.random.Generator) -> Pairs:
    """Pairs of nodes by degree, the second of the first one's class as often as likes join likes."""
    order = np.argsort(classes, kind="stable")
    line = np.cumsum(degrees[order])
    borders = np.searchsorted(classes[order], np.arange(classes.max() + 2))
    ends = np.concatenate([[0.0], line])[borders]
    whole = np.cumsum(degrees)
    one = np.searchsorted(whole, rng.random(count) * whole[-1]).clip(max=len(whole) - 1)
    alike = rng.random(count) < like
    low = np.where(alike, ends[classes[one]], 0.0)
    high = np.where(alike, ends[classes[one] + 1], line[-1])
    place = np.searchsorted(line, low + rng.random(count) * (high - low)).clip(max=len(line) - 1)
    drawn = np.sort(np.column_stack([one, order[place]]), axis=1)
    apart: Pairs = drawn[drawn[:, 0] != drawn[:, 1]]
    return apart
