"""An analyst who asks again and again, each time what tells two neighbouring graphs apart best.

The analyst knows both graphs and all distributions, holds a belief, and asks next about the target whose answer is
expected to leave the least doubt. Prices follow one of two plans: a fixed total, or a fixed price an answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt, tanh
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from privcfs.gate.method import Method
from privcfs.private.graph import PrivateGraph
from privcfs_lab.audit.adjacent import neighbours
from privcfs_lab.audit.distinguish import Law, distinguish
from privcfs_lab.measuring.inspection import inspect
from privcfs_lab.measuring.measure import Records
from privcfs_lab.measuring.quality import release_law
from privcfs_lab.measuring.simulate import HALF, Simulation, TrainedOn
from privcfs_lab.measuring.study import Work
from privcfs_lab.measuring.targets import POPULATIONS

QUESTIONS = (1, 10, 100)
TOTAL, EACH = 8.0, 1.0
TARGETS, MENU, RUNS = 6, 5, 2000
COMPOSED = np.dtype(
    [
        ("seed", np.int64),
        ("target", np.int64),
        ("questions", np.int64),
        ("price", np.float64),  # of one answer
        ("advantage", np.float64),
        ("error", np.float64),  # standard error of the advantage
        ("different", np.float64),  # how many targets were asked about in one run, on average
    ]
)


@final
@dataclass(frozen=True, slots=True)
class Question:
    """What an answer can say: log-likelihood ratios, and how likely each is on either graph."""

    ratios: NDArray[np.float64]
    first: Law
    second: Law

    @classmethod
    def of(cls, first: Law, second: Law) -> "Question":
        """Answers with the same ratio say the same."""
        ratios, level = np.unique(np.round(np.log(first) - np.log(second), 12), return_inverse=True)
        return cls(ratios, np.bincount(level, first).astype(np.float64), np.bincount(level, second).astype(np.float64))

    def doubt(self, belief: NDArray[np.float64]) -> NDArray[np.float64]:
        """The entropy that one more answer is expected to leave, for each belief in the first graph."""
        here, there = belief[:, None] * self.first, (1 - belief)[:, None] * self.second
        doubt: NDArray[np.float64] = (xlogy(here + there, here + there) - xlogy(here, here) - xlogy(there, there)).sum(
            axis=1
        )
        return doubt


def play(menu: Sequence[Question], questions: int, runs: int, rng: np.random.Generator) -> tuple[float, float, float]:
    """Advantage of the adaptive analyst, its standard error, and how many different questions a run had."""
    rates, asked = [], np.zeros((2, runs, len(menu)), np.bool_)
    for truth in (0, 1):
        odds = np.zeros(runs)
        for _ in range(questions):
            belief = 1 / (1 + np.exp(-odds))
            choice = np.argmin([question.doubt(belief) for question in menu], axis=0)
            for number, question in enumerate(menu):
                mine = np.flatnonzero(choice == number)
                law = (question.first, question.second)[truth]
                odds[mine] += question.ratios[rng.choice(len(law), len(mine), p=law / law.sum())]
                asked[truth, mine, number] = True
        rates.append((odds > 0).mean() + (odds == 0).mean() / 2)
    error = sqrt(sum(rate * (1 - rate) for rate in rates) / runs)
    return rates[0] - rates[1], error, float(asked.sum(axis=2).mean())


def accounted(questions: int, price: float) -> Mapping[str, float]:
    """What the books allow: prices add up; and tighter, since the exponential mechanism is price**2 / 8 zCDP."""
    return {"prices add up": tanh(questions * price / 2), "zCDP": min(1.0, float(price * sqrt(questions) / 4))}


def plans() -> list[tuple[int, float]]:
    """How many questions at which price."""
    return [(questions, price) for questions in QUESTIONS for price in dict.fromkeys((TOTAL / questions, EACH))]


@final
@dataclass(frozen=True, slots=True)
class Composed(Work):
    """The adaptive analyst before the worst sampled neighbour of each target."""

    data: str
    population: str
    method: Method = Method()
    trained_on: TrainedOn = "all edges"

    @property
    def title(self) -> str:
        return f"adaptive questions, {self.data}, {self.population}"

    def records(self, world: Simulation, most: int | None) -> Records:
        rows = []
        linked = [target for target in POPULATIONS[self.population](world) if len(world.graph.neighbours(target))]
        for target in linked[: most or TARGETS]:
            rng = np.random.default_rng([world.seed, target, 5])
            graphs = self._worst_pair(world, target, rng)
            near = [target, *world.context(HALF).snapshot.neighbours(target)][:MENU]
            for questions, price in plans():
                menu = [Question.of(*self._laws(world, graphs, int(node), price)) for node in near]
                found = play(menu, questions, RUNS, rng)
                rows.append((world.seed, target, questions, price, *found))
        return np.array(rows, COMPOSED)

    def _worst_pair(
        self, world: Simulation, target: int, rng: np.random.Generator
    ) -> tuple[PrivateGraph, PrivateGraph]:
        """The graph, and the sampled neighbour that one answer tells from it best."""
        others = [pairs for _, pairs in neighbours(world.data.pairs, target, rng)]
        graphs = [PrivateGraph.from_edges(pairs, number_of_nodes=len(world.data.labels)) for pairs in others]
        gains = [distinguish(*self._laws(world, (world.graph, graph), target, EACH)).advantage for graph in graphs]
        return world.graph, graphs[int(np.argmax(gains))]

    def _laws(self, world: Simulation, graphs: Sequence[PrivateGraph], target: int, price: float) -> list[Law]:
        context = world.context(HALF)
        return [release_law(inspect(graph, context, target, self.method), f"{price:.9f}") for graph in graphs]
