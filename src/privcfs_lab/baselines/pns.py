"""NSEG (Cai and others 2022): edges and features by their probability of being necessary and sufficient.

Certifies: nothing; it reads the private graph and releases what it found.
Operations: delete pairs that touch the target or a neighbour, mask the target's features, or both.
"""

from dataclasses import dataclass
from typing import final

import torch

from privcfs_lab.baselines.baseline import Baseline, Explanation, Operations, Problem
from privcfs_lab.baselines.neighbourhoods import Neighbourhoods, mean_entropy


@final
@dataclass(frozen=True, slots=True)
class PNS(Baseline):
    """Keeps the prediction with the explanation alone, loses it without; the counterfactual removes the explanation."""

    operations: Operations = Operations.BOTH
    epochs: int = 400
    rate: float = 0.01
    size_weight: float = 0.001
    entropy_weight: float = 0.1  # per target; tuned on Cora

    def explain(self, problem: Problem) -> list[Explanation]:
        batch = Neighbourhoods.of(problem)
        generator = torch.Generator().manual_seed(problem.seed)
        owners = torch.from_numpy(batch.owner), batch.feature_owner
        edges, features = (_start(owner, generator) for owner in owners)
        original = batch.original()
        optimiser = torch.optim.Adam([edges, features], lr=self.rate)
        for _ in range(self.epochs):
            masks = torch.sigmoid(edges), torch.sigmoid(features)
            gain = self._chance(batch, original, masks)
            for _ in range(2):
                without = tuple(_jittered(1 - mask, generator) for mask in masks)
                gain = gain - self._chance(batch, original, without) / 2
            loss = -gain
            for owner, mask in zip(owners, masks, strict=True):
                size, entropy = mask.sum(), mean_entropy(mask, owner, len(batch.targets)).sum()
                loss = loss + self.size_weight * size + self.entropy_weight * entropy
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        named = [(mask < 0).detach().numpy() for mask in (edges, features)]
        if self.operations is Operations.EDGES:
            named[1][:] = True
        if self.operations is Operations.FEATURES:
            named[0][:] = True
        return batch.explanations(*named)

    def _chance(self, batch: Neighbourhoods, original: torch.Tensor, masks: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """Summed probability of the original classes, averaged over the worlds in which one kind of mask is off."""
        edges, features = masks
        on = torch.ones_like(edges), torch.ones_like(features)
        worlds = {
            Operations.EDGES: [(edges, on[1])],
            Operations.FEATURES: [(on[0], features)],
            Operations.BOTH: [(edges, features), (edges, on[1]), (on[0], features)],
        }[self.operations]
        chances = [torch.softmax(batch.logits(*world), dim=1).gather(1, original[:, None]) for world in worlds]
        return torch.stack(chances).mean(dim=0).sum()


def _start(owner: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Uniform, narrower the more elements a target has."""
    width = torch.bincount(owner).rsqrt()[owner]
    start: torch.Tensor = (torch.rand(len(owner), generator=generator) * 2 - 1) * width
    return start.requires_grad_()


def _jittered(mask: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    noise = (torch.rand(len(mask), generator=generator) * 2 - 1) * 0.025
    return (mask + noise).clamp(0, 1)
