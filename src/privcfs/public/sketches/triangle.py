"""The unordered pairs of n nodes in their public order: (0, 1), (0, 2), ..., (n - 2, n - 1)."""

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]


def number_of_pairs(nodes: int) -> int:
    """How many unordered pairs there are."""
    return nodes * (nodes - 1) // 2


def place_of(pairs: Numbers, nodes: int) -> Numbers:
    """Where each pair, smaller node first, stands among all pairs."""
    return _before(pairs[:, 0], nodes) + pairs[:, 1] - pairs[:, 0] - 1


def pair_at(places: Numbers, nodes: int) -> Numbers:
    """The pairs at these places, smaller node first."""
    first = np.searchsorted(_before(np.arange(nodes), nodes), places, side="right") - 1
    return np.column_stack([first, places - _before(first, nodes) + first + 1])


def packed(places: Numbers, nodes: int) -> bytes:
    """One bit for each pair of nodes, 1 at the given places: as long for every set of pairs of so many nodes."""
    bits = np.zeros((number_of_pairs(nodes) + 7) // 8, np.uint8)
    np.bitwise_or.at(bits, places // 8, (128 >> (places % 8)).astype(np.uint8))
    return bits.tobytes()


def unpacked(bits: bytes) -> Numbers:
    """The places at which a bit is 1, ascending."""
    return np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8)))


def _before(node: Numbers, nodes: int) -> Numbers:
    """How many pairs have a smaller first node."""
    return node * nodes - node * (node + 1) // 2
