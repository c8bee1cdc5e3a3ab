"""Exact evaluation of every candidate for a two-layer GCN.

Zone: private
Claim: equals a full-graph forward pass on every candidate, for deletions, additions, masks and changes of features.
Why: edge operations change few hidden rows (gcn_hidden_rows.py), and a mask or a change of a feature changes the
    target's own first-layer input by a sum of precomputed vectors. So the distinct hidden rows are few, and the logits
    under each pair set and each feature set are sums over some of them (gcn_readout.py).
Check: tests/private/test_evaluators.py::test_both_evaluators_equal_a_full_forward_pass
"""

from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privcfs.private.allowance import Allowance
from privcfs.private.evaluators.gcn_first_layer import first_layer_sums
from privcfs.private.evaluators.gcn_hidden_rows import (
    Area,
    PreActivations,
    distinct_hidden_rows,
    first_layer_of,
    scaled_pre_activations,
    states_after,
)
from privcfs.private.evaluators.gcn_readout import class_logits
from privcfs.private.evaluators.gcn_work import work
from privcfs.private.evaluators.outcomes import Outcomes, effective_operations
from privcfs.private.graph import PrivateGraph
from privcfs.public.candidates.alterations import taken_inputs
from privcfs.public.candidates.candidates import Candidates, membership
from privcfs.public.context import Readable
from privcfs.public.models.gcn import GCN

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
MOST_STATES = 4096  # Pair sets that are evaluated together.
REUSED_BYTES = 2**24  # Freed blocks of up to this size are reused by the allocator.


def evaluate_gcn(graph: PrivateGraph, context: Readable, candidates: Candidates, allowance: Allowance) -> Outcomes:
    """Logits of the target under every candidate."""
    model = context.model
    assert isinstance(model, GCN)
    _reuse_freed_memory()
    pairs = np.array(candidates.deletions + candidates.additions, np.int64).reshape(-1, 2)
    looked_up = int(graph.degrees(pairs).min(axis=1).sum())
    allowance.spend(work(read=len(pairs) + looked_up, entries=len(candidates.pair_sets) * len(pairs)))
    operations = membership(candidates.pair_sets, len(pairs)) & effective_operations(graph, candidates)
    masked_inputs = _masked_inputs(context, model, candidates, allowance)
    area = Area.around(graph, candidates.target, pairs, allowance)
    first_layer = first_layer_of(area, graph, context, model, allowance)
    blocks: list[Floats] = []
    for start in range(0, len(operations), MOST_STATES):
        part = slice(start, start + MOST_STATES)
        states = states_after(area, operations[part], len(candidates.deletions), allowance)
        rows = distinct_hidden_rows(area, states, allowance)
        pre_activations = scaled_pre_activations(rows, area, states, first_layer, model, allowance)
        mask_counts = candidates.feature_set_counts[part]
        blocks += _logits(rows.read, pre_activations, masked_inputs, mask_counts, model, allowance)
    logits = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
    return Outcomes(candidates, logits, operations.sum(axis=1))


def _logits(
    read: Floats,
    pre_activations: PreActivations,
    masked_inputs: Floats,
    mask_counts: Numbers,
    model: GCN,
    allowance: Allowance,
) -> list[Floats]:
    """Logits (classes, candidates) of runs of states; the states of a run are combined with equally many masks.

    `read` has shape (states, hidden rows) and is 1 where the target aggregates a row. `masked_inputs` has one column
    for each mask, and state i is combined with the first `mask_counts[i]` of them.
    """
    blocks = []
    for run in _runs(mask_counts):
        inputs = masked_inputs[:, : mask_counts[run.start]]
        is_whole = len(read[run]) == len(read)
        allowance.spend(work(entries=0 if is_whole else 4 * len(read[run]) * read.shape[1]))
        used = slice(None) if is_whole else np.flatnonzero(read[run].any(axis=0))
        rows = PreActivations(pre_activations.offsets[used], pre_activations.slopes[used])
        logits = class_logits(read[run, used], rows, inputs, model, allowance)
        blocks.append(logits.reshape(len(logits), -1))
    return blocks


def _runs(counts: Numbers) -> list[slice]:
    """Maximal runs of neighbouring positions with the same count, except runs with a count of 0."""
    borders = [0, *(np.flatnonzero(np.diff(counts)) + 1).tolist(), len(counts)]
    return [slice(start, stop) for start, stop in pairwise(borders) if counts[start]]


def _masked_inputs(context: Readable, model: GCN, candidates: Candidates, allowance: Allowance) -> Floats:
    """The target's first-layer input under every feature set: (hidden units, feature sets)."""
    features, columns = candidates.feature_operations, sum(len(one.columns) for one in candidates.changes)
    units, masks = len(model.first_bias), len(candidates.feature_sets)
    entries = masks * (features + units) + (features + columns) * units
    allowance.spend(work(entries=entries, products=masks * features * units))
    contributions = taken_inputs(candidates, context.feature_row(candidates.target), model.first)
    masked_contributions = contributions.T @ membership(candidates.feature_sets, features).T.astype(np.float32)
    only_target, weight_one, one_segment = np.array([candidates.target]), np.ones(1, np.float32), np.arange(2)
    unmasked = first_layer_sums(context, model, only_target, weight_one, one_segment, allowance)
    return unmasked.T - masked_contributions


@lru_cache(maxsize=1)
def _reuse_freed_memory() -> None:
    """Makes glibc reuse the memory that one evaluation frees in the next one, instead of returning it to the system.

    When glibc frees a block that it had mapped separately, it raises its threshold for such blocks to that block's
    size. Without this step, each evaluation of a long list maps its tables anew, and page faults make it slower (145
    instead of 91 nanoseconds a candidate on Cora). The block is never written, so it occupies no memory.
    """
    np.empty(REUSED_BYTES, np.uint8)
