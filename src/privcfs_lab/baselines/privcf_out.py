"""PrivCF-out: CF-GNNExplainer's final mask logits with Gaussian noise on each, as if one could move by at most 1.

Certifies: nothing. The noise covers one entry of a vector that has one entry for each private pair; the vector can move
by much more than 1, and its very length is private.
Operations: those of CF-GNNExplainer.
"""

from dataclasses import dataclass, replace
from math import log, sqrt
from typing import final

import torch

from privcfs_lab.baselines.baseline import NOTHING, Baseline, Certificate, Explanation, Operations, Problem
from privcfs_lab.baselines.cf_gnn_explainer import CFGNNExplainer
from privcfs_lab.baselines.neighbourhoods import Neighbourhoods

EPSILON, DELTA = 7.2, 1e-5
DEVIATION = sqrt(2 * log(1.25 / DELTA)) / EPSILON


@final
@dataclass(frozen=True, slots=True)
class PrivCFOut(Baseline):
    """Elements whose noisy logit is below zero are removed."""

    operations: Operations = Operations.BOTH
    explainer: CFGNNExplainer = CFGNNExplainer(epochs=300)

    placement = "explanation"
    certificate = Certificate(EPSILON, DELTA, NOTHING)

    def explain(self, problem: Problem) -> list[Explanation]:
        batch = Neighbourhoods.of(problem)
        _, *logits = replace(self.explainer, operations=self.operations).search(batch)
        rng = problem.rng("mask noise")
        noisy = [(part + DEVIATION * torch.from_numpy(rng.standard_normal(len(part)))).numpy() >= 0 for part in logits]
        if self.operations is Operations.EDGES:
            noisy[1][:] = True
        if self.operations is Operations.FEATURES:
            noisy[0][:] = True
        return batch.explanations(*noisy)
