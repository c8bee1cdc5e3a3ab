"""CF-GNNExplainer (Lucic and others 2022), all targets at once, with feature masks as an option.

Certifies: nothing; it reads the private graph and releases what it found.
Operations: delete pairs that touch the target or a neighbour, mask the target's features, or both.
"""

from dataclasses import dataclass
from typing import ClassVar, final

import torch

from privcfs.lab.baselines.baseline import Baseline, Operations, Problem
from privcfs.lab.baselines.neighbourhoods import Best, Neighbourhoods
from privcfs.public.interventions import Intervention


@final
@dataclass(frozen=True, slots=True)
class CFGNNExplainer(Baseline):
    """Descends the probability of the original class in soft masks and keeps the smallest hard mask that flips."""

    operations: Operations = Operations.BOTH
    epochs: int = 500
    rate: float = 0.1
    size_weight: float = 0.0

    name: ClassVar[str] = "CF-GNNExplainer"
    certifies: ClassVar[str] = "nothing"

    def explain(self, problem: Problem) -> list[Intervention]:
        batch = Neighbourhoods.of(problem)
        edges = torch.ones(len(batch.pairs), requires_grad=self.operations is not Operations.FEATURES)
        features = torch.ones(len(batch.features), requires_grad=self.operations is not Operations.EDGES)
        original = batch.logits(torch.ones_like(edges), torch.ones_like(features)).argmax(dim=1).detach()
        best = Best(batch)
        optimiser = self._optimiser([mask for mask in (edges, features) if mask.requires_grad])
        for _ in range(self.epochs):
            hard = (edges >= 0).float().detach(), (features >= 0).float().detach()
            kept = batch.logits(*hard).argmax(dim=1) == original
            best.consider(~kept, *hard)
            soft = torch.sigmoid(edges), torch.sigmoid(features)
            scores = torch.log_softmax(batch.logits(*soft, batch.degrees_under(soft[0]).detach()), dim=1)
            chosen = scores.gather(1, original[:, None])[:, 0]
            loss = (chosen * kept).sum() + self.size_weight * ((1 - soft[0]).sum() + (1 - soft[1]).sum())
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            _clip(batch, edges)
            optimiser.step()
        return best.interventions()

    def _optimiser(self, masks: list[torch.Tensor]) -> torch.optim.Optimizer:
        """Plain descent as published; Adam with features, since confident predictions have tiny gradients."""
        if self.operations is Operations.EDGES:
            return torch.optim.SGD(masks, lr=self.rate)
        return torch.optim.Adam(masks, lr=self.rate)


def _clip(batch: Neighbourhoods, edges: torch.Tensor, most: float = 2.0) -> None:
    """Each target's gradient has a norm of at most two, as if it were alone."""
    if edges.grad is None:
        return
    owner = torch.from_numpy(batch.owner)
    norm = torch.zeros(len(batch.targets)).index_add(0, owner, edges.grad**2).sqrt()
    edges.grad *= (most / norm.clamp(min=most))[owner]
