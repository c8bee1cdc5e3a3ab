"""Exact evaluation of every candidate for any torch module that takes (x, edge_index).

Zone: private
Claim: equals a full-graph forward pass on every candidate for every module whose output at the target depends on the
    nodes within `hops` steps and on their degrees alone.
Why: the subgraph keeps every node within `hops` steps in the graph with all possible additions, with all its edges,
    so that these nodes have their true degrees. What lies at the far end of an edge that leads out of it can reach the
    target in no fewer than `hops` + 1 steps, so featureless stand-ins take its place. Candidates are disjoint copies
    of the subgraph in one batch.
Check: tests/private/test_evaluators.py::test_both_evaluators_equal_a_full_forward_pass
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privcfs.private.allowance import Allowance
from privcfs.private.evaluators.outcomes import Outcomes, effective_operations
from privcfs.private.graph import PrivateGraph
from privcfs.public.candidates.candidates import Candidates, membership
from privcfs.public.context import Readable
from privcfs.public.models.torch_module import TorchModel

if TYPE_CHECKING:
    import torch

Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]
BATCH_BYTES = 32 * 2**20  # of copied features per batch
# Units of a forward pass: a fit, rounded by hand, to the processor time of 96 evaluations by one busy core of an EPYC
# server, of 1 to 14,000 milliseconds: GCN, GAT, GraphSAGE and GIN layers on Cora and CiteSeer, with all features or
# 64. Units over nanoseconds in 80 of them: median 0.94, least 0.35, greatest 1.8. In the other 16, GraphSAGE and GIN on
# thousands of features, whole feature rows are sent along edges: median 0.3, least 0.08.
PASS = 600_000
PER_FEATURE = 2  # of a node
PER_EDGE = 200


def evaluate_module(graph: PrivateGraph, context: Readable, candidates: Candidates, allowance: Allowance) -> Outcomes:
    """Class scores of the target under every candidate."""
    import torch

    model = context.model
    assert isinstance(model, TorchModel)
    effective = effective_operations(graph, candidates)
    chosen = membership(candidates.pair_sets, len(effective)) & effective
    area = _area(graph, candidates, model.hops, chosen)
    inner = torch.from_numpy(context.feature_rows(area.nodes).toarray())
    x = torch.cat([inner, torch.zeros(area.stand_ins, inner.shape[1])])
    masks = torch.tensor(membership(candidates.feature_sets, len(candidates.features)))
    batch = max(1, BATCH_BYTES // (x.numel() * 4))
    logits = np.empty((len(candidates), model.number_of_classes), np.float32)
    for first, width, alive in zip(candidates.starts, candidates.feature_set_counts, area.alive, strict=False):
        edges = torch.from_numpy(np.ascontiguousarray(area.pairs[alive].T))
        for start in range(0, int(width), batch):
            part = masks[start : min(start + batch, int(width))]
            allowance.spend(forward_work(len(part) * len(x), x.shape[1], len(part) * edges.shape[1]))
            here = first + start
            logits[here : here + len(part)] = _forward(model, x, edges, part, candidates.features)
    return Outcomes(candidates, np.ascontiguousarray(logits.T), chosen.sum(axis=1))


def forward_work(nodes: int, features: int, edges: int) -> int:
    """Units of one forward pass."""
    return PASS + PER_FEATURE * nodes * features + PER_EDGE * edges


def _forward(
    model: TorchModel,
    x: "torch.Tensor",
    edges: "torch.Tensor",
    masks: "torch.Tensor",
    features: tuple[int, ...],
) -> NDArray[np.float32]:
    """Class scores of node 0 of disjoint copies of one graph, each with its own features of node 0 masked."""
    import torch

    copies, nodes = len(masks), len(x)
    many = x.repeat(copies, 1)
    tops = many[::nodes]
    tops[:, list(features)] *= ~masks
    many[::nodes] = tops
    both = torch.cat([edges, edges.flip(0)], dim=1)
    offsets = torch.arange(copies).repeat_interleave(both.shape[1]) * nodes
    with torch.no_grad():
        scores = model.module(many, both.repeat(1, copies) + offsets)
    if scores.shape != (copies * nodes, model.number_of_classes):
        raise ValueError(f"the module returned shape {tuple(scores.shape)}")
    array: NDArray[np.float32] = scores[::nodes].numpy()
    return array


@dataclass(frozen=True, slots=True, eq=False)
class _Area:
    """The part of the graph that can matter; pairs use positions in `nodes`, and positions after it for stand-ins."""

    nodes: Numbers  # the target first
    stand_ins: int
    pairs: Numbers  # private edges and possible additions
    alive: Bools  # (states, pairs): which of them a state has


def _area(graph: PrivateGraph, candidates: Candidates, hops: int, chosen: Bools) -> _Area:
    additions = np.array(candidates.additions, np.int64).reshape(-1, 2)
    nodes = _within(graph, candidates.target, additions, hops)
    owner, other = graph.neighbours_of(nodes)
    edges = np.unique(np.sort(np.column_stack([nodes[owner], other]), axis=1), axis=0)
    near = ~graph.has_edges(additions) & np.isin(additions, nodes).any(axis=1)
    pairs = np.concatenate([edges, additions[near]])
    alive = np.ones((len(chosen), len(pairs)), np.bool_)
    alive[:, len(edges) :] = chosen[:, len(candidates.deletions) :][:, near]
    for operation, pair in enumerate(candidates.deletions):
        alive[np.ix_(chosen[:, operation], np.flatnonzero((edges == pair).all(axis=1)))] = False
    local, stand_ins = _localised(pairs, nodes)
    return _Area(nodes, stand_ins, local, alive)


def _within(graph: PrivateGraph, target: int, additions: Numbers, hops: int) -> Numbers:
    """The target, then every node within so many steps of it once all additions are made."""
    nodes = np.array([target])
    for _ in range(hops):
        _, reached = graph.neighbours_of(nodes)
        partners = additions[np.isin(additions, nodes).any(axis=1)].ravel()
        nodes = np.concatenate([nodes, np.setdiff1d(np.concatenate([reached, partners]), nodes)])
    return nodes


def _localised(pairs: Numbers, nodes: Numbers) -> tuple[Numbers, int]:
    """Pairs by position in `nodes`; an end outside becomes a stand-in that no other pair of the inner end has."""
    order = np.argsort(nodes)
    position = order[np.searchsorted(nodes, pairs, sorter=order).clip(max=len(nodes) - 1)]
    outside = nodes[position] != pairs
    leads_out = np.flatnonzero(outside.any(axis=1))
    inner = position[leads_out][~outside[leads_out]]
    by_inner = np.argsort(inner, kind="stable")
    rank = np.empty(len(inner), np.int64)
    rank[by_inner] = np.arange(len(inner)) - np.searchsorted(inner[by_inner], inner[by_inner])
    position[outside] = len(nodes) + rank
    return position, int(rank.max(initial=-1)) + 1
