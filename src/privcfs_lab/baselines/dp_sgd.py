"""A model trained by DP-SGD: every training node's gradient is clipped, their sum is noised (Abadi and others 2016).

Certifies: (epsilon, delta)-DP for the loss of one training node, there or not, with features and all edges public (a
changed label would be twice as far: epsilon 16.7). It certifies no edge: one edge changes the gradients of many nodes,
and the explanation reads the true graph.
Operations: those of CF-GNNExplainer, which explains the noisy model's decision.
"""

from dataclasses import dataclass, replace
from typing import final

import dp_accounting
import numpy as np
import torch

from privcfs.public.models.gcn import GCN, normalised_adjacency
from privcfs_lab.baselines.baseline import ONE_EXAMPLE, Baseline, Certificate, Explanation, Operations, Problem
from privcfs_lab.baselines.cf_gnn_explainer import CFGNNExplainer

STEPS, NOISE, DELTA = 100, 7.0, 1e-5


def epsilon_of(steps: int, noise: float) -> float:
    """What full-batch steps cost together, by Renyi accounting."""
    accountant = dp_accounting.rdp.RdpAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(noise), steps)
    return float(accountant.get_epsilon(DELTA))


EPSILON = epsilon_of(STEPS, NOISE)


@final
@dataclass(frozen=True, slots=True)
class DPSGD(Baseline):
    """The paper's GCN with noisy weights, then CF-GNNExplainer."""

    operations: Operations = Operations.BOTH
    explainer: CFGNNExplainer = CFGNNExplainer(epochs=300)
    clip: float = 1.0
    rate: float = 0.01
    hidden: int = 32

    placement = "model"
    certificate = Certificate(EPSILON, DELTA, ONE_EXAMPLE)

    def explain(self, problem: Problem) -> list[Explanation]:
        private = replace(problem, model=self.train(problem))
        return replace(self.explainer, operations=self.operations).explain(private)

    def train(self, problem: Problem) -> GCN:
        """Noisy steps from a public start."""
        data, generator = problem.data, torch.Generator().manual_seed(problem.seed)
        shapes = (data.features.shape[1], self.hidden), (self.hidden, data.number_of_classes)
        weights = [torch.nn.init.xavier_uniform_(torch.empty(shape), generator=generator) for shape in shapes]
        examples = _Examples(problem)
        optimiser = torch.optim.Adam([weight.requires_grad_() for weight in weights], lr=self.rate)
        for _ in range(STEPS):
            for weight, total in zip(weights, examples.clipped_sum(weights, self.clip), strict=True):
                noise = torch.randn(weight.shape, generator=generator)
                weight.grad = (total + NOISE * self.clip * noise) / len(examples)
            optimiser.step()
        first, second = (weight.detach().numpy() for weight in weights)
        return GCN(first, second)


@final
class _Examples:
    """Gradients of single training nodes; a node's loss reads the first layer at its neighbours only."""

    def __init__(self, problem: Problem) -> None:
        data = problem.data
        spread = normalised_adjacency(len(data.labels), data.pairs)
        near = spread[data.split.train]
        self._inputs = torch.from_numpy((spread @ data.features).toarray().astype(np.float32))
        self._rows = [torch.from_numpy(near[[row]].indices.astype(np.int64)) for row in range(near.shape[0])]
        self._reach = [torch.from_numpy(near[[row]].data.astype(np.float32)) for row in range(near.shape[0])]
        self._labels = torch.from_numpy(data.labels[data.split.train])

    def __len__(self) -> int:
        return len(self._labels)

    def clipped_sum(self, weights: list[torch.Tensor], clip: float) -> list[torch.Tensor]:
        """The sum of gradients, each at most `clip` long over all weights together."""
        first, second = (weight.detach() for weight in weights)
        totals = [torch.zeros_like(first), torch.zeros_like(second)]
        inputs = self._inputs @ first
        for rows, reach, label in zip(self._rows, self._reach, self._labels, strict=True):
            before = inputs[rows]
            readout = reach @ torch.relu(before)
            error = torch.softmax(readout @ second, dim=0)
            error[label] -= 1
            back = reach[:, None] * (error @ second.T) * (before > 0)
            gradients = self._inputs[rows].T @ back, torch.outer(readout, error)
            length = torch.cat([part.ravel() for part in gradients]).norm()
            for total, part in zip(totals, gradients, strict=True):
                total += part * (clip / length.clamp(min=clip))
        return totals
