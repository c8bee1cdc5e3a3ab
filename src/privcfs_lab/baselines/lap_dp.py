"""LapDP: Laplace noise on every pair, clamped to [0, 1].

Certifies: pure epsilon-DP for one edge. Each pair is drawn once and mirrored, so the sensitivity is 1.
Operations: delete pairs at the target that have a weight, mask the target's features, or both.
"""

from typing import final

import numpy as np

from privcfs_lab.baselines.baseline import ONE_EDGE, Certificate, Problem
from privcfs_lab.baselines.graph_level import EPSILON, NOISE, GraphLevel
from privcfs_lab.baselines.weighted import Weights, adjacency, mirrored_noise


@final
class LapDP(GraphLevel):
    """Scale 1 / epsilon."""

    certificate = Certificate(EPSILON, 0.0, ONE_EDGE)

    def privatise(self, problem: Problem) -> Weights:
        clean = adjacency(problem)
        return mirrored_noise(clean, problem.rng(NOISE).laplace(0, 1 / EPSILON, clean.shape).astype(np.float32))
