"""The same operations under graph-level placement: the best candidate of our own list on a privatised graph.

Certifies: what the privatised graph certifies.
Operations: those of the candidate list.
"""

from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from privcfs.gate.method import Method
from privcfs_lab.baselines.baseline import Baseline, Certificate, Explanation, Operations, Problem
from privcfs_lab.baselines.graph_level import GraphLevel
from privcfs_lab.baselines.naive_dp import AnalyticNaiveDP
from privcfs_lab.baselines.weighted import evaluate_weighted
from privcfs_lab.measuring.measure import public_guesses

RuleOfChoice = Literal["best utility", "lowest margin"]
RULES_OF_CHOICE: tuple[RuleOfChoice, ...] = ("best utility", "lowest margin")


@final
@dataclass(frozen=True, slots=True)
class Restricted(Baseline):
    """By the utility's best, as in the paper, or by the lowest margin, as the public guess is chosen."""

    noise: GraphLevel = AnalyticNaiveDP()
    method: Method = Method()
    rule: RuleOfChoice = "best utility"
    operations: Operations = Operations.BOTH

    placement = "graph"

    @property
    def certificate(self) -> Certificate:
        return self.noise.certificate

    def explain(self, problem: Problem) -> list[Explanation]:
        weights, context = self.noise.privatise(problem), problem.context()
        answers = []
        for target in problem.targets:
            candidates = self.method.candidates.propose(context, target)
            outcomes = evaluate_weighted(weights, context, candidates)
            by_utility = int(np.argmax(self.method.utility.score(outcomes).unseal()))
            position = by_utility if self.rule == "best utility" else public_guesses(outcomes)[-1]
            flips = bool(outcomes.flips()[position])
            answers.append(Explanation(candidates[position], outcomes.original(), flips))
        return answers
