"""The hidden rows that a target of a two-layer GCN may read, under every set of edge operations.

Zone: private
Claim: for every pair set, the target's second layer sums exactly the hidden rows that `distinct_hidden_rows` assigns to
    it, and `scaled_pre_activations` are the pre-activations of these rows on the graph after the operations.
Why: the hidden row of a node depends on its neighbours and on their degrees. An operation changes the degrees of the
    two ends of its pair and the link between them, so it changes only hidden rows of an end or next to an end. Two pair
    sets with the same operations near a node and the same degree of the target therefore give it the same hidden row.
Check: tests/private/test_evaluators.py::test_both_evaluators_equal_a_full_forward_pass
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privcfs.private.allowance import Allowance
from privcfs.private.evaluators.gcn_first_layer import first_layer_sums
from privcfs.private.evaluators.gcn_work import work
from privcfs.private.graph import PrivateGraph
from privcfs.public.context import Readable
from privcfs.public.models.gcn import GCN
from privcfs.tables.neighbours import places

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
BITS = 52  # Operations encoded in one number: a product of 64-bit floats is exact for whole numbers of up to 52 bits.
KEY_BITS = 62  # Keys of hidden rows stay below 2**62, so that 64-bit integers hold them.


@dataclass(frozen=True, slots=True, eq=False)
class Area:
    """The nodes that matter for one target, with the state of the private graph before any operation.

    Hidden nodes are those whose hidden row may reach the target: itself, its neighbours, and partners it may be joined
    to. End nodes are the ends of all pairs, except the target. Both are sorted by node number. Degrees include the
    self-loop.
    """

    pairs: Numbers  # (operations, 2): the pair that each operation deletes or adds.
    hidden_nodes: Numbers
    end_nodes: Numbers
    target_row: int  # The position of the target in `hidden_nodes`.
    neighbour_lists: tuple[Numbers, Numbers]  # For each neighbour of a hidden node: position of that node, neighbour.
    hidden_degrees: Numbers
    end_degrees: Numbers
    read_by_target: Bools  # (hidden nodes): whether the target aggregates the hidden row.
    adjacent: Bools  # (hidden nodes, end nodes): whether the hidden node aggregates the end node.
    link_operations: Numbers  # (3, links): an operation, and the hidden node and the end node that its pair links.

    @classmethod
    def around(cls, graph: PrivateGraph, target: int, pairs: Numbers, allowance: Allowance) -> "Area":
        """Reads the area of one target from the private graph; `pairs` has one row for each operation."""
        allowance.spend(work(read=int(graph.degrees(np.array([target]))[0]) + 2 * len(pairs)))
        hidden_nodes, end_nodes = _nodes_in_reach(graph.neighbours(target), target, pairs)
        target_row = int(np.searchsorted(hidden_nodes, target))
        read = int(graph.degrees(hidden_nodes).sum())
        allowance.spend(work(read=read, entries=len(hidden_nodes) * len(end_nodes)))
        neighbour_lists = graph.neighbours_of(hidden_nodes)
        read_by_target = np.zeros(len(hidden_nodes), np.bool_)
        read_by_target[np.searchsorted(hidden_nodes, graph.neighbours(target))] = True
        read_by_target[target_row] = True
        return cls(
            pairs=pairs,
            hidden_nodes=hidden_nodes,
            end_nodes=end_nodes,
            target_row=target_row,
            neighbour_lists=neighbour_lists,
            hidden_degrees=graph.degrees(hidden_nodes) + 1,
            end_degrees=graph.degrees(end_nodes) + 1,
            read_by_target=read_by_target,
            adjacent=_adjacent(hidden_nodes, end_nodes, neighbour_lists),
            link_operations=_link_operations(pairs, hidden_nodes, end_nodes),
        )


def _nodes_in_reach(neighbours: Numbers, target: int, pairs: Numbers) -> tuple[Numbers, Numbers]:
    """The hidden nodes and the end nodes of an area, both sorted."""
    listed = pairs.tolist()
    partners = {end for pair in listed if target in pair for end in pair}
    ends = {end for pair in listed for end in pair} - {target}
    hidden = partners | {target, *neighbours.tolist()}
    return np.array(sorted(hidden), np.int64), np.array(sorted(ends), np.int64)


def _adjacent(hidden_nodes: Numbers, end_nodes: Numbers, neighbour_lists: tuple[Numbers, Numbers]) -> Bools:
    """Whether each hidden node aggregates each end node: as its neighbour, or as itself through the self-loop."""
    owner, neighbour = neighbour_lists
    adjacent: Bools = hidden_nodes[:, None] == end_nodes
    column = places(end_nodes, neighbour)
    is_end = column >= 0
    adjacent[owner[is_end], column[is_end]] = True
    return adjacent


def _link_operations(pairs: Numbers, hidden_nodes: Numbers, end_nodes: Numbers) -> Numbers:
    """Each operation whose pair links a hidden node to an end node, in either direction: operation, row, column."""
    row = places(hidden_nodes, pairs.ravel())
    column = places(end_nodes, pairs[:, ::-1].ravel())
    links = np.flatnonzero((row >= 0) & (column >= 0))
    operation = links // 2
    return np.array([operation, row[links], column[links]])


@dataclass(frozen=True, slots=True, eq=False)
class States:
    """The area after the operations of each pair set; there is one state for each pair set."""

    operations: Floats  # (states, operations): 1 where a state carries out an operation, and 0 elsewhere.
    hidden_degrees: Numbers  # (states, hidden nodes), self-loop included.
    end_degrees: Numbers  # (states, end nodes), self-loop included.
    read_by_target: Bools  # (states, hidden nodes): whether the target aggregates the hidden row.
    affects: Bools  # (hidden nodes, operations): whether an operation may change the hidden row.


def states_after(area: Area, operations: Bools, deletions: int, allowance: Allowance) -> States:
    """Carries out the operations of each state: a deletion removes its edge, an addition inserts it.

    `operations` has shape (states, operations) and contains only operations that change the private graph. The first
    `deletions` of them are deletions.
    """
    hidden, ends, (states, pairs) = len(area.hidden_nodes), len(area.end_nodes), operations.shape
    products = states * pairs * (2 * hidden + ends) + hidden * ends * pairs
    allowance.spend(work(entries=states * (pairs + 2 * hidden + ends) + (hidden + ends) * pairs, products=products))
    carried_out = operations.astype(np.float32)
    degree_changes = carried_out.copy()
    degree_changes[:, :deletions] *= -1
    at_hidden, at_ends = _incidence(area.pairs, area.hidden_nodes), _incidence(area.pairs, area.end_nodes)
    joins_target = at_hidden * at_hidden[:, area.target_row, None]
    joins_target[:, area.target_row] = 0
    ever_adjacent = area.adjacent.copy()
    ever_adjacent[area.link_operations[1], area.link_operations[2]] = True
    return States(
        operations=carried_out,
        hidden_degrees=area.hidden_degrees + (degree_changes @ at_hidden).astype(np.int64),
        end_degrees=area.end_degrees + (degree_changes @ at_ends).astype(np.int64),
        read_by_target=area.read_by_target ^ (carried_out @ joins_target > 0),
        affects=(ever_adjacent @ at_ends.T + at_hidden.T) > 0,
    )


def _incidence(pairs: Numbers, nodes: Numbers) -> Floats:
    """The incidence matrix (pairs, nodes): 1 where a node is an end of a pair, and 0 elsewhere.

    Products with it are sums of few ones; 32-bit floats hold these exactly and multiply faster than integers.
    """
    incidence: Floats = ((pairs[:, 0, None] == nodes) | (pairs[:, 1, None] == nodes)).astype(np.float32)
    return incidence


class DistinctRows(NamedTuple):
    """The distinct hidden rows of all states, and which of them the target aggregates in each state."""

    state: Numbers  # For each distinct row, a state that has it.
    row: Numbers  # For each distinct row, the position of its node in the area's hidden nodes.
    read: Floats  # (states, distinct rows): 1 where the target aggregates the row, and 0 elsewhere.


def distinct_hidden_rows(area: Area, states: States, allowance: Allowance) -> DistinctRows:
    """Finds the distinct hidden rows among those that the target aggregates in any state."""
    rows_per_state = len(area.hidden_nodes)
    read_positions = np.flatnonzero(states.read_by_target)
    _count_keys(states, len(read_positions), allowance)
    count, distinct_row = _numbered(_row_keys(area, states).ravel()[read_positions])
    allowance.spend(work(entries=2 * len(states.operations) * count))
    read = np.zeros((len(states.operations), count), np.float32)
    read[read_positions // rows_per_state, distinct_row] = 1
    one_use = np.empty(count, np.int64)
    one_use[distinct_row] = read_positions
    state, row = np.divmod(one_use, rows_per_state)
    return DistinctRows(state, row, read)


def _count_keys(states: States, read: int, allowance: Allowance) -> None:
    """Counts the making of all keys and the sorting of `read` of them; blocks after the first are sorted as a whole."""
    operations, rows = states.operations.shape[1], states.hidden_degrees.size
    blocks = -(-operations // BITS)
    keys = read + 2 * rows * max(blocks - 1, 0)
    allowance.spend(work(keys=keys, entries=rows * (blocks + 1), products=2 * rows * operations))


def _row_keys(area: Area, states: States) -> Numbers:
    """A key (states, hidden nodes) of each hidden row: equal keys mean equal rows.

    The key encodes the node, the degree of the target and the operations that affect the row. Blocks of operations are
    appended one after another; where the key would become too long, it is replaced by the number of its value.
    """
    rows_per_state = len(area.hidden_nodes)
    target_degrees = states.hidden_degrees[:, area.target_row, None]
    keys: Numbers = (target_degrees - target_degrees.min()) * rows_per_state + np.arange(rows_per_state)
    bound = (int(np.ptp(target_degrees)) + 1) * rows_per_state
    for start in range(0, len(area.pairs), BITS):
        operations, affects = states.operations[:, start : start + BITS], states.affects[:, start : start + BITS]
        histories = _histories(operations, affects)
        if bound.bit_length() + operations.shape[1] > KEY_BITS:
            bound, keys = _numbered(keys)
            _, histories = _numbered(histories)
        keys = histories * bound + keys
        bound = (int(histories.max()) + 1) * bound
    return keys


def _histories(operations: Floats, affects: Bools) -> Numbers:
    """The operations of each state that affect each hidden row, as the bits of one number: (states, hidden nodes)."""
    bit_values = np.exp2(np.arange(operations.shape[1]))
    histories: Numbers = (operations @ (affects * bit_values).T).astype(np.int64)
    return histories


def _numbered(keys: Numbers) -> tuple[int, Numbers]:
    """The number of different keys, and for each key the rank of its value among them."""
    values, ranks = np.unique(keys, return_inverse=True)
    return len(values), ranks.reshape(keys.shape)


class FirstLayer(NamedTuple):
    """First-layer inputs that are the same in every state."""

    fixed_sums: Floats  # (hidden nodes, units): sum over neighbours other than end nodes and the target.
    end_inputs: Floats  # (end nodes, units): the input of each end node.


def first_layer_of(area: Area, graph: PrivateGraph, context: Readable, model: GCN, allowance: Allowance) -> FirstLayer:
    """Sums the first-layer inputs of neighbours that no operation touches, each divided by the root of its degree."""
    hidden_nodes, end_nodes = area.hidden_nodes, area.end_nodes
    owner, neighbour = area.neighbour_lists
    segments = len(hidden_nodes) + len(end_nodes)
    allowance.spend(work(read=len(owner) + segments))
    segment = np.concatenate([owner, np.arange(segments)])
    nodes = np.concatenate([neighbour, hidden_nodes, end_nodes])
    weights = (1 / np.sqrt(graph.degrees(nodes) + 1)).astype(np.float32)
    is_end, is_target = places(end_nodes, nodes) >= 0, nodes == hidden_nodes[area.target_row]
    weights[is_end | is_target] = 0
    weights[len(nodes) - len(end_nodes) :] = 1
    order = np.argsort(segment, kind="stable")
    borders = np.searchsorted(segment[order], np.arange(segments + 1))
    sums = first_layer_sums(context, model, nodes[order], weights[order], borders, allowance)
    return FirstLayer(sums[: len(hidden_nodes)], sums[len(hidden_nodes) :])


class PreActivations(NamedTuple):
    """Pre-activations of hidden rows as linear functions of the target's own first-layer input.

    They are scaled by the weight with which the target aggregates the row, which is positive and so commutes with the
    relu. Under a mask, the scaled hidden row is relu(offset + slope x the target's masked input).
    """

    offsets: Floats  # (rows, units)
    slopes: Floats  # (rows)


def scaled_pre_activations(
    rows: DistinctRows, area: Area, states: States, first_layer: FirstLayer, model: GCN, allowance: Allowance
) -> PreActivations:
    """The pre-activation of each distinct hidden row, without the target's input, and the weight of that input."""
    distinct, ends, units = len(rows.row), len(area.end_nodes), len(model.first_bias)
    links = area.link_operations.shape[1]
    entries = distinct * (2 * ends + 2 * links + 4 * units) + len(states.operations) * links
    allowance.spend(work(entries=entries, products=distinct * ends * units))
    adjacent = _adjacent_after(rows, area, states)
    end_weights = (adjacent / np.sqrt(states.end_degrees)[rows.state]).astype(np.float32)
    sums = first_layer.fixed_sums[rows.row] + end_weights @ first_layer.end_inputs
    own_scale = 1 / np.sqrt(states.hidden_degrees[rows.state, rows.row])
    read_weight = own_scale / np.sqrt(states.hidden_degrees[rows.state, area.target_row])
    aggregated = (read_weight * own_scale).astype(np.float32)[:, None] * sums
    bias = np.outer(read_weight, model.first_bias).astype(np.float32)
    return PreActivations(aggregated + bias, np.square(read_weight).astype(np.float32))


def _adjacent_after(rows: DistinctRows, area: Area, states: States) -> Bools:
    """Whether the node of each distinct row aggregates each end node in its state: an operation reverses a link."""
    operation, hidden_row, end = area.link_operations
    adjacent = area.adjacent[rows.row]
    is_carried_out = (states.operations[:, operation] > 0)[rows.state]
    changed_row, link = np.nonzero((rows.row[:, None] == hidden_row) & is_carried_out)
    adjacent[changed_row, end[link]] ^= True
    return adjacent
