"""What a sketch reads of the private graph: its hidden pairs, and how many lead from each node to each class.

Zone: private
Claim: one edge is one hidden pair and moves two counts by one; a pair of the snapshot is no hidden pair on any graph.
Why: pairs of the snapshot are taken out first; each remaining edge is one place among all pairs, and is counted once at
    each of its ends.
Check: tests/gate/test_sketching.py::test_one_edge_moves_one_pair_and_two_counts
"""

import numpy as np
from numpy.typing import NDArray

from privcfs.private.graph import PrivateGraph
from privcfs.public.sketches.triangle import place_of
from privcfs.tables.neighbours import Neighbours

Numbers = NDArray[np.int64]


def hidden_pairs(graph: PrivateGraph, disclosed: Neighbours) -> Numbers:
    """The private edges that the snapshot does not show, smaller node first, in order."""
    nodes = np.arange(graph.number_of_nodes)
    one, other = graph.neighbours_of(nodes)
    pairs = np.column_stack([one, other])[one < other]
    hidden: Numbers = pairs[~disclosed.has_pairs(pairs)] if len(pairs) else pairs
    return hidden


def answers(hidden: Numbers, turned: Numbers, nodes: int) -> Numbers:
    """The places of pairs that randomised response shows: hidden pairs and turned ones, but not those that are both."""
    return np.setxor1d(place_of(hidden, nodes), turned, assume_unique=True)


def class_counts(hidden: Numbers, classes: Numbers, shape: tuple[int, int]) -> Numbers:
    """How many hidden pairs lead from each node to nodes of each class: (nodes, classes)."""
    counts = np.zeros(shape, np.int64)
    np.add.at(counts, (hidden[:, 0], classes[hidden[:, 1]]), 1)
    np.add.at(counts, (hidden[:, 1], classes[hidden[:, 0]]), 1)
    return counts
