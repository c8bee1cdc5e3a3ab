"""RR-LDP: randomised response, every pair is reported wrongly with a small probability.

Certifies: pure epsilon-DP for one edge.
Operations: delete pairs that touch the target or a neighbour in the noisy graph, mask the target's features, or both.
"""

from dataclasses import dataclass, replace
from math import exp
from typing import final

import numpy as np

from privcfs_lab.baselines.baseline import ONE_EDGE, Certificate, Explanation, Pairs, Problem
from privcfs_lab.baselines.cf_gnn_explainer import CFGNNExplainer
from privcfs_lab.baselines.graph_level import EPSILON, NOISE, GraphLevel
from privcfs_lab.baselines.weighted import Weights, adjacency

WRONG = 1 / (1 + exp(EPSILON))


@final
@dataclass(frozen=True, slots=True)
class RRLDP(GraphLevel):
    """The noisy graph is a graph again, so it is explained as one: some thousand pairs that do not exist."""

    explainer: CFGNNExplainer = CFGNNExplainer(epochs=300)

    certificate = Certificate(EPSILON, 0.0, ONE_EDGE)

    def privatise(self, problem: Problem) -> Weights:
        return adjacency(problem.on(randomised(problem)))

    def explain(self, problem: Problem) -> list[Explanation]:
        return replace(self.explainer, operations=self.operations).explain(problem.on(randomised(problem)))


def randomised(problem: Problem) -> Pairs:
    """The reported pairs. The number of wrong reports is drawn first, then where they fall: the same law."""
    rng, nodes = problem.rng(NOISE), len(problem.data.labels)
    every = nodes * (nodes - 1) // 2
    wrong = rng.choice(every, rng.binomial(every, WRONG), replace=False, shuffle=False)
    true = _number(problem.data.pairs, nodes)
    reported = np.setxor1d(true, wrong)
    return _pairs(reported, nodes)


def _number(pairs: Pairs, nodes: int) -> Pairs:
    """Pairs u < w in lexicographic order, counted from 0."""
    first, second = pairs.T
    numbers: Pairs = first * nodes - first * (first + 1) // 2 + second - first - 1
    return numbers


def _pairs(numbers: Pairs, nodes: int) -> Pairs:
    starts = np.arange(nodes) * nodes - np.arange(nodes) * (np.arange(nodes) + 1) // 2
    first = np.searchsorted(starts, numbers, side="right") - 1
    return np.column_stack([first, numbers - starts[first] + first + 1])
