"""Exact evaluation of every candidate for a two-layer GCN.

Zone: private
Claim: equals a full-graph forward pass on every candidate, for deletions, additions and masks alike.
Why: an operation changes the degrees and the link of its two ends, so only hidden rows next to an end change; a mask
    changes the target's own input by a sum of precomputed vectors. A hidden row that no operation touches depends on
    the target's degree and on the mask alone. So the distinct hidden rows are few, and each state of the graph is a
    sum of some of them.
Check: tests/private/test_evaluators.py::test_both_evaluators_equal_a_full_forward_pass
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.private.deadline import Deadline
from privcfs.private.graph import PrivateGraph
from privcfs.private.outcomes.outcomes import Outcomes, effective_operations, membership
from privcfs.public.backbones.gcn import GCN
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import Readable

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
CHUNK = 32  # hidden rows at a time: their values for all masks must fit in memory, whatever the target's degree
MOST_STATES = 4096  # pair sets at a time, likewise
BITS = 62  # operations that fit into one whole number


def evaluate_gcn(graph: PrivateGraph, context: Readable, candidates: Candidates, deadline: Deadline) -> Outcomes:
    """Class scores of the target under every candidate."""
    backbone = context.backbone
    assert isinstance(backbone, GCN)
    pairs = np.array(candidates.deletions + candidates.additions, np.int64).reshape(-1, 2)
    effective = effective_operations(graph, candidates)
    chosen = membership(candidates.pair_sets, len(pairs)) & effective
    inputs = _masked_inputs(context, backbone, candidates)
    blocks = []
    for start in range(0, len(chosen), MOST_STATES):
        states = _states(graph, candidates, pairs, chosen[start : start + MOST_STATES])
        rows, table = _distinct_rows(states)
        gains, slopes = _pre_activations(rows, states, graph, context, backbone)
        for run in _runs(candidates.widths[start : start + MOST_STATES]):
            masked = inputs[:, : candidates.widths[start + run[0]]]
            used = np.flatnonzero(table[run].any(axis=0))
            scores = _class_scores(table[np.ix_(run, used)], gains[used], slopes[used], masked, backbone, deadline)
            blocks.append(scores.reshape(len(scores), -1))
    logits = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
    return Outcomes(candidates, logits, chosen.sum(axis=1))


def _runs(widths: Numbers) -> list[Numbers]:
    """Neighbouring pair sets that are combined with equally many feature sets, and with any."""
    runs = np.split(np.arange(len(widths)), np.flatnonzero(np.diff(widths)) + 1)
    return [run for run in runs if widths[run[0]]]


@dataclass(frozen=True, slots=True, eq=False)
class _States:
    """The target's surroundings under each pair set: one state per pair set."""

    hidden: Numbers  # nodes whose hidden row may reach the target; the target itself comes first
    ends: Numbers  # nodes other than the target at the end of a pair
    hidden_degrees: Numbers  # (states, hidden), self-loop included
    end_degrees: Numbers  # (states, ends), self-loop included
    feeds: Bools  # (hidden, ends): whether an end feeds a hidden row where nothing is done
    links: list[tuple[int, int, int, bool]]  # operation, hidden row, end, and whether it joins them or parts them
    present: Bools  # (states, hidden): whether a hidden row feeds the target
    chosen: Bools  # (states, pairs): which operations a state carries out
    relevant: Bools  # (hidden, pairs): which operations may change the hidden row itself


def _states(graph: PrivateGraph, candidates: Candidates, pairs: Numbers, chosen: Bools) -> _States:
    target = candidates.target
    ends = np.array(sorted({end for pair in pairs.tolist() for end in pair} - {target}), np.int64)
    partners = {end for pair in pairs.tolist() if target in pair for end in pair}
    near = (partners | set(graph.neighbours(target).tolist())) - {target}
    hidden = np.array([target, *sorted(near)], np.int64)
    adds = np.arange(len(pairs)) >= len(candidates.deletions)
    changes = np.where(adds, 1, -1).astype(np.float32) * chosen
    adjacent = _adjacency(graph, hidden, np.concatenate([ends, [target]]))
    feeds, present = adjacent[:, :-1], np.repeat(adjacent[None, :, -1], len(chosen), axis=0)
    row_of = {node: row for row, node in enumerate(hidden.tolist())}
    end_of = {node: column for column, node in enumerate(ends.tolist())}
    links, ever = [], feeds.copy()
    for operation, (u, w) in enumerate(pairs.tolist()):
        for one, other in ((u, w), (w, u)):
            if other == target:
                present[chosen[:, operation], row_of[one]] = adds[operation]
            elif one in row_of:
                links.append((operation, row_of[one], end_of[other], bool(adds[operation])))
                ever[row_of[one], end_of[other]] = True
    at_ends, at_hidden = _incidence(pairs, ends), _incidence(pairs, hidden)
    return _States(
        hidden,
        ends,
        graph.degrees(hidden) + 1 + (changes @ at_hidden).astype(np.int64),
        graph.degrees(ends) + 1 + (changes @ at_ends).astype(np.int64),
        feeds,
        links,
        present,
        chosen,
        (at_ends @ ever.T + at_hidden > 0).T,
    )


