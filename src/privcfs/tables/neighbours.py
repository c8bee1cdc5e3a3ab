"""Graphs as neighbour lists: one value for the public snapshot and, sealed, for the private graph."""

from collections.abc import Mapping
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import ContextError
from privcfs.tables.store import PAIRS, checksums_of, taken

Numbers = NDArray[np.int64]
MOST_PAIRS = 2**24  # upper bound on the pairs of a graph that is looked at as a whole
ABSENT = np.array([-1])


@final
class Neighbours:
    """An undirected simple graph over nodes 0 to n - 1: for each node its neighbours in ascending order.

    `starts` has n + 1 entries; the neighbours of node v are `others[starts[v]:starts[v + 1]]`. Both arrays may be in
    memory or mapped from a store, which knows their checksums already.
    """

    __slots__ = ("_checksums", "_pairs", "others", "starts")

    starts: Numbers
    others: NDArray[np.integer]

    def __init__(
        self, starts: Numbers, others: NDArray[np.integer], checksums: Mapping[str, str] | None = None
    ) -> None:
        self.starts, self.others, self._checksums = starts, others, checksums
        self._pairs: Numbers | None = None

    @classmethod
    def of_pairs(cls, pairs: Numbers, count: int) -> "Neighbours":
        """From pairs of `count` nodes that are known to be distinct, without loops, and in range."""
        keys = np.sort(np.concatenate([pairs[:, 0] * count + pairs[:, 1], pairs[:, 1] * count + pairs[:, 0]]))
        nodes, others = np.divmod(keys, count)
        return cls(np.searchsorted(nodes, np.arange(count + 1)), others)

    @property
    def checksums(self) -> Mapping[str, str]:
        """The checksums that a store of these lists has, computed where no store named them."""
        if self._checksums is None:
            self._checksums = checksums_of(PAIRS, {"starts": self.starts, "others": self.others})
        return self._checksums

    @property
    def pairs(self) -> Numbers:
        """All pairs (u < w), sorted, in memory: for what looks at the whole of a small graph."""
        if len(self.others) > 2 * MOST_PAIRS:
            raise ContextError(
                f"snapshot has more than {MOST_PAIRS} pairs, and this looks at all of them; ask a vault, which looks "
                "near the target."
            )
        if self._pairs is None:
            nodes = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
            forward = nodes < self.others
            self._pairs = np.column_stack([nodes[forward], self.others[forward]])
        return self._pairs

    def neighbours(self, node: int) -> tuple[int, ...]:
        """The neighbours of one node in ascending order."""
        return tuple(self.others[self.starts[node] : self.starts[node + 1]].tolist())

    def neighbours_of(self, nodes: Numbers) -> tuple[Numbers, Numbers]:
        """The neighbours of several nodes, concatenated: for each entry its position in `nodes`, and the neighbour."""
        position, entries = gather(self.starts, nodes)
        return position, np.asarray(taken(self.others, entries), np.int64)

    def degrees(self, nodes: Numbers) -> Numbers:
        """How many neighbours each node has."""
        counts: Numbers = self.starts[nodes + 1] - self.starts[nodes]
        return counts

    def has_pairs(self, pairs: Numbers) -> NDArray[np.bool_]:
        """Whether each pair is in the graph; looked up at the end that has fewer neighbours."""
        one, other = pairs.T
        few = self.degrees(one) <= self.degrees(other)
        fewer, more = np.where(few, one, other), np.where(few, other, one)
        position, neighbour = self.neighbours_of(fewer)
        found = np.zeros(len(pairs), np.bool_)
        found[position[neighbour == more[position]]] = True
        return found


def gather(starts: NDArray[np.integer], rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For some rows of a table stored row after row: each entry's position in `rows`, and where the entry stands."""
    begins, counts = starts[rows], starts[rows + 1] - starts[rows]
    owner = np.repeat(np.arange(len(rows)), counts)
    return owner, np.arange(len(owner)) + (begins - np.cumsum(counts) + counts)[owner]


def places(nodes: NDArray[np.integer], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each wanted node stands among sorted ones; -1 for those that do not."""
    place = np.searchsorted(nodes, wanted)
    return np.where(np.concatenate([nodes, ABSENT])[place] == wanted, place, -1)


def among(listed: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each wanted node is among those listed, in any order; `np.isin`, without its cost for short arrays."""
    return places(np.sort(listed), wanted) >= 0


def distinct(pairs: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """Each pair once, in order."""
    keys = np.sort(pairs[:, 0] * count + pairs[:, 1])
    return np.column_stack(np.divmod(keys[np.diff(keys, prepend=-1) > 0], count))
