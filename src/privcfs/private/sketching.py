"""What a sketch reads of the private graph: its hidden pairs, and how many lead from each node to each class.

Zone: private
Claim: one edge is one hidden pair and moves two counts by one; a pair of the snapshot is no hidden pair on any graph.
Why: pairs of the snapshot are taken out first; each remaining edge is one place among all pairs, or one pair of a leaf,
    and is counted once at each of its ends.
Check: tests/gate/test_sketching.py::test_one_edge_moves_one_pair_and_two_counts
"""

import numpy as np
from numpy.typing import NDArray

from privcfs.private.graph import PrivateGraph
from privcfs.public.sketches.triangle import place_of
from privcfs.tables.neighbours import Neighbours, places

Numbers = NDArray[np.int64]


def hidden_pairs(graph: PrivateGraph, disclosed: Neighbours) -> Numbers:
    """The private edges that the snapshot does not show, smaller node first, in order."""
    nodes = np.arange(graph.number_of_nodes)
    one, other = _hidden_neighbours(graph, disclosed, nodes)
    return np.column_stack([one, other])[one < other]


def answers(hidden: Numbers, turned: Numbers, nodes: int) -> Numbers:
    """The places of pairs that randomised response shows: hidden pairs and turned ones, but not those that are both."""
    return np.setxor1d(place_of(hidden, nodes), turned, assume_unique=True)


def answers_within(
    graph: PrivateGraph, nodes: Numbers, pairs: tuple[Numbers, Numbers], turned: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Which covered pairs of a leaf randomised response shows.

    Args:
        graph: The private graph.
        nodes: The nodes of the leaf, ascending.
        pairs: The positions of the ends of covered pairs, none of which the snapshot shows.
        turned: Which of these pairs their coins turn round.
    """
    position, other = graph.neighbours_of(nodes)
    place = places(nodes, other)
    is_edge = np.zeros((len(nodes), len(nodes)), np.bool_)
    is_edge[position[place >= 0], place[place >= 0]] = True
    shown: NDArray[np.bool_] = is_edge[pairs] ^ turned
    return shown


def class_counts(
    graph: PrivateGraph, disclosed: Neighbours, nodes: Numbers, said: NDArray[np.integer], classes: int
) -> Numbers:
    """How many hidden pairs lead from each of some nodes to nodes of each class: (nodes, classes).

    `said` is the class of every node of the graph.
    """
    position, other = _hidden_neighbours(graph, disclosed, nodes)
    found = np.bincount(position * classes + said[other], minlength=len(nodes) * classes)
    return found.reshape(len(nodes), classes)


def _hidden_neighbours(graph: PrivateGraph, disclosed: Neighbours, nodes: Numbers) -> tuple[Numbers, Numbers]:
    """Hidden neighbours of nodes: for each entry the position of its node, and the neighbour."""
    position, other = graph.neighbours_of(nodes)
    shown_at, shown = disclosed.neighbours_of(nodes)
    count = graph.number_of_nodes
    is_shown = places(shown_at * count + shown, position * count + other) >= 0
    return position[~is_shown], other[~is_shown]
