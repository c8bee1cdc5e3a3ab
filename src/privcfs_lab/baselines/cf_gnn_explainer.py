"""CF-GNNExplainer (Lucic and others 2022), all targets at once, with feature masks as an option.

Certifies: nothing; it reads the private graph and releases what it found.
Operations: delete pairs that touch the target or a neighbour, mask the target's features, or both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import final

import torch

from privcfs_lab.baselines.baseline import Baseline, Explanation, Operations, Problem
from privcfs_lab.baselines.neighbourhoods import Best, Maskable, Neighbourhoods

Masks = tuple[torch.Tensor, torch.Tensor]  # of pairs and of features
Losses = Callable[[Masks], torch.Tensor]  # of every target under soft masks
Penalty = Callable[[Losses, Masks], torch.Tensor]


@final
@dataclass(frozen=True, slots=True)
class CFGNNExplainer(Baseline):
    """Descends the probability of the original class in soft masks and keeps the smallest hard mask that flips."""

    operations: Operations = Operations.BOTH
    epochs: int = 500
    rate: float = 0.1
    size_weight: float = 0.0

    def explain(self, problem: Problem) -> list[Explanation]:
        return self.search(Neighbourhoods.of(problem))[0].explanations()

    def search(
        self, batch: Maskable, start: Masks | None = None, penalty: Penalty | None = None
    ) -> tuple[Best, torch.Tensor, torch.Tensor]:
        """The best found, and where the mask logits of pairs and features ended; they start at 1 unless told.

        A penalty, if there is one, is added to the loss.
        """
        first = start or (torch.ones(len(batch.pairs)), torch.ones(len(batch.features)))
        edges = first[0].clone().requires_grad_(self.operations is not Operations.FEATURES)
        features = first[1].clone().requires_grad_(self.operations is not Operations.EDGES)
        original, best = batch.original(), Best(batch)
        optimiser = self._optimiser([mask for mask in (edges, features) if mask.requires_grad])
        for _ in range(self.epochs):
            hard = (edges >= 0).float().detach(), (features >= 0).float().detach()
            with torch.no_grad():
                kept = batch.logits(*hard).argmax(dim=1) == original
            best.consider(~kept, *hard)
            soft = torch.sigmoid(edges), torch.sigmoid(features)
            losses = partial(_losses, batch, original, kept)
            loss = losses(soft).sum() + self.size_weight * ((1 - soft[0]).sum() + (1 - soft[1]).sum())
            if penalty is not None:
                loss = loss + penalty(losses, soft)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            _clip(batch, edges)
            optimiser.step()
        return best, edges.detach(), features.detach()

    def _optimiser(self, masks: list[torch.Tensor]) -> torch.optim.Optimizer:
        """Plain descent as published; Adam with features, since confident predictions have tiny gradients."""
        if self.operations is Operations.EDGES:
            return torch.optim.SGD(masks, lr=self.rate)
        return torch.optim.Adam(masks, lr=self.rate)


def _losses(batch: Maskable, original: torch.Tensor, kept: torch.Tensor, soft: Masks) -> torch.Tensor:
    """Log-probability of every target's original class; nothing where the hard masks flip it already."""
    scores = torch.log_softmax(batch.logits(*soft, batch.degrees_under(soft[0]).detach()), dim=1)
    return scores.gather(1, original[:, None])[:, 0] * kept


def _clip(batch: Maskable, edges: torch.Tensor, most: float = 2.0) -> None:
    """Each target's gradient has a norm of at most two, as if it were alone."""
    if edges.grad is None:
        return
    owner = torch.from_numpy(batch.owner)
    norm = torch.zeros(len(batch.targets)).index_add(0, owner, edges.grad**2).sqrt()
    edges.grad *= (most / norm.clamp(min=most))[owner]
