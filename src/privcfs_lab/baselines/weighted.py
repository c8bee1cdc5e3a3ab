"""A graph in which every pair has a weight between 0 and 1: what continuous noise makes of an adjacency.

One dense matrix (44 MB for CiteSeer); everything else is a handful of nodes-by-hidden arrays for each target.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray

from privcfs.private.evaluators.outcomes import Outcomes
from privcfs.public.candidates.candidates import Candidates, membership
from privcfs.public.context import PublicContext
from privcfs.public.models.gcn import GCN
from privcfs_lab.baselines.baseline import Problem
from privcfs_lab.baselines.neighbourhoods import Maskable, Numbers
from privcfs_lab.models.deep_gcn import DeepGCN

Weights = NDArray[np.float32]  # (nodes, nodes), symmetric, zero diagonal
CHUNK = 32  # feature sets at a time


def adjacency(problem: Problem) -> Weights:
    """The true graph, as weights of 0 and 1."""
    weights: Weights = np.zeros((len(problem.data.labels),) * 2, np.float32)
    first, second = problem.data.pairs.T
    weights[first, second] = weights[second, first] = 1
    return weights


def mirrored_noise(weights: Weights, noise: Weights) -> Weights:
    """Adds noise to the upper triangle, copies it to the lower one and clamps: one draw for every pair."""
    upper = np.triu(weights + noise, 1)
    np.clip(upper, 0, 1, out=upper)
    upper += upper.T
    return upper


@final
@dataclass(frozen=True, slots=True, eq=False)
class WeightedTargets(Maskable):
    """Many targets of one weighted graph; `pairs` are those at the target that have a weight."""

    targets: torch.Tensor
    owner: Numbers
    pairs: Numbers
    others: torch.Tensor  # the end of each pair that is not the target
    feature_owner: torch.Tensor
    features: Numbers
    weights: torch.Tensor
    inputs: torch.Tensor
    feature_inputs: torch.Tensor
    model: tuple[torch.Tensor, torch.Tensor, torch.Tensor]  # first bias, second layer, second bias

    @classmethod
    def of(cls, problem: Problem, weights: Weights) -> "WeightedTargets":
        """Copies no weights."""
        (first, first_bias), (second, second_bias) = DeepGCN.of(problem.model).layers
        targets = np.array(problem.targets, np.int64)
        owner, others = (part.astype(np.int64) for part in np.nonzero(weights[targets]))
        rows = [problem.data.features[[target]] for target in problem.targets]
        features = np.concatenate([row.indices for row in rows]).astype(np.int64)
        values = np.concatenate([row.data for row in rows]).astype(np.float32)
        return cls(
            torch.from_numpy(targets),
            owner,
            np.sort(np.column_stack([targets[owner], others]), axis=1),
            torch.from_numpy(others),
            torch.from_numpy(np.repeat(np.arange(len(rows)), [row.nnz for row in rows])),
            features,
            torch.from_numpy(weights),
            torch.from_numpy((problem.data.features @ first).astype(np.float32)),
            torch.from_numpy(values[:, None] * first[features]),
            (torch.from_numpy(first_bias), torch.from_numpy(second), torch.from_numpy(second_bias)),
        )

    def degrees_under(self, edges: torch.Tensor) -> torch.Tensor:
        """One row of degrees for each target, since each changes a graph of its own."""
        kept = self._rows(edges)
        lost = self.weights[self.targets] - kept
        degrees = 1 + self.weights.sum(dim=1) - lost
        own = 1 + kept.sum(dim=1)
        return degrees.scatter(1, self.targets[:, None], own[:, None])

    def logits(self, edges: torch.Tensor, features: torch.Tensor, fixed: torch.Tensor | None = None) -> torch.Tensor:
        first_bias, second, second_bias = self.model
        root = (self.degrees_under(edges) if fixed is None else fixed).rsqrt()
        count, nodes = root.shape
        at = torch.arange(count)
        own = torch.zeros(count, self.inputs.shape[1])
        own = own.index_add(0, self.feature_owner, features[:, None] * self.feature_inputs)
        reach = self._rows(edges) * root * root[at, self.targets][:, None]  # from the target to each node, and back
        scaled = root[:, :, None] * self.inputs
        scaled = scaled.index_put((at, self.targets), torch.zeros(()))  # the target's own message is added below
        spread = (self.weights @ scaled.permute(1, 0, 2).reshape(nodes, -1)).reshape(nodes, count, -1).permute(1, 0, 2)
        first = root[:, :, None] * (spread + scaled) + reach[:, :, None] * own[:, None]
        heard = torch.einsum("tn,nh->th", reach, self.inputs) + (root[at, self.targets] ** 2)[:, None] * own
        hidden = torch.relu(first.index_put((at, self.targets), heard) + first_bias)
        readout = torch.einsum("tn,tnh->th", reach, hidden)
        readout = readout + (root[at, self.targets] ** 2)[:, None] * hidden[at, self.targets]
        return readout @ second + second_bias

    def _rows(self, edges: torch.Tensor) -> torch.Tensor:
        """Weights between each target and every node when pairs count by their masks."""
        owner = torch.from_numpy(self.owner)
        values = edges * self.weights[self.targets[owner], self.others]
        return torch.zeros(len(self.targets), len(self.weights)).index_put((owner, self.others), values)


def evaluate_weighted(weights: Weights, context: PublicContext, candidates: Candidates) -> Outcomes:
    """Class scores under every candidate on a weighted graph; deleting a pair takes all of its weight."""
    model = context.model
    assert isinstance(model, GCN)
    target, inputs = candidates.target, np.asarray(context.features @ model.first, np.float32)
    degrees = 1 + weights.sum(axis=1)
    messages = weights @ (inputs / np.sqrt(degrees)[:, None])
    present, values = context.feature_row(target)
    amounts = dict(zip(present.tolist(), values.tolist(), strict=True))
    effects = np.array([amounts.get(number, 0.0) * model.first[number] for number in candidates.features], np.float32)
    chosen = membership(candidates.feature_sets, len(candidates.features)).astype(np.float32)
    masked = chosen @ effects.reshape(len(candidates.features), inputs.shape[1])
    logits = np.empty((len(candidates.pair_sets), model.number_of_classes, len(masked)), np.float32)
    real = np.array([weights[pair] > 0 for pair in candidates.deletions], np.bool_)
    for number, pair_set in enumerate(candidates.pair_sets):
        gone = [candidates.deletions[position] for position in pair_set]
        reach, first = _first_layer(weights, inputs, degrees, messages, target, gone)
        for start in range(0, len(masked), CHUNK):
            part = masked[start : start + CHUNK]
            hidden = np.maximum(first - reach[:, None] * part[:, None] + model.first_bias, 0)
            scores = np.einsum("n,fnh->fh", reach, hidden) @ model.second + model.second_bias
            logits[number, :, start : start + CHUNK] = scores.T
    effective = np.array([real[list(pair_set)].sum() for pair_set in candidates.pair_sets], np.int64)
    return Outcomes(candidates, flattened(candidates, logits), effective)


def _first_layer(
    weights: Weights, inputs: Weights, degrees: Weights, messages: Weights, target: int, gone: list[tuple[int, int]]
) -> tuple[Weights, Weights]:
    """How much each node hears of the target, and the first layer, for the nodes that the target hears."""
    changed = degrees.copy()
    for u, w in gone:
        changed[[u, w]] -= weights[u, w]
    root, before = 1 / np.sqrt(changed), 1 / np.sqrt(degrees)
    heard = messages.copy()
    for node in {end for pair in gone for end in pair}:
        heard += weights[:, [node]] * ((root[node] - before[node]) * inputs[node])
    for u, w in gone:
        heard[u] -= weights[u, w] * root[w] * inputs[w]
        heard[w] -= weights[u, w] * root[u] * inputs[u]
    row = weights[target].copy()
    row[[w if u == target else u for u, w in gone if target in (u, w)]] = 0
    row[target] = 1
    reach = row * root * root[target]
    near = np.flatnonzero(reach)
    first = root[near, None] * (heard[near] + root[near, None] * inputs[near])
    return reach[near].astype(np.float32), first.astype(np.float32)


def flattened(candidates: Candidates, blocks: NDArray[np.floating]) -> NDArray[np.floating]:
    """Class scores of a full product, shape (pair sets, classes, feature sets), as `Outcomes` keeps them."""
    kept = np.arange(blocks.shape[2]) < candidates.feature_set_counts[:, None]
    return np.ascontiguousarray(blocks.transpose(1, 0, 2)[:, kept])
