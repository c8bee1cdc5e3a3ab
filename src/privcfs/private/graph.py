"""The secret: an undirected simple graph as sorted neighbour lists.

Zone: private
Claim: holds edges and never shows them; a release depends on them only through an evaluator's sealed outcomes.
Why: sealed; the number of nodes is public input and never inferred from edges; loading faults precede serving.
Check: tests/private/test_graph.py::test_every_way_in_gives_the_same_graph
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from privcfs.errors import GraphError
from privcfs.files import EdgeListReader, Nodes, gather, read_node_ids
from privcfs.private.sealed import Sealed

Indices = NDArray[np.int64]


@final
class PrivateGraph(Sealed):
    """Secret edges over public nodes 0 to number_of_nodes - 1.

    Directed input means the undirected graph of its pairs; a weight means an edge unless it is 0.
    """

    __slots__ = ("_budget", "_indices", "_starts", "number_of_nodes")

    def __init__(self, pairs: Indices, number_of_nodes: int) -> None:
        """`pairs` are checked and sorted already: use one of the from_ methods."""
        both = np.concatenate([pairs, pairs[:, ::-1]])
        order = np.lexsort((both[:, 1], both[:, 0]))
        self._indices = np.ascontiguousarray(both[order, 1])
        self._starts = np.searchsorted(both[order, 0], np.arange(number_of_nodes + 1))
        self._budget: str | None = None
        self.number_of_nodes = number_of_nodes

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
        if not sp.issparse(matrix) or matrix.shape != (number_of_nodes, number_of_nodes):
            raise GraphError(f"edges must be a sparse matrix of shape ({number_of_nodes}, {number_of_nodes}).")
        entries = sp.coo_array(matrix)
        kept = entries.data != 0
        rows = np.column_stack([entries.coords[0][kept], entries.coords[1][kept]]).astype(np.int64)
        return cls._read(rows, Nodes(_count(number_of_nodes)), simplify)

    @classmethod
    def from_pyg(cls, data: Any, *, number_of_nodes: int, simplify: bool = False) -> "PrivateGraph":
        """From a PyTorch Geometric `Data`: edge_index without edges of edge_weight 0, either direction counts."""
        edge_index = np.asarray(getattr(data, "edge_index", None))
        if edge_index.ndim != 2 or edge_index.shape[0] != 2:
            raise GraphError(f"edges.edge_index has shape {edge_index.shape}; it must be (2, number of edges).")
        weight = getattr(data, "edge_weight", None)
        kept = np.ones(edge_index.shape[1], np.bool_) if weight is None else np.asarray(weight) != 0
        return cls._read(edge_index.T[kept], Nodes(_count(number_of_nodes)), simplify)

    @classmethod
    def from_networkx(
        cls, graph: Any, *, number_of_nodes: int, node_ids: Sequence[str] | None = None, simplify: bool = False
    ) -> "PrivateGraph":
        """From a networkx graph whose nodes are numbers, or names of `node_ids`; an edge of weight 0 is none."""
        nodes = _nodes(number_of_nodes, node_ids)
        try:
            listed = [(u, w) for u, w, weight in graph.edges(data="weight", default=1) if weight != 0]
            rows = [[nodes.number(str(u)), nodes.number(str(w))] for u, w in listed]
        except KeyError:
            raise GraphError("edges names a node that is neither a number nor in node_ids; pass node_ids.") from None
        return cls._read(np.array(rows, np.int64).reshape(-1, 2), nodes, simplify)

    @classmethod
    def _read(cls, source: Path | ArrayLike, nodes: Nodes, simplify: bool) -> "PrivateGraph":
        return cls(EdgeListReader("edges", GraphError, nodes, simplify, may_simplify=True).read(source), nodes.count)

    def bind(self, graph_id: str) -> None:
        """Ties this graph to one budget; a second budget for the same graph would double what may be learned."""
        if self._budget not in (None, graph_id):
            raise GraphError("this graph already spends from another ledger; one private graph has one budget.")
        self._budget = graph_id

    def neighbours(self, node: int) -> Indices:
        """Private neighbours by ascending node number."""
        return self._indices[self._starts[node] : self._starts[node + 1]]

    def neighbours_of(self, nodes: Indices) -> tuple[Indices, Indices]:
        """The neighbour lists of several nodes: position in `nodes`, neighbour."""
        owner, entries = gather(self._starts, nodes)
        return owner, self._indices[entries]

    def degrees(self, nodes: Indices) -> Indices:
        """How many private neighbours each node has."""
        counts: Indices = self._starts[nodes + 1] - self._starts[nodes]
        return counts

    def has_edge(self, u: int, w: int) -> bool:
        """Whether the pair is a private edge."""
        row = self.neighbours(u)
        position = int(np.searchsorted(row, w))
        return position < len(row) and int(row[position]) == w


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
