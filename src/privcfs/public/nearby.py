"""The part of a public context near some nodes, and the public model's logits there.

The part has the nodes themselves and their snapshot neighbours, with all snapshot pairs that one of the nodes is part
of. If these are all nodes of the context, the part is the whole context. Of a hub only some pairs are read.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.public.context import PublicContext
from privcfs.public.per_context import per_context
from privcfs.tables.neighbours import Neighbours, distinct
from privcfs.tables.store import taken

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
# Of the snapshot pairs of one node at most so many are read, at equal distances in its list of neighbours.
HUB = 256
# The logits of all nodes are kept for contexts with at most so many nodes and neighbours.
MOST_KEPT = 1 << 19


class Nearby(NamedTuple):
    """A part of a context in numbers of its own: features, pairs, and which rows are the nodes that were asked for."""

    features: sp.csr_array
    pairs: Numbers
    rows: Numbers


def nearby(context: PublicContext, nodes: Numbers) -> Nearby:
    """The part near these nodes, which are ascending."""
    if len(nodes) == context.number_of_nodes:
        return Nearby(context.features, context.snapshot.pairs, nodes)
    position, neighbours = some_neighbours(context.snapshot, nodes)
    near, place = np.unique(np.concatenate([nodes, neighbours]), return_inverse=True)
    rows = place[: len(nodes)]
    pairs = distinct(np.sort(np.column_stack([rows[position], place[len(nodes) :]]), axis=1), len(near))
    return Nearby(context.feature_rows(near), pairs, rows)


def some_neighbours(snapshot: Neighbours, nodes: Numbers) -> tuple[Numbers, Numbers]:
    """Snapshot neighbours of nodes: for each entry the position of its node, and the neighbour.

    Of a node with more than HUB neighbours, HUB are taken at equal distances.
    """
    degrees = snapshot.degrees(nodes)
    if degrees.max(initial=0) <= HUB:
        return snapshot.neighbours_of(nodes)
    counts = np.minimum(degrees, HUB)
    position = np.repeat(np.arange(len(nodes)), counts)
    rank = np.arange(len(position)) - (np.cumsum(counts) - counts)[position]
    entries = snapshot.starts[nodes][position] + rank * degrees[position] // counts[position]
    return position, np.asarray(taken(snapshot.others, entries), np.int64)


def snapshot_logits(context: PublicContext, nodes: Numbers) -> Floats:
    """The public model's logits of nodes on the snapshot; of a large context, on the snapshot near them."""
    if context.number_of_nodes + len(context.snapshot.others) <= MOST_KEPT:
        return _all_logits(context)[nodes]
    near = nearby(context, nodes)
    return context.model.logits(near.features, near.pairs)[near.rows]


@per_context(maxsize=1)
def _all_logits(context: PublicContext) -> Floats:
    return context.model.logits(context.features, context.snapshot.pairs)
