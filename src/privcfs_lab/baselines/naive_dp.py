"""NaiveDP: Gaussian noise on every pair, clamped to [0, 1].

Certifies: (epsilon, delta)-DP for one edge. Each pair is drawn once and mirrored, so the sensitivity is 1.
Operations: delete pairs at the target that have a weight, mask the target's features, or both.
"""

from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar, final

import dp_accounting

from privcfs_lab.baselines.baseline import ONE_EDGE, Certificate, Problem
from privcfs_lab.baselines.graph_level import DELTA, EPSILON, NOISE, GraphLevel
from privcfs_lab.baselines.weighted import Weights, adjacency, mirrored_noise

PRINTED = sqrt(2) * sqrt(2 * log(1.25 / DELTA)) / EPSILON  # the paper's Eq. 5, of a formula that needs epsilon <= 1
ANALYTIC = float(dp_accounting.get_sigma_gaussian(EPSILON, DELTA))


@dataclass(frozen=True, slots=True)
class _Gaussian(GraphLevel):
    deviation: ClassVar[float]

    def privatise(self, problem: Problem) -> Weights:
        clean = adjacency(problem)
        noise = problem.rng(NOISE).standard_normal(clean.shape, dtype="float32")
        return mirrored_noise(clean, self.deviation * noise)


@final
class NaiveDP(_Gaussian):
    """The deviation that the paper's formula gives at the quoted price, and what it really guarantees."""

    deviation: ClassVar[float] = PRINTED
    certificate = Certificate(EPSILON, DELTA, ONE_EDGE, float(dp_accounting.get_epsilon_gaussian(PRINTED, DELTA)))


@final
class AnalyticNaiveDP(_Gaussian):
    """The smallest deviation that guarantees the quoted price (Balle and Wang 2018)."""

    deviation: ClassVar[float] = ANALYTIC
    certificate = Certificate(EPSILON, DELTA, ONE_EDGE)
