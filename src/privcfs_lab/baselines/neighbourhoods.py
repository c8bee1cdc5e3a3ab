"""The neighbourhoods of many targets as one batch, differentiable in edge and feature masks.

Masks of 0 and 1 give exactly what a full forward pass on the changed graph gives; in between they interpolate the
renormalised adjacency, degrees included.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp
import torch
from numpy.typing import NDArray

from privcfs.public.interventions import Intervention
from privcfs_lab.baselines.baseline import Explanation, Problem
from privcfs_lab.models.deep_gcn import DeepGCN

Numbers = NDArray[np.int64]


class Maskable(ABC):
    """Many targets, the pairs that may be deleted for each, and the features that may be masked."""

    owner: Numbers  # which target each pair belongs to
    pairs: Numbers  # the pair in the graph's numbers
    feature_owner: torch.Tensor  # which target each maskable feature belongs to
    features: Numbers
    targets: torch.Tensor

    @abstractmethod
    def logits(self, edges: torch.Tensor, features: torch.Tensor, fixed: torch.Tensor | None = None) -> torch.Tensor:
        """Class scores of every target; `fixed` gives degrees that no gradient passes through."""

    @abstractmethod
    def degrees_under(self, edges: torch.Tensor) -> torch.Tensor:
        """Degrees, self-loop included, when each pair counts by its mask."""

    def original(self) -> torch.Tensor:
        """The class of every target on the untouched graph."""
        on = torch.ones(len(self.pairs)), torch.ones(len(self.features))
        with torch.no_grad():
            return self.logits(*on).argmax(dim=1)

    def explanations(self, edges: NDArray[np.bool_], features: NDArray[np.bool_]) -> list[Explanation]:
        """What hard masks delete and mask for each target, and whether that flips it here."""
        masks = (torch.from_numpy(mask.astype(np.float32)) for mask in (edges, features))
        with torch.no_grad():
            after = self.logits(*masks).argmax(dim=1)
        before = self.original()
        return [
            Explanation(self._intervention(number, edges, features), int(old), bool(old != new))
            for number, (old, new) in enumerate(zip(before, after, strict=True))
        ]

    def _intervention(self, number: int, edges: NDArray[np.bool_], features: NDArray[np.bool_]) -> Intervention:
        gone = self.pairs[(self.owner == number) & ~edges]
        masked = self.features[(self.feature_owner.numpy() == number) & ~features]
        return Intervention(
            delete=tuple((int(u), int(w)) for u, w in gone), mask=tuple(sorted(int(feature) for feature in masked))
        )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhoods(Maskable):
    """Every target has nodes of its own in the batch; `pairs` are those that a message to the target can cross."""

    targets: torch.Tensor  # batch number of each target
    owner: Numbers
    pairs: Numbers
    ends: torch.Tensor  # (2, pairs) in batch numbers
    feature_owner: torch.Tensor
    features: Numbers
    degrees: torch.Tensor  # self-loop included
    inputs: torch.Tensor  # first-layer inputs of the nodes that no mask touches
    feature_inputs: torch.Tensor  # what each maskable feature adds to its target's input
    biases: tuple[torch.Tensor, ...]  # of every layer
    weights: tuple[torch.Tensor, ...]  # of every layer but the first

    @classmethod
    def of(cls, problem: Problem) -> "Neighbourhoods":
        """Copies out what can matter."""
        data, layers = problem.data, DeepGCN.of(problem.model).layers
        first = layers[0][0]
        nodes = len(data.labels)
        both = np.concatenate([data.pairs, data.pairs[:, ::-1]])
        adjacency = sp.csr_array((np.ones(len(both)), (both[:, 0], both[:, 1])), shape=(nodes, nodes))
        degrees = np.diff(adjacency.indptr) + 1
        tops, members, owners, pairs, ends = [], [], [], [], []
        offset = 0
        for number, target in enumerate(problem.targets):
            touching = _crossed(adjacency, target, len(layers))
            inside = np.unique(np.append(touching.ravel(), target))
            tops.append(offset + int(np.searchsorted(inside, target)))
            members.append(inside)
            owners.append(np.full(len(touching), number))
            pairs.append(touching)
            ends.append(offset + np.searchsorted(inside, touching))
            offset += len(inside)
        every = np.concatenate(members)
        inputs = (data.features[every] @ first).astype(np.float32)
        inputs[tops] = 0
        rows = [data.features[[target]] for target in problem.targets]
        features = np.concatenate([row.indices for row in rows]).astype(np.int64)
        values = np.concatenate([row.data for row in rows]).astype(np.float32)
        lengths = [row.nnz for row in rows]
        return cls(
            torch.tensor(tops),
            np.concatenate(owners),
            np.concatenate(pairs),
            torch.from_numpy(np.concatenate(ends).T.astype(np.int64)),
            torch.from_numpy(np.repeat(np.arange(len(rows)), lengths)),
            features,
            torch.from_numpy(degrees[every].astype(np.float32)),
            torch.from_numpy(inputs),
            torch.from_numpy(values[:, None] * first[features]),
            tuple(torch.from_numpy(bias) for _, bias in layers),
            tuple(torch.from_numpy(weight) for weight, _ in layers[1:]),
        )

    def logits(self, edges: torch.Tensor, features: torch.Tensor, fixed: torch.Tensor | None = None) -> torch.Tensor:
        return self.readouts(edges, features, fixed) @ self.weights[-1] + self.biases[-1]

    def readouts(self, edges: torch.Tensor, features: torch.Tensor, fixed: torch.Tensor | None = None) -> torch.Tensor:
        """What the last, linear layer reads for every target."""
        own = torch.zeros(len(self.targets), self.inputs.shape[1])
        own = own.index_add(0, self.feature_owner, features[:, None] * self.feature_inputs)
        inputs = self.inputs.index_add(0, self.targets, own)
        root = (self.degrees_under(edges) if fixed is None else fixed).rsqrt()
        hidden = torch.relu(self._spread(inputs, edges, root) + self.biases[0])
        for weight, bias in zip(self.weights[:-1], self.biases[1:-1], strict=True):
            hidden = torch.relu(self._spread(hidden @ weight, edges, root) + bias)
        return self._spread(hidden, edges, root)[self.targets]

    def _spread(self, values: torch.Tensor, edges: torch.Tensor, root: torch.Tensor) -> torch.Tensor:
        """One step of the renormalised adjacency, self-loops included."""
        a, b = self.ends
        weight = (edges * root[a] * root[b])[:, None]
        kept = values * (root**2)[:, None]
        return kept.index_add(0, a, weight * values[b]).index_add(0, b, weight * values[a])

    def degrees_under(self, edges: torch.Tensor) -> torch.Tensor:
        lost = 1 - edges
        return self.degrees - torch.zeros_like(self.degrees).index_add(0, self.ends[0], lost).index_add(
            0, self.ends[1], lost
        )


@final
class Best:
    """The best flipping masks so far, target by target: the smallest, or those of lowest loss."""

    def __init__(self, batch: Maskable) -> None:
        self._batch = batch
        self._loss: NDArray[np.float64] = np.full(len(batch.targets), np.inf)
        self._edges: NDArray[np.bool_] = np.ones(len(batch.pairs), np.bool_)
        self._features: NDArray[np.bool_] = np.ones(len(batch.features), np.bool_)

    def consider(
        self,
        flipped: torch.Tensor,
        edges: torch.Tensor,
        features: torch.Tensor,
        losses: NDArray[np.floating] | None = None,
    ) -> None:
        """Keeps these hard masks for every target that they flip better than before."""
        count, owner = len(self._loss), self._batch.feature_owner.numpy()
        hard, masks = edges.numpy() > 0, features.numpy() > 0
        size = np.bincount(self._batch.owner, ~hard, count) + np.bincount(owner, ~masks, count)
        loss = size if losses is None else losses
        better = flipped.numpy() & (loss < self._loss)
        self._loss[better] = loss[better]
        self._edges = np.where(better[self._batch.owner], hard, self._edges)
        self._features = np.where(better[owner], masks, self._features)

    def explanations(self) -> list[Explanation]:
        """One for each target; empty where nothing flipped."""
        return self._batch.explanations(self._edges, self._features)


def mean_entropy(mask: torch.Tensor, owner: torch.Tensor, targets: int) -> torch.Tensor:
    """How undecided each target's mask is, as if the target were alone."""
    inside = mask.clamp(1e-6, 1 - 1e-6)
    entropy = -inside * inside.log() - (1 - inside) * (1 - inside).log()
    counts = torch.bincount(owner, minlength=targets).clamp(min=1)
    return torch.zeros(targets).index_add(0, owner, entropy) / counts


def _crossed(adjacency: sp.csr_array, target: int, steps: int) -> Numbers:
    """Pairs with an end fewer than `steps` steps from the target."""
    near = np.array([target], np.int64)
    for _ in range(steps - 1):
        near = np.union1d(near, adjacency[near].indices)
    found = adjacency[near]
    pairs = np.column_stack([np.repeat(near, np.diff(found.indptr)), found.indices]).astype(np.int64)
    distinct: Numbers = np.unique(np.sort(pairs, axis=1), axis=0)
    return distinct
