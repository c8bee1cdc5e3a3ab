"""What every attack has in common: it asks a victim, and scores pairs of nodes by how likely they are edges."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.lab.baselines.baseline import Pairs, Problem
from privcfs.lab.simulate import HALF, Simulation

Element = tuple[str, int, int]  # ("pair", u, w), ("feature", number, 0) or ("class", number, 0)
Answer = dict[Element, float]  # what is released about one target, by what it names
Scores = NDArray[np.float64]


class Victim(ABC):
    """A system that answers questions about a private graph."""

    @property
    @abstractmethod
    def price(self) -> str:
        """What it quotes."""

    @abstractmethod
    def answers(self, problem: Problem, switched_off: Sequence[int] = (), rounds: int = 1) -> list[Answer]:
        """One for each target; with `switched_off`, as if that node had no features, a node for each target.

        A victim with one price for everything divides it by the targets and by the rounds in which they are asked.
        """

    @abstractmethod
    def told_apart(self, problem: Problem, target: int, other: Pairs) -> float:
        """The AUC with which one answer tells the problem's graph from another, to one who knows all else."""

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
    """A score for each pair, and whether it is an edge; or for each pair the exact AUC."""

    scores: Scores
    truth: NDArray[np.bool_]
    exact: bool = False


@final
@dataclass(frozen=True, slots=True)
class Success:
    """What an attack achieves, with 95 % intervals."""

    auc: float
    auc_error: float
    advantage: float
    advantage_error: float


def success(found: Guesses) -> Success:
    """The AUC and the most by which true positives exceed false positives; intervals by resampling."""
    if found.exact:
        gains = 2 * found.scores - 1
        error = 1.96 * float(found.scores.std() / np.sqrt(len(found.scores)))
        return Success(float(found.scores.mean()), error, float(gains.mean()), 2 * error)
    rng = np.random.default_rng(0)
    again = []
    for _ in range(200):
        rows = rng.integers(len(found.scores), size=len(found.scores))
        if 0 < found.truth[rows].sum() < len(rows):
            again.append(_rates(found.scores[rows], found.truth[rows]))
    errors = 1.96 * np.std(again, axis=0)
    auc, advantage = _rates(found.scores, found.truth)
    return Success(auc, float(errors[0]), advantage, float(errors[1]))


def _rates(scores: Scores, truth: NDArray[np.bool_]) -> tuple[float, float]:
    levels, level = np.unique(scores, return_inverse=True)
    edges, others = (np.bincount(level[side], minlength=len(levels)) for side in (truth, ~truth))
    below = np.cumsum(others) - others
    auc = float((edges * (below + others / 2)).sum() / (edges.sum() * others.sum()))
    rates = np.cumsum(others) / others.sum() - np.cumsum(edges) / edges.sum()
    return auc, float(rates.max())


@lru_cache(maxsize=4)
def open_problem(world: Simulation) -> Problem:
    """Without targets, the same object each time."""
    return problem_of(world)


def problem_of(world: Simulation, targets: Sequence[int] = ()) -> Problem:
    """The question as the compared methods take it."""
    return Problem(world.data, world.backbone, tuple(targets), world.seed, world.snapshot(HALF))


def balanced_pairs(world: Simulation, count: int) -> tuple[Pairs, NDArray[np.bool_]]:
    """Private edges that the snapshot does not have, and as many pairs that are no edges, all drawn by chance."""
    rng = np.random.default_rng([world.seed, 99])
    nodes = len(world.data.labels)
    edges, shown = ({(int(u), int(w)) for u, w in pairs} for pairs in (world.data.pairs, world.snapshot(HALF)))
    hidden = np.array(sorted(edges - shown))
    positives = hidden[rng.choice(len(hidden), count // 2, replace=False)]
    negatives: list[tuple[int, int]] = []
    while len(negatives) < count // 2:
        u, w = sorted(int(node) for node in rng.choice(nodes, 2, replace=False))
        if (u, w) not in edges:
            negatives.append((u, w))
    pairs: Pairs = np.concatenate([positives, np.array(negatives)])
    return pairs, np.arange(len(pairs)) < len(positives)
