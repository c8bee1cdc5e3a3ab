"""COMBINEX (Giorgi and others 2025): edge and feature changes weighed by a schedule, towards the runner-up class.

Certifies: nothing; it reads the private graph and releases what it found.
Operations: delete pairs that touch the target or a neighbour, switch the target's features off, or both.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import cos, exp, pi
from typing import final

import torch

from privcfs_lab.baselines.baseline import Baseline, Explanation, Operations, Problem
from privcfs_lab.baselines.neighbourhoods import Best, Neighbourhoods

# How much of the change counts as features': from all of it at the start to none at the end.
SCHEDULES: Mapping[str, Callable[[float], float]] = {
    "linear": lambda done: 1 - done,
    "exponential": lambda done: exp(-5 * done),
    "cosine": lambda done: (1 + cos(pi * done)) / 2,
    "constant": lambda _: 0.5,
}


@final
@dataclass(frozen=True, slots=True)
class Combinex(Baseline):
    """Pulls the target towards its runner-up class; of the changes that flip and leave an edge, the lowest loss."""

    operations: Operations = Operations.BOTH
    epochs: int = 500
    rate: float = 0.1
    pull: float = 1.0
    schedule: str = "linear"

    def explain(self, problem: Problem) -> list[Explanation]:
        batch = Neighbourhoods.of(problem)
        edges = torch.ones(len(batch.pairs), requires_grad=self.operations is not Operations.FEATURES)
        features = torch.zeros(len(batch.features), requires_grad=self.operations is not Operations.EDGES)
        before = batch.logits(torch.ones_like(edges), torch.ones_like(features)).detach()
        original, wanted = before.topk(2, dim=1).indices.T
        optimiser = torch.optim.Adam([mask for mask in (edges, features) if mask.requires_grad], lr=self.rate)
        best = Best(batch)
        lengths = torch.bincount(batch.feature_owner, minlength=len(batch.targets)).clamp(min=1)
        for epoch in range(self.epochs):
            off = torch.tanh(features)
            hard = (edges >= 0).float().detach(), (off > -0.5).float().detach()
            soft = torch.sigmoid(edges), (1 + off).clamp(0, 1)
            share = SCHEDULES[self.schedule](epoch / self.epochs)
            pulled = torch.nn.functional.cross_entropy(batch.logits(*soft), wanted, reduction="none")
            changed = torch.zeros(len(batch.targets)).index_add(0, torch.from_numpy(batch.owner), 1 - soft[0])
            masked = torch.zeros(len(batch.targets)).index_add(0, batch.feature_owner, 1 - soft[1]) / lengths
            losses = self.pull * pulled + (1 - share) * changed + share * masked
            flipped = (batch.logits(*hard).argmax(dim=1) != original) & _keeps_an_edge(batch, hard[0])
            best.consider(flipped, *hard, losses.detach().numpy())
            optimiser.zero_grad()
            losses.sum().backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        return best.explanations()


def _keeps_an_edge(batch: Neighbourhoods, edges: torch.Tensor) -> torch.Tensor:
    """Whether a pair is left around each target; where there never was one, nothing is asked."""
    owner, targets = torch.from_numpy(batch.owner), len(batch.targets)
    left = torch.zeros(targets).index_add(0, owner, edges)
    return (left > 0) | (torch.bincount(owner, minlength=targets) == 0)
