"""The base measure and the share in front that would serve best on average over imagined graphs.

Every pure epsilon-DP selection is bettered, on all graphs at once, by a subset selection under some base measure
(docs/promise.md). So the best one for a belief is found by maximising over base measures, a concave problem; floats are
fine here, since any public measure keeps the promise.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, final

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


class _Groups(NamedTuple):
    """The promising candidates, those that are worth the same on every graph as one."""

    kept: Numbers  # positions of the promising candidates in the list
    group: Numbers  # the group of each of them
    valid: NDArray[np.float32]  # (graphs, groups)
    level: Numbers  # the position of each group's worth in `worth`
    worth: Floats  # falling


@final
@dataclass(frozen=True, eq=False)
class Belief:
    """Imagined graphs with their likelihoods, which candidates are valid on each, and what a valid one is worth."""

    valid: NDArray[np.bool_]  # (graphs, candidates)
    worth: Floats
    likelihood: Floats

    def best_measure(self, epsilon: float) -> Measure:
        """By multiplicative steps from the candidates' mean worth."""
        groups, odds = self._groups, float(np.exp(epsilon))
        levels = np.eye(len(groups.worth), dtype=np.float32)[groups.level]
        mean = self.likelihood @ groups.valid * groups.worth[groups.level]
        base = np.bincount(groups.group, minlength=len(mean)) * (mean + 1e-9)
        best = (-1.0, base, float(SHARES[-1]))
        for _ in range(STEPS):
            base = base / base.sum()
            masses = (groups.valid @ (base[:, None].astype(np.float32) * levels)).astype(np.float64)
            values = self._values(groups.worth, masses, odds)
            chosen = int(values.argmax())
            if values[chosen] > best[0]:
                best = (float(values[chosen]), base, float(SHARES[chosen]))
            slope = self._slope(groups, masses, float(SHARES[chosen]), odds)
            base = base * np.maximum(slope / max(float(base @ slope), 1e-30), 1e-3) ** BOLDNESS
        whole = np.zeros(self.valid.shape[1])
        whole[groups.kept] = _shared(best[1] / best[1].sum(), groups.group)
        return _whole(whole, best[2])

    @cached_property
    def _groups(self) -> _Groups:
        """As many candidates as are worth weighing, those of highest mean worth, in their order."""
        mean = self.likelihood @ self.valid * self.worth
        kept = np.sort(np.argsort(-mean, kind="stable")[:MOST_WEIGHED])
        worth, level = np.unique(-self.worth[kept], return_inverse=True)
        columns = np.column_stack(
            [np.packbits(self.valid[:, kept], axis=0).T, level.astype(">u4").view(np.uint8).reshape(-1, 4)]
        )
        rows = np.ascontiguousarray(columns).view(np.dtype((np.void, columns.shape[1]))).ravel()
        _, first, group = np.unique(rows, return_index=True, return_inverse=True)
        return _Groups(kept, group, self.valid[:, kept[first]].astype(np.float32), level[first], -worth)

    def _values(self, worth: Floats, masses: Floats, odds: float) -> Floats:
        """The expected worth of a draw, for each share in front; `masses` lie at each worth: (graphs, worths)."""
        before = np.cumsum(masses, axis=1) - masses
        front = np.clip(SHARES[:, None, None] - before, 0, masses)
        expected: Floats = ((masses + (odds - 1) * front) @ worth) @ self.likelihood
        return expected / (1 + SHARES * (odds - 1))

    def _slope(self, groups: _Groups, masses: Floats, share: float, odds: float) -> Floats:
        """By how much a little more base for each group raises the expected worth, up to a factor."""
        last = (np.cumsum(masses, axis=1) < share - 1e-6).sum(axis=1)
        gain = groups.worth + (odds - 1) * np.maximum(groups.worth - np.append(groups.worth, 0)[last][:, None], 0)
        weights = (self.likelihood[:, None] * gain).astype(np.float32)
        slope: Floats = (groups.valid.T @ weights)[np.arange(len(groups.level)), groups.level].astype(np.float64)
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
