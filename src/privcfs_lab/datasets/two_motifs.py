"""Whole graphs with a known reason for their label: a random tree with a house, or with a cycle of five, on it.

In the style of BA-2motifs (Luo and others 2020), made here with a fixed seed. A house is such a cycle with one chord,
so the chord decides: delete it, and a house is a cycle. Each graph has a public readout node that is joined to all
others, so that classifying a graph is classifying that node.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

TREE, MOTIF = 20, 5
NODES = TREE + MOTIF + 1
READOUT = NODES - 1
CHORD = (TREE, TREE + 2)


@final
@dataclass(frozen=True, slots=True, eq=False)
class MotifGraph:
    """Pairs among the members are secret; those with the readout node are not."""

    members: NDArray[np.int64]
    label: int  # 1 for a house

    @property
    def pairs(self) -> NDArray[np.int64]:
        """With the readout node's."""
        readout = np.array([(node, READOUT) for node in range(READOUT)], np.int64)
        return np.concatenate([self.members, readout])


def features() -> sp.csr_array:
    """The same for every graph: a constant, and which node reads out."""
    table = np.ones((NODES, 2), np.float32)
    table[:, 1] = 0
    table[READOUT] = (0, 1)
    return sp.csr_array(table)


def motif_graphs(count: int, seed: int = 0) -> list[MotifGraph]:
    """Half of them with a house."""
    rng = np.random.default_rng(seed)
    return [_graph(rng, number % 2) for number in range(count)]


def _graph(rng: np.random.Generator, label: int) -> MotifGraph:
    ends: list[int] = [0, 1]
    pairs = {(0, 1)}
    for node in range(2, TREE):
        other = int(rng.choice(ends))
        pairs.add((other, node))
        ends += [other, node]
    ring = [(TREE + i, TREE + (i + 1) % MOTIF) for i in range(MOTIF)]
    pairs |= {(min(one), max(one)) for one in ring} | {(int(rng.integers(TREE)), TREE + 4)}
    if label:
        pairs.add(CHORD)
    return MotifGraph(np.array(sorted(pairs), np.int64), label)
