"""The pairs that a sketch of a large graph covers: each node's likeliest partners, found without looking at all pairs.

Nodes stand in a few public orders, and each order is cut into leaves. A pair belongs to the first order that has both
of its nodes in one leaf, and to no other: so whatever is done leaf by leaf is done once for each pair. Within a leaf
each node names its likeliest partners among the pairs that belong there, and a pair is covered if either end names it.
Pairs of the snapshot are never covered. All of this follows from public data.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.beliefs.imagined import Beliefs
from privcfs.public.context import PublicContext
from privcfs.public.sketches.orders import Places, order_by_neighbours, order_by_vectors
from privcfs.public.sketches.profiles import Vectors, shown_neighbours, vectors_of
from privcfs.tables.neighbours import Neighbours, places

Numbers = NDArray[np.int64]
Floats = NDArray[np.float32]
# Nodes of a leaf; so many orders by vectors, and as many by neighbours where a snapshot shows pairs.
LEAF, ORDERS = 1024, 2
# Leaves that are drawn and kept together.
TOGETHER = 64
IMPOSSIBLE = np.float32(-1e9)
# Fewer held-out pairs than this say nothing about the share that is covered; then this share is assumed.
LEAST_HELD_OUT, ASSUMED = 20, 0.3


class Leaf(NamedTuple):
    """Some covered pairs.

    Attributes:
        nodes: The nodes of the leaf, ascending.
        first: The smaller node of each covered pair, by its position in `nodes`.
        second: The larger one.
        log_weights: The log weight of each pair by the link model, without the popularity of its ends.
        sums: For each node the sum of the weights of its covered pairs, times the popularity of the other end.
        found: How many of the held-out public pairs would have been covered.
    """

    nodes: Numbers
    first: Numbers
    second: Numbers
    log_weights: Floats
    sums: Floats
    found: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class Likeliest:
    """The covered pairs of a context.

    Attributes:
        snapshot: The public pairs.
        vectors: What is known of nodes.
        orders: The place of each node in each order.
        partners: How many partners each node names in all orders together.
    """

    snapshot: Neighbours
    vectors: Vectors
    orders: tuple[Places, ...]
    partners: int

    @classmethod
    def of(cls, context: PublicContext, beliefs: Beliefs, partners: int) -> "Likeliest":
        """The likeliest partners under public beliefs."""
        vectors, snapshot = vectors_of(context, beliefs), context.snapshot
        count = len(snapshot.starts) - 1
        orders = [
            order_by_vectors(vectors, LEAF, _rng(context, number)) for number in range(ORDERS if count > LEAF else 1)
        ]
        if len(snapshot.others) and count > LEAF:
            numbers = range(ORDERS, 2 * ORDERS)
            orders += [order_by_neighbours(snapshot, vectors.held_out, _rng(context, number)) for number in numbers]
        return cls(snapshot, vectors, tuple(orders), partners)

    @property
    def digest(self) -> str:
        """Equal for equal vectors and orders, on which depends which leaf a pair belongs to."""
        hasher = hashlib.sha256(f"{self.partners} {LEAF} {TOGETHER}".encode())
        for array in (self.vectors.entries, *self.orders):
            hasher.update(np.ascontiguousarray(array).data)
        return hasher.hexdigest()

    @property
    def leaves(self) -> int:
        """The number of leaves of each order."""
        return ceil(len(self.vectors.entries) / LEAF)

    @property
    def pieces(self) -> int:
        """How many pieces there are, of up to TOGETHER leaves each."""
        return len(self.orders) * ceil(self.leaves / TOGETHER)

    def piece(self, number: int) -> Iterator[Leaf]:
        """The leaves of one piece."""
        which, part = divmod(number, ceil(self.leaves / TOGETHER))
        order = np.argsort(self.orders[which][_within(self.orders[which], part)])
        members = np.flatnonzero(_within(self.orders[which], part))[order]
        for start in range(0, len(members), LEAF):
            yield self._leaf(which, np.sort(members[start : start + LEAF]))

    def named(self, which: int) -> int:
        """How many partners a node names in one order; in all orders together `partners`."""
        share, more = divmod(self.partners, len(self.orders))
        return share + (which < more)

    def _leaf(self, which: int, nodes: Numbers) -> Leaf:
        entries = self.vectors.entries[nodes].astype(np.float32)
        weights = (entries @ entries.T) * self.vectors.unit
        popularity = self.vectors.popularity[nodes]
        scores = weights + np.log(popularity)
        scores[self._barred(which, nodes)] = IMPOSSIBLE
        first, second = np.nonzero(np.triu(_named(scores, self.named(which)), 1))
        is_held_out = _among(self.vectors.held_out, nodes[first], nodes[second], len(self.vectors.entries))
        found = int(is_held_out.sum())
        first, second = first[~is_held_out], second[~is_held_out]
        logs = weights[first, second]
        weight = np.exp(logs)
        sums = np.bincount(first, weight * popularity[second], len(nodes))
        sums += np.bincount(second, weight * popularity[first], len(nodes))
        return Leaf(nodes, first, second, logs, sums.astype(np.float32), found)

    def _barred(self, which: int, nodes: Numbers) -> NDArray[np.bool_]:
        """Pairs of a leaf that do not belong there: loops, pairs of an earlier order, and pairs of the snapshot."""
        barred = np.eye(len(nodes), dtype=np.bool_)
        for earlier in self.orders[:which]:
            leaf = earlier[nodes] // LEAF
            barred |= leaf[:, None] == leaf
        position, other = shown_neighbours(self.snapshot, nodes, self.vectors.held_out, every=True)
        inside = places(nodes, other)
        barred[position[inside >= 0], inside[inside >= 0]] = True
        return barred


def coverage(found: int, held_out: int) -> float | None:
    """The estimated share of hidden pairs that are covered; None where too few pairs were held out to tell."""
    return found / held_out if held_out >= LEAST_HELD_OUT else None


def _named(scores: Floats, most: int) -> NDArray[np.bool_]:
    """For each node its `most` best partners, and each pair that either end names: a symmetric matrix."""
    named = np.zeros(scores.shape, np.bool_)
    most = min(most, len(scores))
    best = np.argpartition(scores, len(scores) - most, axis=1)[:, len(scores) - most :]
    np.put_along_axis(named, best, values=True, axis=1)
    named &= scores > IMPOSSIBLE
    either: NDArray[np.bool_] = named | named.T
    return either


def _within(places_of_nodes: Places, part: int) -> NDArray[np.bool_]:
    """Which nodes stand in one piece of an order."""
    low = part * TOGETHER * LEAF
    inside: NDArray[np.bool_] = (places_of_nodes >= low) & (places_of_nodes < low + TOGETHER * LEAF)
    return inside


def _among(pairs: Numbers, first: Numbers, second: Numbers, count: int) -> NDArray[np.bool_]:
    """Whether each pair, smaller node first, is one of `pairs`, which are in order."""
    return places(pairs[:, 0] * count + pairs[:, 1], first * count + second) >= 0


def _rng(context: PublicContext, number: int) -> np.random.Generator:
    return np.random.default_rng([context.seed, 9, number])
