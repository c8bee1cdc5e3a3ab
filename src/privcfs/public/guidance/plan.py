"""The base measure and the share in front that would serve best on average over imagined graphs.

Every pure epsilon-DP selection is bettered, on all graphs at once, by a subset selection under some base measure
(docs/promise.md). So the best one for a belief is found by maximising over base measures, a concave problem; floats are
fine here, since any public measure keeps the promise.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
SHARES = np.geomspace(0.0005, 0.6, 28)  # of the line, in front
WHOLE = 1 << 20  # into so many parts a base measure is divided
MOST_WEIGHED = 2000  # the rest of a long list is never drawn
STEPS, BOLDNESS = 50, 2.0


@final
@dataclass(frozen=True, slots=True)
class Measure:
    """A public base measure in whole numbers, and the share of it in front."""

    base: tuple[int, ...]
    share: Fraction


@final
@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """Imagined graphs with their likelihoods, and what each candidate would be worth on each of them.

    `level` has a row for each graph and a column for each candidate, and names an entry of `worth`, which falls.
    """

    level: Numbers
    worth: Floats
    likelihood: Floats

    def best_measure(self, epsilon: float) -> Measure:
        """By multiplicative steps from the candidates' mean worth."""
        kept = self._promising()
        columns, first, same = np.unique(self.level[:, kept], axis=1, return_index=True, return_inverse=True)
        at = np.array([columns == number for number in range(len(self.worth) - 1)], np.float32)
        odds = float(np.exp(epsilon))
        base = np.bincount(same.ravel(), minlength=len(first)) * (self.likelihood @ self.worth[columns] + 1e-9)
        best = (-1.0, base, float(SHARES[-1]))
        for _ in range(STEPS):
            base = base / base.sum()
            masses = (at @ base.astype(np.float32)).T.astype(np.float64)
            values = self._values(masses, odds)
            chosen = int(values.argmax())
            if values[chosen] > best[0]:
                best = (float(values[chosen]), base, float(SHARES[chosen]))
            slope = self._slope(at, masses, float(SHARES[chosen]), odds)
            base = base * np.maximum(slope / max(float(base @ slope), 1e-30), 1e-3) ** BOLDNESS
        whole = np.zeros(self.level.shape[1])
        whole[kept] = _shared(best[1] / best[1].sum(), same.ravel())
        return _whole(whole, best[2])

    def _promising(self) -> Numbers:
        """The candidates of highest mean worth, in their order: as many as are worth weighing."""
        mean = self.likelihood @ self.worth[self.level]
        return np.sort(np.argsort(-mean, kind="stable")[:MOST_WEIGHED])

    def _values(self, masses: Floats, odds: float) -> Floats:
        """The expected worth of a draw, for each share in front; `masses` lie at each worth: (graphs, worths)."""
        before = np.cumsum(masses, axis=1) - masses
        front = np.clip(SHARES[:, None, None] - before, 0, masses)
        expected: Floats = ((masses + (odds - 1) * front) @ self.worth[:-1]) @ self.likelihood
        return expected / (1 + SHARES * (odds - 1))

    def _slope(self, at: NDArray[np.float32], masses: Floats, share: float, odds: float) -> Floats:
        """By how much a little more base for each candidate raises the expected worth, up to a factor."""
        last = (np.cumsum(masses, axis=1) < share - 1e-6).sum(axis=1)
        gain = self.worth + (odds - 1) * np.maximum(self.worth - self.worth[last][:, None], 0)
        weights = (self.likelihood[:, None] * gain[:, :-1]).astype(np.float32)
        slope: Floats = np.einsum("lgc,gl->c", at, weights, optimize=True).astype(np.float64)
        return slope


def _shared(base: Floats, same: Numbers) -> Floats:
    """Candidates that are worth the same on every graph share evenly."""
    evenly: Floats = (base / np.bincount(same))[same]
    return evenly


def _whole(base: Floats, share: float) -> Measure:
    """Rounded; the heaviest candidate always counts."""
    weights = np.rint(base * WHOLE).astype(np.int64)
    weights[int(base.argmax())] = max(int(weights.max()), 1)
    return Measure(tuple(weights.tolist()), Fraction(round(share * WHOLE), WHOLE))