def _adjacency(graph: PrivateGraph, rows: Numbers, columns: Numbers) -> Bools:
    """Which columns are neighbours of which rows; a node is its own."""
    owner, neighbour = graph.neighbours_of(columns)
    order = np.argsort(rows)
    position = order[np.searchsorted(rows, neighbour, sorter=order).clip(max=len(rows) - 1)]
    found = rows[position] == neighbour
    table: Bools = rows[:, None] == columns
    table[position[found], owner[found]] = True
    return table


def _incidence(pairs: Numbers, nodes: Numbers) -> Floats:
    """Which nodes are an end of which pair: 1, else 0. Sums of so few are exact in 32 bits, and fast."""
    incidence: Floats = (pairs[:, :, None] == nodes).any(axis=1).astype(np.float32)
    return incidence


def _distinct_rows(states: _States) -> tuple[tuple[Numbers, Numbers], Floats]:
    """Distinct hidden rows as (state, position) of their first use, and how states are sums of them.

    A row is settled by its node, by the target's degree and by the operations that change it: whole numbers that have a
    bit for each operation stand for the last, so equal keys mean equal rows.
    """
    state, position = np.nonzero(states.present)
    degree = states.hidden_degrees[state, 0]
    key = degree * len(states.hidden) + position
    active = states.chosen[state] & states.relevant[position]
    for start in range(0, active.shape[1], BITS):
        history = active[:, start : start + BITS] @ (1 << np.arange(min(BITS, active.shape[1] - start)))
        _, history = np.unique(history, return_inverse=True)
        _, key = np.unique(history * (key.max() + 1) + key, return_inverse=True)
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    table = np.zeros((len(states.present), len(first)), np.float32)
    table[state, which] = 1
    return (state[first], position[first]), table


def _pre_activations(
    rows: tuple[Numbers, Numbers], states: _States, graph: PrivateGraph, context: Readable, backbone: GCN
) -> tuple[Floats, Floats]:
    """Each row as relu(gain + slope x the target's input), scaled by the weight with which the target reads it."""
    state, position = rows
    settled, end_inputs = _settled(states, graph, context, backbone)
    feeds = states.feeds[position]
    for operation, row, end, joins in states.links:
        feeds[(position == row) & states.chosen[state, operation], end] = joins
    sums = settled[position] + (feeds / np.sqrt(states.end_degrees[state])) @ end_inputs
    own = 1 / np.sqrt(states.hidden_degrees[state, position])
    read = own / np.sqrt(states.hidden_degrees[state, 0])
    gains = read[:, None] * (own[:, None] * sums + backbone.first_bias)
    return gains.astype(np.float32), np.square(read).astype(np.float32)


def _settled(
    states: _States, graph: PrivateGraph, context: Readable, backbone: GCN
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What each hidden row reads from nodes that no operation touches, the target left out; and the ends' inputs."""
    owner, source = graph.neighbours_of(states.hidden)
    nodes, column = np.unique(np.concatenate([source, states.hidden, states.ends]), return_inverse=True)
    column, own, ends = np.split(column, np.cumsum([len(source), len(states.hidden)]))
    inputs = (context.feature_rows(nodes) @ backbone.first).astype(np.float64)
    weights = 1 / np.sqrt(graph.degrees(nodes) + 1)
    weights[ends] = weights[own[0]] = 0
    borders = np.searchsorted(owner, np.arange(len(own) + 1))
    reads = sp.csr_array((weights[column], column, borders), shape=(len(own), len(nodes)))
    return reads @ inputs + weights[own, None] * inputs[own], inputs[ends]


def _masked_inputs(context: Readable, backbone: GCN, candidates: Candidates) -> Floats:
    """The target's first-layer input under every feature set, one column each."""
    row = np.zeros(backbone.number_of_features, np.float32)
    numbers, values = context.feature_row(candidates.target)
    row[numbers] = values
    features = np.array(candidates.features, np.int64)
    losses = row[features, None] * backbone.first[features]
    lost = membership(candidates.feature_sets, len(features)).astype(np.float32) @ losses
    return np.ascontiguousarray((values @ backbone.first[numbers] - lost).T)


def _class_scores(
    table: Floats, gains: Floats, slopes: Floats, inputs: Floats, backbone: GCN, deadline: Deadline
) -> Floats:
    """Each state's sum of relu(gain + slope x input), read out: (classes, states, masks).

    A mask moves a hidden unit so little that nearly every unit stays above 0 under all masks, or below. Such units are
    linear in the input, so whole states are; only rows with a unit that crosses 0 need more.
    """
    highest = inputs.max(axis=1)
    below = inputs - highest[:, None]
    peaks = np.maximum(gains + slopes[:, None] * highest, 0)
    floors = np.where(peaks > 0, -peaks / slopes[:, None], -np.inf).astype(np.float32)
    reads = table * slopes
    linear = (reads @ (peaks > 0).astype(np.float32)) * backbone.second.T[:, None]
    scores: Floats = (linear.reshape(-1, len(below)) @ below).reshape(*linear.shape[:2], -1)
    scores += (table @ (peaks @ backbone.second) + backbone.second_bias).T[:, :, None]
    crossing = np.flatnonzero((floors > below.min(axis=1)).any(axis=1))
    for start in range(0, len(crossing), CHUNK):
        deadline.check()
        part = crossing[start : start + CHUNK]
        missing = np.maximum(floors[part][:, :, None] - below, 0)
        repairs = np.matmul(backbone.second.T, missing).transpose(1, 0, 2)
        scores += np.matmul(reads[:, part], repairs)
    deadline.check()
    return scores
