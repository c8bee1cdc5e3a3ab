"""RCExplainer (Bajaj and others 2021): masks from one small network that keeps and crosses decision boundaries.

Certifies: nothing; it reads the private graph and releases what it found.
Operations: delete pairs that touch the target or a neighbour, mask the target's features, or both.

The last layer is linear, so the boundaries between the original class and every other are known exactly. The network is
shared by all targets that are explained together.
"""

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import torch
from numpy.typing import NDArray

from privcfs_lab.baselines.baseline import Baseline, Explanation, Operations, Problem
from privcfs_lab.baselines.neighbourhoods import Best, Neighbourhoods, mean_entropy
from privcfs_lab.models.deep_gcn import DeepGCN


@final
@dataclass(frozen=True, slots=True)
class RCExplainer(Baseline):
    """Elements are removed in the order of their masks until the prediction flips, at most `most` of them."""

    operations: Operations = Operations.BOTH
    epochs: int = 300
    rate: float = 0.01
    most: int = 400

    keep_weight: ClassVar[float] = 3.0
    cross_weight: ClassVar[float] = 12.0
    size_weight: ClassVar[float] = 0.001
    entropy_weight: ClassVar[float] = 1.0

    def explain(self, problem: Problem) -> list[Explanation]:
        torch.manual_seed(problem.seed)
        batch = Neighbourhoods.of(problem)
        about_edges, about_features = _descriptions(problem, batch)
        networks = [_network(about.shape[1]) for about in (about_edges, about_features)]
        boundaries = _Boundaries(batch)
        optimiser = torch.optim.Adam([p for network in networks for p in network.parameters()], lr=self.rate)
        for _ in range(self.epochs):
            masks = self._masks(networks, about_edges, about_features)
            loss = boundaries.loss(self._worlds(masks), self.keep_weight, self.cross_weight)
            for owner, mask in zip((torch.from_numpy(batch.owner), batch.feature_owner), masks, strict=True):
                size, entropy = mask.sum(), mean_entropy(mask, owner, len(batch.targets)).sum()
                loss = loss + self.size_weight * size + self.entropy_weight * entropy
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
        edges, features = (mask.detach().numpy() for mask in self._masks(networks, about_edges, about_features))
        return self._removed(batch, edges, features)

    def _masks(
        self, networks: list[torch.nn.Sequential], edges: torch.Tensor, features: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """How much each element belongs to the explanation; elements that may not be removed do not."""
        first, second = (
            torch.sigmoid(net(about))[:, 0] for net, about in zip(networks, (edges, features), strict=True)
        )
        if self.operations is Operations.FEATURES:
            first = torch.zeros_like(first)
        if self.operations is Operations.EDGES:
            second = torch.zeros_like(second)
        return first, second

    def _worlds(
        self, masks: tuple[torch.Tensor, torch.Tensor]
    ) -> tuple[tuple[torch.Tensor, torch.Tensor], tuple[torch.Tensor, torch.Tensor]]:
        """The explanation alone, and the rest without it; what may not be removed is there in both."""
        edges, features = masks
        alone, without = [edges, features], [1 - edges, 1 - features]
        for kind, forbidden in enumerate((Operations.FEATURES, Operations.EDGES)):
            if self.operations is forbidden:
                alone[kind] = without[kind] = torch.ones_like(masks[kind])
        return (alone[0], alone[1]), (without[0], without[1])

    def _removed(
        self, batch: Neighbourhoods, edges: NDArray[np.float32], features: NDArray[np.float32]
    ) -> list[Explanation]:
        """The shortest prefix of each target's ranking that flips it."""
        owner = np.concatenate([batch.owner, batch.feature_owner.numpy()])
        scores = np.concatenate([edges, features])
        usable = scores > 0
        order = np.lexsort((-scores, owner))
        place = np.empty(len(order), np.int64)
        starts = np.searchsorted(owner[order], np.arange(len(batch.targets)))
        place[order] = np.arange(len(order)) - starts[owner[order]]
        best = Best(batch)
        original = batch.original()
        for count in range(1, self.most + 1):
            kept = torch.from_numpy(((place >= count) | ~usable).astype(np.float32))
            hard = kept[: len(edges)], kept[len(edges) :]
            best.consider(batch.logits(*hard).argmax(dim=1) != original, *hard)
        return best.explanations()


class _Boundaries:
    """Signed distances from the boundaries between the original class and the others."""

    def __init__(self, batch: Neighbourhoods) -> None:
        self._batch = batch
        second, bias = batch.weights[-1], batch.biases[-1]
        on = torch.ones(len(batch.pairs)), torch.ones(len(batch.features))
        readouts = batch.readouts(*on)
        original = (readouts @ second + bias).argmax(dim=1)
        self._normals = second.T[original][:, None] - second.T  # (targets, classes, hidden)
        self._offsets = bias[original][:, None] - bias
        self._others = torch.ones_like(self._offsets).scatter(1, original[:, None], 0).bool()
        self._before = self._sides(readouts)

    def _sides(self, readouts: torch.Tensor) -> torch.Tensor:
        return (self._normals * readouts[:, None]).sum(dim=2) + self._offsets

    def loss(self, worlds: tuple[tuple[torch.Tensor, torch.Tensor], ...], keep: float, cross: float) -> torch.Tensor:
        """Small if the explanation alone stays on every side, and the rest without it crosses one."""
        alone, without = (self._sides(self._batch.readouts(*world)) for world in worlds)
        stays = torch.sigmoid(-self._before * alone)
        crosses = torch.sigmoid(self._before * without)
        mean = (stays * self._others).sum(dim=1) / self._others.sum(dim=1)
        least = crosses.masked_fill(~self._others, 2.0).min(dim=1).values
        return (keep * mean + cross * least).sum()


def _network(width: int) -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(width, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))


def _descriptions(problem: Problem, batch: Neighbourhoods) -> tuple[torch.Tensor, torch.Tensor]:
    """For a pair, the embeddings of both ends and the target; for a feature, the target's and its own weights."""
    *body, (last, _) = DeepGCN.of(problem.model).layers
    width = last.shape[0]
    reader = DeepGCN((*body, (np.eye(width, dtype=np.float32), np.zeros(width, np.float32))))
    hidden = torch.from_numpy(reader.logits(problem.data.features, problem.data.pairs).astype(np.float32))
    targets = hidden[torch.tensor(problem.targets)]
    first, second = torch.from_numpy(batch.pairs.T.copy())
    edges = torch.cat([hidden[first], hidden[second], targets[torch.from_numpy(batch.owner)]], dim=1)
    weights = torch.from_numpy(body[0][0][batch.features])
    return edges, torch.cat([targets[batch.feature_owner], weights], dim=1)
