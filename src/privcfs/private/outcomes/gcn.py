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
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privcfs.private.deadline import Deadline
from privcfs.private.graph import PrivateGraph
from privcfs.private.outcomes.outcomes import Outcomes, effective_operations
from privcfs.public.backbones.gcn import GCN
from privcfs.public.candidates.candidates import Candidates, membership
from privcfs.public.context import Readable
from privcfs.tables.neighbours import gather, places

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
MOST_STATES = 4096  # pair sets at a time
CHUNK = 32  # hidden rows at a time
MOST_WEIGHTS = 2**22  # numbers in a table of weights: memory is bounded, whatever the target's degree
MOST_CELLS = 2**20  # numbers in a table of features
LOOK = 60  # multiplications that cost as much as looking at one more number
BITS = 52  # of a whole number that a product of 64-bit floats keeps exactly
NOTHING = np.zeros(1, np.float32)
np.empty(2**24, np.uint8)  # having freed so much once, glibc keeps what an evaluation frees for the next one


def evaluate_gcn(graph: PrivateGraph, context: Readable, candidates: Candidates, deadline: Deadline) -> Outcomes:
    """Class scores of the target under every candidate."""
    backbone = context.backbone
    assert isinstance(backbone, GCN)
    pairs = np.array(candidates.deletions + candidates.additions, np.int64).reshape(-1, 2)
    chosen = membership(candidates.pair_sets, len(pairs)) & effective_operations(graph, candidates)
    inputs, blocks = _masked_inputs(context, backbone, candidates), []
    area = _Area.around(graph, candidates.target, pairs)
    deadline.check()
    settled = _settled(area, graph, context, backbone)
    for start in range(0, len(chosen), MOST_STATES):
        deadline.check()
        states = _states(area, chosen[start : start + MOST_STATES], len(candidates.deletions))
        rows, table = _distinct_rows(area, states)
        deadline.check()
        gains, slopes = _pre_activations(rows, area, states, settled, backbone)
        for run in _runs(candidates.widths[start : start + MOST_STATES]):
            deadline.check()
            masked = inputs[:, : candidates.widths[start + run.start]]
            used = np.flatnonzero(table[run].any(axis=0)) if len(table[run]) < len(table) else slice(None)
            scores = _class_scores(table[run, used], gains[used], slopes[used], masked, backbone, deadline)
            blocks.append(scores.reshape(len(scores), -1))
    logits = blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=1)
    return Outcomes(candidates, logits, chosen.sum(axis=1))


def _runs(widths: Numbers) -> list[slice]:
    """Neighbouring pair sets that are combined with equally many feature sets, and with any."""
    borders = [0, *(np.flatnonzero(np.diff(widths)) + 1).tolist(), len(widths)]
    return [slice(start, stop) for start, stop in pairwise(borders) if widths[start]]


