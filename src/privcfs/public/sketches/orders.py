"""Public orders of all nodes in which likely partners stand near each other. Slices of an order are its leaves.

One kind of order follows short vectors: all nodes are halved again and again, each time at the median of a direction
between two of the nodes at hand. The other kind follows the snapshot: nodes that share neighbours often have the same
least number among their neighbours, if all nodes are numbered at random. Everything is a whole number, so that an order
is the same wherever it is computed.
"""

import numpy as np
from numpy.typing import NDArray

from privcfs.public.sketches.profiles import Vectors, shown_neighbours
from privcfs.tables.neighbours import Neighbours

Numbers = NDArray[np.int64]
Places = NDArray[np.int32]
# So many nodes are looked at together.
BLOCK = 1 << 16
# Heights along a direction lie between minus and plus this.
HIGHEST = 1 << 24


def order_by_vectors(vectors: Vectors, leaf: int, rng: np.random.Generator) -> Places:
    """The place of each node, so that nodes of one leaf have similar vectors."""
    entries, count = vectors.entries, len(vectors.entries)
    order, bounds = rng.permutation(count).astype(np.int32), np.array([0, count])
    while np.diff(bounds).max() > leaf:
        lengths = np.diff(bounds)
        ends = (order[bounds[:-1] + (rng.random(len(lengths)) * lengths).astype(np.int64)] for _ in range(2))
        one, other = (entries[end].astype(np.float32) for end in ends)
        segment = np.repeat(np.arange(len(lengths)), lengths)
        heights = _heights(entries, order, one - other, segment)
        order = order[np.argsort(segment * (2 * HIGHEST) + heights, kind="stable")]
        middles = leaf * -(-(bounds[:-1] + lengths // 2) // leaf)
        bounds = np.unique(np.concatenate([bounds, middles.clip(max=bounds[1:])]))
    return _places(order)


def order_by_neighbours(snapshot: Neighbours, held_out: Numbers, rng: np.random.Generator) -> Places:
    """The place of each node, so that nodes of one leaf share neighbours in the snapshot."""
    count = len(snapshot.starts) - 1
    least = np.zeros(count, np.int64)
    for _ in range(2):  # the second number parts nodes that have the first in common
        numbers = rng.permutation(count)
        least *= count
        for start in range(0, count, BLOCK):
            nodes = np.arange(start, min(start + BLOCK, count))
            position, other = shown_neighbours(snapshot, nodes, held_out)
            found = numbers[nodes]
            np.minimum.at(found, position, numbers[other])
            least[nodes] += found
    return _places(np.argsort(least, kind="stable").astype(np.int32))


def _heights(entries: NDArray[np.int8], order: Places, directions: NDArray[np.float32], segment: Numbers) -> Numbers:
    """How far each node lies along the direction of its segment: whole numbers, exact in any order of summation."""
    heights = np.empty(len(order), np.int64)
    for start in range(0, len(order), BLOCK):
        block = slice(start, start + BLOCK)
        heights[block] = np.einsum("ij,ij->i", entries[order[block]].astype(np.float32), directions[segment[block]])
    return heights


def _places(order: Places) -> Places:
    places = np.empty(len(order), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    return places
