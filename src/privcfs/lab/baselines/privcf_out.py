"""PrivCF-out: CF-GNNExplainer's final mask logits with Gaussian noise on each, as if one could move by at most 1.

Certifies: nothing. The noise covers one entry of a vector that has one entry for each private pair; the vector can move
by much more than 1, and its very length is private.
Operations: those of CF-GNNExplainer.
"""

from dataclasses import dataclass, replace
from math import log, sqrt
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from privcfs.lab.baselines.baseline import NOTHING, Baseline, Certificate, Explanation, Operations, Problem
from privcfs.lab.baselines.cf_gnn_explainer import CFGNNExplainer
from privcfs.lab.baselines.neighbourhoods import Maskable, Neighbourhoods

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


def movement(problem: Problem, explainer: CFGNNExplainer | None = None) -> NDArray[np.float64]:
    """For each target, how far the released logits move when one of its pairs, drawn by chance, is not in the graph.

    Both graphs are explained from scratch. The entry of the pair itself, which only one of them has, is left out; an
    isolated target has no such pair and does not move.
    """
    batch, explainer = Neighbourhoods.of(problem), explainer or PrivCFOut().explainer
    rng = problem.rng("neighbours")
    starts, ends = (np.searchsorted(batch.owner, np.arange(len(batch.targets)), side) for side in ("left", "right"))
    gone = np.array([rng.integers(a, b) for a, b in zip(starts, ends, strict=True) if b > a], np.int64)
    _, *here = explainer.search(batch)
    _, *there = explainer.search(_Without(batch, torch.from_numpy(gone)))
    squares = np.zeros(len(batch.targets))
    for owner, before, after in zip((batch.owner, batch.feature_owner.numpy()), here, there, strict=True):
        shift = (after - before).double().numpy() ** 2
        if owner is batch.owner:
            shift[gone] = 0
        squares += np.bincount(owner, shift, len(squares))
    moved: NDArray[np.float64] = np.sqrt(squares)
    return moved


@final
class _Without(Maskable):
    """The same targets in graphs that lack some pairs."""

    def __init__(self, batch: Neighbourhoods, gone: torch.Tensor) -> None:
        self._batch, self._gone = batch, gone
        self.owner, self.pairs, self.targets = batch.owner, batch.pairs, batch.targets
        self.feature_owner, self.features = batch.feature_owner, batch.features

    def logits(self, edges: torch.Tensor, features: torch.Tensor, fixed: torch.Tensor | None = None) -> torch.Tensor:
        return self._batch.logits(self._less(edges), features, fixed)

    def degrees_under(self, edges: torch.Tensor) -> torch.Tensor:
        return self._batch.degrees_under(self._less(edges))

    def _less(self, edges: torch.Tensor) -> torch.Tensor:
        return edges.index_fill(0, self._gone, 0.0)