@dataclass(frozen=True, slots=True, eq=False)
class _Area:
    """What may reach the target: nodes whose hidden row it may read, and ends of pairs, with what is now."""

    pairs: Numbers  # the operations
    hidden: Numbers  # nodes whose hidden row may reach the target, sorted
    ends: Numbers  # nodes other than the target at the end of a pair, sorted
    target: int  # the target's place in `hidden`
    reads: tuple[Numbers, Numbers]  # each hidden node's neighbours: place of the node, neighbour
    hidden_degrees: Numbers  # self-loop included
    end_degrees: Numbers  # self-loop included
    present: Bools  # (hidden): whether the target reads the row
    feeds: Bools  # (hidden, ends): whether the row reads the end
    links: Numbers  # (3, links): an operation on the link between a row and an end

    @classmethod
    def around(cls, graph: PrivateGraph, target: int, pairs: Numbers) -> "_Area":
        """The area of one target."""
        near, listed = graph.neighbours(target), pairs.tolist()
        partners = {end for pair in listed if target in pair for end in pair}
        hidden = np.array(sorted(partners | {target, *near.tolist()}), np.int64)
        ends = np.array(sorted({end for pair in listed for end in pair} - {target}), np.int64)
        own, (owner, source) = int(np.searchsorted(hidden, target)), graph.neighbours_of(hidden)
        present = np.zeros(len(hidden), np.bool_)
        present[np.searchsorted(hidden, near)] = present[own] = True
        feeds: Bools = hidden[:, None] == ends
        column = places(ends, source)
        feeds[owner[column >= 0], column[column >= 0]] = True
        row, column = places(hidden, pairs.ravel()), places(ends, pairs[:, ::-1].ravel())
        kept = np.flatnonzero((row >= 0) & (column >= 0))
        links = np.array([kept // 2, row[kept], column[kept]])
        degrees = graph.degrees(hidden) + 1, graph.degrees(ends) + 1
        return cls(pairs, hidden, ends, own, (owner, source), *degrees, present, feeds, links)


@dataclass(frozen=True, slots=True, eq=False)
class _States:
    """The area under each pair set: one state per pair set."""

    chosen: Floats  # (states, pairs): which operations a state carries out: 1, else 0
    hidden_degrees: Numbers  # (states, hidden), self-loop included
    end_degrees: Numbers  # (states, ends), self-loop included
    present: Bools  # (states, hidden): whether the target reads the row
    relevant: Bools  # (hidden, pairs): which operations may change the row itself


def _states(area: _Area, chosen: Bools, deletions: int) -> _States:
    """An operation that is carried out turns its pair over: from linked to not, or from not to linked."""
    carried = chosen.astype(np.float32)
    changes = carried.copy()
    changes[:, :deletions] *= -1
    at_hidden, at_ends = _incidence(area.pairs, area.hidden), _incidence(area.pairs, area.ends)
    at_partners = at_hidden * at_hidden[:, area.target, None]
    at_partners[:, area.target] = 0
    ever = area.feeds.copy()
    ever[area.links[1], area.links[2]] = True
    return _States(
        carried,
        area.hidden_degrees + (changes @ at_hidden).astype(np.int64),
        area.end_degrees + (changes @ at_ends).astype(np.int64),
        area.present ^ (carried @ at_partners > 0),
        (ever @ at_ends.T + at_hidden.T) > 0,
    )


def _incidence(pairs: Numbers, nodes: Numbers) -> Floats:
    """Which nodes are an end of which pair: 1, else 0. Sums of so few are exact in 32 bits, and fast."""
    incidence: Floats = ((pairs[:, 0, None] == nodes) | (pairs[:, 1, None] == nodes)).astype(np.float32)
    return incidence


def _distinct_rows(area: _Area, states: _States) -> tuple[tuple[Numbers, Numbers], Floats]:
    """Distinct hidden rows as (state, place) of one use, and how states are sums of them.

    A row is settled by its node, by the target's degree and by the operations that change it: whole numbers that have a
    bit for each operation stand for the last, so equal keys mean equal rows.
    """
    width, degrees = len(area.hidden), states.hidden_degrees[:, area.target, None]
    key, limit = (degrees - degrees.min()) * width + np.arange(width), (int(np.ptp(degrees)) + 1) * width
    for start in range(0, len(area.pairs), BITS):
        chosen, relevant = (table[:, start : start + BITS] for table in (states.chosen, states.relevant))
        history = (chosen @ (relevant * np.exp2(np.arange(chosen.shape[1]))).T).astype(np.int64)
        if limit.bit_length() + chosen.shape[1] > 62:
            limit, key = _numbered(key)
            _, history = _numbered(history)
        key, limit = history * limit + key, (int(history.max()) + 1) * limit
    used = np.flatnonzero(states.present)
    count, which = _numbered(key.ravel()[used])
    table, first = np.zeros((len(key), count), np.float32), np.empty(count, np.int64)
    table[used // width, which] = 1
    first[which] = used
    return np.divmod(first, width), table


def _numbered(keys: Numbers) -> tuple[int, Numbers]:
    """How many different keys there are, and the number of each."""
    values, numbers = np.unique(keys, return_inverse=True)
    return len(values), numbers.reshape(keys.shape)


def _pre_activations(
    rows: tuple[Numbers, Numbers], area: _Area, states: _States, settled: tuple[Floats, Floats], backbone: GCN
) -> tuple[Floats, Floats]:
    """Each row as relu(gain + slope x the target's input), scaled by the weight with which the target reads it."""
    (state, place), (operation, row, end) = rows, area.links
    feeds = area.feeds[place]
    changed, link = np.nonzero((place[:, None] == row) & (states.chosen[:, operation] > 0)[state])
    feeds[changed, end[link]] ^= True
    sums = settled[0][place] + (feeds / np.sqrt(states.end_degrees)[state]).astype(np.float32) @ settled[1]
    own = 1 / np.sqrt(states.hidden_degrees[state, place])
    read = own / np.sqrt(states.hidden_degrees[state, area.target])
    gains = (read * own).astype(np.float32)[:, None] * sums + np.outer(read, backbone.first_bias).astype(np.float32)
    return gains, np.square(read).astype(np.float32)


def _settled(area: _Area, graph: PrivateGraph, context: Readable, backbone: GCN) -> tuple[Floats, Floats]:
    """What each hidden row reads from nodes that no operation touches, the target left out; and the ends' inputs."""
    hidden, ends, (owner, source) = area.hidden, area.ends, area.reads
    reader = np.concatenate([owner, np.arange(len(hidden) + len(ends))])
    nodes = np.concatenate([source, hidden, ends])
    weights = (1 / np.sqrt(graph.degrees(nodes) + 1)).astype(np.float32)
    weights[(places(ends, nodes) >= 0) | (nodes == hidden[area.target])] = 0
    weights[len(nodes) - len(ends) :] = 1
    order = np.argsort(reader, kind="stable")
    borders = np.searchsorted(reader[order], np.arange(len(hidden) + len(ends) + 1))
    sums = _sums(context, backbone, nodes[order], weights[order], borders)
    return sums[: len(hidden)], sums[len(hidden) :]


def _sums(context: Readable, backbone: GCN, nodes: Numbers, weights: Floats, borders: Numbers) -> Floats:
    """Weighted sums of what the first layer makes of some nodes, from border to border; none is empty."""
    if context.inputs is not None:
        kept: Floats = np.add.reduceat(weights[:, None] * context.inputs[nodes], borders[:-1])
        return kept
    table, width, parts = context.features, backbone.number_of_features, []
    owner, entries = gather(table.indptr, nodes)
    row, stops = np.searchsorted(borders, owner, side="right") - 1, np.searchsorted(owner, borders)
    values, numbers, step = table.data[entries] * weights[owner], table.indices[entries], max(MOST_CELLS // width, 1)
    for start in range(0, len(borders) - 1, step):
        stop = min(start + step, len(borders) - 1)
        part = slice(stops[start], stops[stop])
        place = (row[part] - start) * width + numbers[part]
        summed = np.bincount(place, values[part], minlength=(stop - start) * width).reshape(-1, width)
        parts.append(summed.astype(np.float32) @ backbone.first)
    return np.concatenate(parts)


def _masked_inputs(context: Readable, backbone: GCN, candidates: Candidates) -> Floats:
    """The target's first-layer input under every feature set, one column each."""
    numbers, values = context.feature_row(candidates.target)
    features = np.array(candidates.features, np.int64)
    place = places(numbers, features)  # the last, nothing, where the target lacks the feature
    losses = np.concatenate([values, NOTHING])[place, None] * backbone.first[features]
    lost = losses.T @ membership(candidates.feature_sets, len(features)).T.astype(np.float32)
    own = _sums(context, backbone, np.array([candidates.target]), np.ones(1, np.float32), np.arange(2))
    return own.T - lost


def _class_scores(
    table: Floats, gains: Floats, slopes: Floats, inputs: Floats, backbone: GCN, deadline: Deadline
) -> Floats:
    """Each state's sum of relu(gain + slope x input), read out: (classes, states, masks).

    A mask moves a hidden unit so little that nearly every unit stays above 0 under all masks, or below. So a state's
    scores are weighted sums of 1, of the inputs, and of what the units that cross 0 would lack: one product of tables.
    Where such units are many, it costs less to add them up by rows first.
    """
    highest = inputs.max(axis=1)
    below = inputs - highest[:, None]
    peaks = np.maximum(gains + slopes[:, None] * highest, 0)
    alive = peaks > 0
    floors = np.where(alive, -peaks / slopes[:, None], -np.inf).astype(np.float32)
    crossing = floors > below.min(axis=1)
    reads, second = table * slopes, np.ascontiguousarray(backbone.second.T)[:, None]
    constant = (table @ (peaks @ backbone.second) + backbone.second_bias).T[:, :, None]
    count = crossing.sum(axis=1)
    rows = np.flatnonzero(count)
    by_rows = len(rows) * (constant.size + LOOK * (count.max() + 4))
    largest = count.sum() * max(constant.size + LOOK, below.shape[1])
    few = count.sum() * (constant.size + LOOK) <= by_rows and largest <= MOST_WEIGHTS
    row, unit = np.nonzero(crossing) if few else np.empty((2, 0), np.int64)
    linear, lacking = (reads @ alive.astype(np.float32)) * second, reads[:, row] * second[:, :, unit]
    lacked = np.maximum(floors[row, unit, None] - below[unit], 0)
    weights = np.concatenate([constant, linear, lacking], axis=2).reshape(constant.size, -1)
    product = weights @ np.concatenate([np.ones_like(below[:1]), below, lacked])
    scores: Floats = product.reshape(*constant.shape[:2], -1)
    for start in range(0, 0 if few else len(rows), CHUNK):
        deadline.check()
        part = rows[start : start + CHUNK]
        units = np.argsort(~crossing[part], axis=1, kind="stable")[:, : count[part].max()]
        lacked = np.maximum(np.take_along_axis(floors[part], units, axis=1)[:, :, None] - below[units], 0)
        lacking = np.matmul(backbone.second[units].transpose(0, 2, 1), lacked)
        scores += np.matmul(reads[:, part], lacking.transpose(1, 0, 2))
    deadline.check()
    return scores
