"""What is believed of the hidden pairs of every node where a sketch is known, and how pairs are sampled from it."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.tables.neighbours import Neighbours, gather

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
# So many nodes are looked at together.
BLOCK = 1 << 16


@final
@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Beliefs about the hidden pairs of every node, given a sketch.

    Attributes:
        believed: The graph that guides: the pairs of the snapshot, and hidden pairs that are likelier than not.
        listed: Other pairs that are worth listing, as neighbour lists.
        chances: The probability of each entry of `listed.others`.
        rest: The expected number of all further hidden pairs of each node, by class of the other end.
    """

    believed: Neighbours
    listed: Neighbours
    chances: Floats
    rest: Floats

    def expected(self) -> NDArray[np.float64]:
        """The expected number of hidden pairs of each node that are not part of the believed graph."""
        found = np.empty(len(self.rest))
        for start in range(0, len(found), BLOCK):
            starts = self.listed.starts[start : start + BLOCK + 1]
            owner, chances = (
                np.repeat(np.arange(len(starts) - 1), np.diff(starts)),
                self.chances[starts[0] : starts[-1]],
            )
            rest = self.rest[start : start + BLOCK].sum(axis=1)
            found[start : start + BLOCK] = np.bincount(owner, chances, len(starts) - 1) + rest
        return found

    def expected_at(self, node: int) -> float:
        """The same for one node."""
        entries = slice(self.listed.starts[node], self.listed.starts[node + 1])
        return float(self.chances[entries].sum() + self.rest[node].sum())

    def sample(self, nodes: Numbers, rng: np.random.Generator) -> tuple[Numbers, Numbers]:
        """One sample of the listed pairs of each node: its position in `nodes`, ascending, and the other end."""
        position, entries = gather(self.listed.starts, nodes)
        drawn = rng.random(len(entries)) < self.chances[entries]
        return position[drawn], np.asarray(self.listed.others[entries[drawn]], np.int64)
