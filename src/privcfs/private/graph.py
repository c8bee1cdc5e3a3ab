"""The secret: an undirected simple graph as sorted neighbour lists.

Zone: private
Claim: holds edges and never shows them; a release depends on them only through an evaluator's sealed outcomes.
Why: sealed; the number of nodes is public input and never inferred from edges; loading faults precede serving.
Check: tests/private/test_graph.py::test_every_way_in_gives_the_same_graph
"""

import hmac
from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privcfs.errors import GraphError
from privcfs.private.sealed import Sealed
from privcfs.tables.edges import EdgeListReader, edge_index_rows, matrix_rows, networkx_rows
from privcfs.tables.names import Nodes, read_node_ids
from privcfs.tables.neighbours import Neighbours
from privcfs.tables.store import PAIRS, open_store

Indices = NDArray[np.int64]


@final
class PrivateGraph(Sealed):
    """Secret edges over public nodes 0 to number_of_nodes - 1.

    Directed input means the undirected graph of its pairs; a weight means an edge unless it is 0.
    """

    __slots__ = ("_budget", "_lists", "number_of_nodes")

    def __init__(self, lists: Neighbours) -> None:
        """Checked and sorted neighbour lists, in memory or mapped: use one of the from_ methods."""
        self._lists = lists
        self._budget: str | None = None
        self.number_of_nodes = len(lists.starts) - 1

    @classmethod
    def from_snapshot(cls, snapshot: Neighbours) -> "PrivateGraph":
        """A public snapshot as if it were the graph: for rehearsals."""
        return cls(snapshot)

    @classmethod
    def from_pairs(cls, pairs: Indices, number_of_nodes: int) -> "PrivateGraph":
        """From pairs that are known to be different, without loops, and in range."""
        return cls(Neighbours.of_pairs(pairs, number_of_nodes))

    @classmethod
    def from_store(cls, path: str | Path, *, number_of_nodes: int) -> "PrivateGraph":
        """From a store that `privcfs import` wrote: mapped, so that a release reads only what is near its target."""
        store = open_store(Path(path), PAIRS, GraphError)
        if store.rows != _count(number_of_nodes):
            raise GraphError(f"edges has {store.rows} nodes, but number_of_nodes is {number_of_nodes}; match them.")
        return cls(Neighbours(store.arrays["starts"], store.arrays["others"], store.checksums))

    @classmethod
    def from_edges(cls, edges: ArrayLike, *, number_of_nodes: int, simplify: bool = False) -> "PrivateGraph":
        """From an (m, 2) array of node numbers."""
        return cls._read(edges, Nodes(_count(number_of_nodes)), simplify)

    @classmethod
    def from_csv(
        cls,
        path: str | Path,
        *,
        number_of_nodes: int,
        node_ids: str | Path | Sequence[str] | None = None,
        simplify: bool = False,
    ) -> "PrivateGraph":
        """From rows source,target or source,target,weight; a header source,target is passed over."""
        return cls._read(Path(path), _nodes(number_of_nodes, node_ids), simplify)

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        *,
        number_of_nodes: int,
        node_ids: str | Path | Sequence[str] | None = None,
        simplify: bool = False,
    ) -> "PrivateGraph":
        """From a Parquet table whose columns are source, target and at most a weight."""
        path = Path(path)
        if path.suffix != ".parquet":
            raise GraphError(f"edges file {path.name} does not end in .parquet; name the Parquet file.")
        return cls._read(path, _nodes(number_of_nodes, node_ids), simplify)

    @classmethod
    def from_scipy(cls, matrix: Any, *, number_of_nodes: int, simplify: bool = False) -> "PrivateGraph":
        """From a SciPy sparse adjacency matrix: non-zero entries are edges, either direction counts."""
        nodes = Nodes(_count(number_of_nodes))
        return cls._read(matrix_rows(matrix, nodes, GraphError), nodes, simplify)

    @classmethod
    def from_pyg(cls, data: Any, *, number_of_nodes: int, simplify: bool = False) -> "PrivateGraph":
        """From a PyTorch Geometric `Data`: edge_index without edges of edge_weight 0, either direction counts."""
        return cls._read(edge_index_rows(data, GraphError), Nodes(_count(number_of_nodes)), simplify)

    @classmethod
    def from_networkx(
        cls, graph: Any, *, number_of_nodes: int, node_ids: Sequence[str] | None = None, simplify: bool = False
    ) -> "PrivateGraph":
        """From a networkx graph whose nodes are numbers, or names of `node_ids`; an edge of weight 0 is none."""
        nodes = _nodes(number_of_nodes, node_ids)
        return cls._read(networkx_rows(graph, nodes, GraphError), nodes, simplify)

    @classmethod
    def _read(cls, source: Path | ArrayLike, nodes: Nodes, simplify: bool) -> "PrivateGraph":
        reader = EdgeListReader("edges", GraphError, nodes, simplify, may_simplify=True)
        return cls.from_pairs(reader.read(source), nodes.count)

    def bind(self, graph_id: str) -> None:
        """Ties this graph to one budget; a second budget for the same graph would double what may be learned."""
        if self._budget not in (None, graph_id):
            raise GraphError("this graph already spends from another ledger; one private graph has one budget.")
        self._budget = graph_id

    def fingerprint(self, key: bytes) -> str:
        """The same text for the same edges, in memory or in a store; says nothing to whoever has not the key.

        Nodes without edges after the last one that has some make no difference. It is for the owner's own list of
        graphs, before a vault serves, and never leaves the owner's files.
        """
        return hmac.digest(key, self._lists.checksums["others"].encode(), "sha256").hex()

    def is_empty(self) -> bool:
        """Whether there is no edge: such a graph is like any other without edges. For the owner's list too."""
        return len(self._lists.others) == 0

    def neighbours(self, node: int) -> Indices:
        """Private neighbours by ascending node number."""
        start, stop = self._lists.starts[node], self._lists.starts[node + 1]
        return np.asarray(self._lists.others[start:stop], np.int64)

    def neighbours_of(self, nodes: Indices) -> tuple[Indices, Indices]:
        """The neighbours of several nodes, concatenated: for each entry its position in `nodes`, and the neighbour."""
        return self._lists.neighbours_of(nodes)

    def degrees(self, nodes: Indices) -> Indices:
        """How many private neighbours each node has."""
        return self._lists.degrees(nodes)

    def has_edges(self, pairs: Indices) -> NDArray[np.bool_]:
        """Whether each pair is a private edge."""
        return self._lists.has_pairs(pairs)


def _count(number_of_nodes: int) -> int:
    if isinstance(number_of_nodes, bool) or not isinstance(number_of_nodes, int | np.integer) or number_of_nodes < 1:
        raise GraphError(f"number_of_nodes is {number_of_nodes!r}; give the public number of nodes, at least 1.")
    return int(number_of_nodes)


def _nodes(number_of_nodes: int, node_ids: str | Path | Sequence[str] | None) -> Nodes:
    if node_ids is None:
        return Nodes(_count(number_of_nodes))
    names = read_node_ids(node_ids, GraphError)
    if len(names) != _count(number_of_nodes):
        raise GraphError(f"node_ids has {len(names)} names, but number_of_nodes is {number_of_nodes}; match them.")
    return Nodes(number_of_nodes, {name: number for number, name in enumerate(names)})
