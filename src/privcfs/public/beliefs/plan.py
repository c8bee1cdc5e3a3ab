"""The best public base measure for a belief: subset selection planned on imagined graphs.

Subset selection lays the candidates along a line in order of score, each as long as its base measure, and gives a
share of the line in front e**epsilon times the density of the rest. Every pure epsilon-DP selection is bettered, on all
graphs at once, by a subset selection under some base measure (docs/promise.md, 11). So the best selection for a belief
is found by maximising over base measures and shares. For a fixed share the expected worth is a concave function of the
base measure, and multiplicative steps along its gradient find the maximum. Floats are fine here, since any public base
measure keeps the promise.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
# The shares of the line in front that are tried.
SHARES = np.geomspace(0.0005, 0.6, 28)
# A base measure is rounded to multiples of one part in so many.
WHOLE = 1 << 20
# Only so many candidates, those of highest mean worth, get any base measure.
MOST_WEIGHED = 2000
# Gradient steps, and the power to which a relative gradient is raised in a step.
STEPS, STEP_POWER = 50, 2.0


@final
@dataclass(frozen=True, slots=True)
class Measure:
    """A public base measure in whole numbers, and the share of it in front."""

    base: tuple[int, ...]
    share: Fraction


class _Groups(NamedTuple):
    """The weighed candidates, in groups of those that are valid on the same graphs and worth the same.

    `kept` are the positions of the weighed candidates in the list, and `group` is the group of each. `valid` says on
    which graphs each group is valid: (graphs, groups). `worths` are the different worths, falling, and `worth_index` is
    the position of each group's worth among them.
    """

    kept: Numbers
    group: Numbers
    valid: NDArray[np.float32]
    worth_index: Numbers
    worths: Floats


@final
@dataclass(frozen=True, eq=False)
class Belief:
    """Imagined graphs with their likelihoods, which candidates are valid on each, and what a valid one is worth."""

    valid: NDArray[np.bool_]  # (graphs, candidates)
    worth: Floats  # (candidates,)
    likelihood: Floats  # (graphs,)

    def best_measure(self, epsilon: float) -> Measure:
        """The base measure and share of highest expected worth at this epsilon."""
        groups, odds = self._groups, float(np.exp(epsilon))
        one_hot_worth = np.eye(len(groups.worths), dtype=np.float32)[groups.worth_index]
        mean_worth = self.likelihood @ groups.valid * groups.worths[groups.worth_index]
        base = np.bincount(groups.group, minlength=len(mean_worth)) * (mean_worth + 1e-9)
        best_value, best_base, best_share = -1.0, base, float(SHARES[-1])
        for _ in range(STEPS):
            base = base / base.sum()
            masses = (groups.valid @ (base[:, None].astype(np.float32) * one_hot_worth)).astype(np.float64)
            values = self._expected_worths(groups.worths, masses, odds)
            chosen = int(values.argmax())
            share = float(SHARES[chosen])
            if values[chosen] > best_value:
                best_value, best_base, best_share = float(values[chosen]), base, share
            gradient = self._gradient(groups, masses, share, odds)
            relative = gradient / max(float(base @ gradient), 1e-30)
            base = base * np.maximum(relative, 1e-3) ** STEP_POWER
        measure = np.zeros(self.valid.shape[1])
        measure[groups.kept] = _split_evenly(best_base / best_base.sum(), groups.group)
        return _rounded(measure, best_share)

    @cached_property
    def _groups(self) -> _Groups:
        mean_worth = self.likelihood @ self.valid * self.worth
        kept = np.sort(np.argsort(-mean_worth, kind="stable")[:MOST_WEIGHED])
        falling, worth_index = np.unique(-self.worth[kept], return_inverse=True)
        first, group = _equal_rows(self.valid[:, kept].T, worth_index)
        valid = self.valid[:, kept[first]].astype(np.float32)
        return _Groups(kept, group, valid, worth_index[first], -falling)

    def _expected_worths(self, worths: Floats, masses: Floats, odds: float) -> Floats:
        """The expected worth of a draw for each of SHARES.

        `masses` is the base measure of the valid candidates of each worth on each graph: (graphs, worths). On a graph
        these stand first on the line, dearest first, and what of them lies within the share in front counts `odds`
        times.
        """
        before = np.cumsum(masses, axis=1) - masses
        in_front = np.clip(SHARES[:, None, None] - before, 0, masses)
        weighted_masses = masses + (odds - 1) * in_front
        expected: Floats = (weighted_masses @ worths) @ self.likelihood
        return expected / (1 + SHARES * (odds - 1))

    def _gradient(self, groups: _Groups, masses: Floats, share: float, odds: float) -> Floats:
        """The derivative of the expected worth by the base measure of each group, up to a common factor.

        More base for a group adds its worth. If the group lies in front, it also pushes as much of the last worth in
        front out of it.
        """
        last_in_front = (np.cumsum(masses, axis=1) < share - 1e-6).sum(axis=1)
        pushed_out = np.append(groups.worths, 0)[last_in_front][:, None]
        gain = groups.worths + (odds - 1) * np.maximum(groups.worths - pushed_out, 0)
        weights = (self.likelihood[:, None] * gain).astype(np.float32)
        by_worth = groups.valid.T @ weights
        gradient: Floats = by_worth[np.arange(len(groups.worth_index)), groups.worth_index].astype(np.float64)
        return gradient


def _equal_rows(valid: NDArray[np.bool_], worth_index: Numbers) -> tuple[Numbers, Numbers]:
    """The first candidate of each group of equal rows (valid, worth), and the group of each candidate.

    Rows are compared as bytes, which is faster than comparing them column by column.
    """
    worth_bytes = worth_index.astype(">u4").view(np.uint8).reshape(-1, 4)
    row_bytes = np.ascontiguousarray(np.column_stack([np.packbits(valid, axis=1), worth_bytes]))
    rows = row_bytes.view(np.dtype((np.void, row_bytes.shape[1]))).ravel()
    _, first, group = np.unique(rows, return_index=True, return_inverse=True)
    return first, group


def _split_evenly(base: Floats, group: Numbers) -> Floats:
    """The base measure of each candidate: its group's, divided evenly among the candidates of the group."""
    split: Floats = (base / np.bincount(group))[group]
    return split


def _rounded(measure: Floats, share: float) -> Measure:
    """The measure in whole numbers; the heaviest candidate has at least 1, so that there is always one to draw."""
    weights = np.rint(measure * WHOLE).astype(np.int64)
    weights[int(measure.argmax())] = max(int(weights.max()), 1)
    return Measure(tuple(weights.tolist()), Fraction(round(share * WHOLE), WHOLE))
