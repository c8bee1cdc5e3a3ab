"""A worst case made of real parts: a two-layer GCN and two graphs that differ in one edge.

Around the target stand leaves, an anchor and one secret leaf. Every leaf pulls the decision by +2 or -2; anchor and
secret leaf make the sum +1 with the secret edge and -1 without it. So with the edge, deleting a leaf that pulls up
flips the decision and deleting one that pulls down does not; without the edge it is the other way round. Every
candidate but the empty one moves by the whole range, and one edge does it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import exp
from typing import final

import numpy as np

from privcfs.gate.accounting import Limit
from privcfs.gate.ledger.memory import PLENTY, MemoryLedger
from privcfs.gate.method import Method
from privcfs.gate.vault import Vault
from privcfs.private.graph import PrivateGraph
from privcfs.private.utilities.gated import Gated
from privcfs.public.candidates.pairs import OneHop
from privcfs.public.candidates.product import Product
from privcfs.public.context import PublicContext
from privcfs.public.models.gcn import GCN
from privcfs_lab.audit.checks import Pairs

Build = Callable[[PrivateGraph], Method]


@final
@dataclass(frozen=True)
class HostileWorld:
    """`up` leaves flip when deleted from the graph with the secret edge, `down` leaves from the one without.

    Leaves are numbered from 0, then come the anchor, the secret leaf and the target.
    """

    up: int = 1
    down: int = 20

    @property
    def leaves(self) -> int:
        """Candidates, the empty one not counted."""
        return self.up + self.down

    @property
    def secret(self) -> int:
        """The node at the other end of the secret edge."""
        return self.leaves + 1

    @property
    def target(self) -> int:
        """The node that is explained."""
        return self.leaves + 2

    @property
    def rule(self) -> Product:
        """Delete one leaf, or nothing."""
        return Product(pairs=OneHop(self.leaves), most_pairs=1, most_features=0)

    @cached_property
    def context(self) -> PublicContext:
        """Public: every pull, the model, and the pairs with the leaves."""
        pulls = np.array([*[2] * self.up, *[-2] * self.down, 2 * (self.down - self.up) - 1, 2, 0], np.float32)
        features = np.column_stack([np.maximum(pulls, 0), np.maximum(-pulls, 0)])
        model = GCN(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32))
        return PublicContext(features, [(leaf, self.target) for leaf in range(self.leaves)], model)

    def pairs(self, *missing: int) -> Pairs:
        """The private graph: the target's edges, but for those to `missing` nodes."""
        return np.array([(other, self.target) for other in range(self.target) if other not in missing], np.int64)

    def graph(self, *missing: int) -> PrivateGraph:
        """A fresh copy of it."""
        return PrivateGraph.from_edges(self.pairs(*missing), number_of_nodes=self.target + 1)

    def vault(self, *missing: int, build: Build, limit: Limit = PLENTY) -> Vault:
        """A vault for it; `build` makes the method, and may peek."""
        graph = self.graph(*missing)
        return Vault(graph, self.context, ledger=MemoryLedger(limit), method=build(graph))

    def ratio(self, epsilon: float) -> float:
        """The ratio for one leaf against the rest in closed form: it tends to e**epsilon as leaves are added."""
        grid = Gated().grid(self.rule.caps)
        weight, empty = exp(epsilon / 2), exp(epsilon * 0.2 / (2 * float(grid.range)))
        here = self.up * weight + self.down + empty
        there = self.up + self.down * weight + empty
        return weight * max(there / here, here / there)


ONE_AGAINST_MANY = HostileWorld(1, 20)
HALF_AGAINST_HALF = HostileWorld(10, 10)
