"""What every attack has in common: it asks a victim, and scores pairs of nodes by how likely they are edges."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs_lab.baselines.baseline import Pairs, Problem
from privcfs_lab.measuring.simulate import HALF, Simulation

Element = tuple[str, int, int]  # ("pair", u, w), ("feature", number, 0) or ("class", number, 0)
Answer = dict[Element, float]  # what is released about one target, by what it names
Scores = NDArray[np.float64]
RESAMPLED = 200


@final
@dataclass(frozen=True, slots=True)
class Told:
    """The exact AUC of the best attack on one pair, and the most by which true positives exceed false ones."""

    auc: float
    advantage: float


class Victim(ABC):
    """A system that answers questions about a private graph."""

    @property
    @abstractmethod
    def price(self) -> str:
        """What it quotes."""

    @property
    def noise(self) -> float:
        """The deviation of the Gaussian noise on each number of an answer, which everyone knows."""
        return 0.0

    def quiet(self) -> "Victim":
        """The same without that noise, as an attacker runs it on a graph of her own."""
        return self

    @abstractmethod
    def answers(self, problem: Problem, switched_off: Sequence[int] = (), rounds: int = 1) -> list[Answer]:
        """One for each target; with `switched_off`, as if that node had no features, a node for each target.

        A victim with one price for everything divides it by the targets and by the rounds in which they are asked.
        """

    @abstractmethod
    def told_apart(self, problem: Problem, target: int, other: Pairs) -> Told:
        """How well one answer tells the problem's graph from another, to one who knows all else."""

    @abstractmethod
    def likelihoods(
        self, problem: Problem, target: int, graphs: Sequence[Pairs], truths: Sequence[int], answers: int
    ) -> Scores:
        """How well each graph explains so many answers about the true one, in logarithms: a row for each truth."""


class Attack(ABC):
    """Guesses pairs from answers."""

    @abstractmethod
    def guesses(self, victim: Victim, world: Simulation, most: int | None) -> "Guesses":
        """At most so many guesses, half of them about edges."""


@final
@dataclass(frozen=True, slots=True)
class Guesses:
    """A score for each pair, whether it is an edge, and which guesses belong together (about one target).

    Where the success on a pair is known exactly, `exact` has the advantage and `scores` the AUC.
    """

    scores: Scores
    truth: NDArray[np.bool_]
    group: NDArray[np.int64]
    exact: Scores | None = None


@final
@dataclass(frozen=True, slots=True)
class Success:
    """What an attack achieves, with half-widths of 95 % intervals over targets."""

    auc: float
    auc_error: float
    advantage: float
    advantage_error: float


def success(found: Guesses) -> Success:
    """The AUC, and by how much true positives exceed false ones; whole groups are drawn again for the intervals.

    The threshold of the advantage is chosen on half of the groups and judged on the other half, both ways round.
    """
    rng, names = np.random.default_rng(0), np.unique(found.group)
    members = [np.flatnonzero(found.group == name) for name in names]
    rates = _exact_rates if found.exact is not None else _rates
    again = []
    for _ in range(RESAMPLED):
        rows = np.concatenate([members[number] for number in rng.integers(len(members), size=len(members))])
        if found.exact is not None or 0 < found.truth[rows].sum() < len(rows):
            again.append(rates(found, rows))
    auc, advantage = rates(found, np.arange(len(found.scores)))
    errors = 1.96 * np.std(again, axis=0)
    return Success(auc, float(errors[0]), advantage, float(errors[1]))


def _exact_rates(found: Guesses, rows: NDArray[np.int64]) -> tuple[float, float]:
    assert found.exact is not None
    return float(found.scores[rows].mean()), float(found.exact[rows].mean())


def _rates(found: Guesses, rows: NDArray[np.int64]) -> tuple[float, float]:
    scores, truth = found.scores[rows], found.truth[rows]
    levels, level = np.unique(scores, return_inverse=True)
    edges, others = (np.bincount(level[side], minlength=len(levels)) for side in (truth, ~truth))
    below = np.cumsum(others) - others
    auc = float((edges * (below + others / 2)).sum() / (edges.sum() * others.sum()))
    half = found.group[rows] % 2 == 0
    return auc, (_judged(scores, truth, half) + _judged(scores, truth, ~half)) / 2


def _judged(scores: Scores, truth: NDArray[np.bool_], chosen: NDArray[np.bool_]) -> float:
    """The threshold that is best on the chosen guesses, on the others."""
    best, top = 0.0, np.inf
    for threshold in np.unique(scores[chosen]):
        gain = _gain(scores[chosen] >= threshold, truth[chosen])
        best, top = (gain, threshold) if gain > best else (best, top)
    return _gain(scores[~chosen] >= top, truth[~chosen])


def _gain(guessed: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    """True positives minus false positives, as rates."""
    if truth.all() or not truth.any():
        return 0.0
    return float(guessed[truth].mean() - guessed[~truth].mean())


@lru_cache(maxsize=4)
def open_problem(world: Simulation) -> Problem:
    """Without targets, the same object each time."""
    return problem_of(world)


def problem_of(world: Simulation, targets: Sequence[int] = ()) -> Problem:
    """The question as the compared methods take it."""
    return Problem(world.data, world.model, tuple(targets), world.seed, world.snapshot(HALF))


def balanced_pairs(world: Simulation, count: int) -> tuple[Pairs, NDArray[np.bool_]]:
    """Private edges that the snapshot does not have, and as many pairs that are no edges, all drawn by chance."""
    rng = np.random.default_rng([world.seed, 99])
    return drawn_pairs(world.data.pairs, world.snapshot(HALF), len(world.data.labels), count, rng)


def drawn_pairs(
    private: Pairs, snapshot: Pairs, nodes: int, count: int, rng: np.random.Generator
) -> tuple[Pairs, NDArray[np.bool_]]:
    """The same of any graph and what is known of it."""
    edges, shown = ({(int(u), int(w)) for u, w in pairs} for pairs in (private, snapshot))
    hidden = np.array(sorted(edges - shown))
    positives = hidden[rng.choice(len(hidden), count // 2, replace=False)]
    negatives: list[tuple[int, int]] = []
    while len(negatives) < count // 2:
        u, w = sorted(int(node) for node in rng.choice(nodes, 2, replace=False))
        if (u, w) not in edges:
            negatives.append((u, w))
    pairs: Pairs = np.concatenate([positives, np.array(negatives)])
    return pairs, np.arange(len(pairs)) < len(positives)
