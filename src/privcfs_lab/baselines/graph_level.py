"""Graph-level placement: privatise the adjacency, then explain the noisy graph as if it were the true one.

What is found there is post-processing of the noisy graph, so one price covers every question; but the decision that is
explained is the noisy graph's.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace

from privcfs_lab.baselines.baseline import Baseline, Explanation, Operations, Problem
from privcfs_lab.baselines.cf_gnn_explainer import CFGNNExplainer
from privcfs_lab.baselines.weighted import WeightedTargets, Weights

EPSILON, DELTA = 7.2, 1e-5
NOISE = "graph noise"  # every graph-level method draws from the same numbers


@dataclass(frozen=True, slots=True)
class GraphLevel(Baseline):
    """CF-GNNExplainer on a weighted noisy graph; pairs at the target alone, or the search would not end."""

    operations: Operations = Operations.BOTH
    explainer: CFGNNExplainer = CFGNNExplainer(epochs=100)

    placement = "graph"

    @abstractmethod
    def privatise(self, problem: Problem) -> Weights:
        """The noisy graph, one for each seed."""

    def explain(self, problem: Problem) -> list[Explanation]:
        batch = WeightedTargets.of(problem, self.privatise(problem))
        return replace(self.explainer, operations=self.operations).search(batch)[0].explanations()
