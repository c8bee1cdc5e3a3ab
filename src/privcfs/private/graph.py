"""The secret: an undirected simple graph as sorted neighbour lists.

Zone: private
Claim: holds edges and never shows them; a release depends on them only through an evaluator's sealed outcomes. The
    own edges of a node are cut out into a value that holds nothing else.
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
from privcfs.tables.named_columns import Links
from privcfs.tables.names import Nodes, read_node_ids
from privcfs.tables.neighbours import Neighbours, distinct
from privcfs.tables.store import PAIRS, open_store

Indices = NDArray[np.int64]


@final
class OwnEdges(Sealed):
    """The private edges of one node, and nothing else: what own-edge reading hands to an evaluator.

    Args:
        node: The node's number.
        neighbours: Its private neighbours, ascending.
    """

    __slots__ = ("neighbours", "node")

    def __init__(self, node: int, neighbours: Indices) -> None:
        self.node, self.neighbours = node, neighbours


@final
class PrivateGraph(Sealed):
    """The secret edges of an undirected graph over public nodes 0 to number_of_nodes - 1.

    Make one with a `from_` method. An edge in either direction is the undirected pair of its ends, and an entry of
    weight 0 is no edge. The object is sealed: it prints, compares, hashes and pickles to nothing.

    Args:
        lists: Checked and sorted neighbour lists.
    """

    __slots__ = ("_budget", "_lists", "number_of_nodes")

    def __init__(self, lists: Neighbours) -> None:
        self._lists = lists
        self._budget: str | None = None
        self.number_of_nodes = len(lists.starts) - 1

    @classmethod
    def from_snapshot(cls, snapshot: Neighbours) -> "PrivateGraph":
        """Takes a public snapshot for the graph, so that public data can be evaluated like private data.

        Args:
            snapshot: The neighbour lists of the snapshot.

        Returns:
            The graph, sealed.
        """
        return cls(snapshot)

    @classmethod
    def from_pairs(cls, pairs: Indices, number_of_nodes: int) -> "PrivateGraph":
        """Makes a graph from pairs that are already checked.

        Args:
            pairs: An (m, 2) array of distinct pairs of node numbers in range, without self-loops.
            number_of_nodes: The public number of nodes. It is never inferred from edges.

        Returns:
            The graph, sealed.
        """
        return cls(Neighbours.of_pairs(pairs, number_of_nodes))

    @classmethod
    def from_store(cls, path: str | Path, *, number_of_nodes: int) -> "PrivateGraph":
        """Maps a store that `privcfs import` wrote, so that a release reads only what is near its target.

        Args:
            path: The store, a folder whose name ends in .store.
            number_of_nodes: The public number of nodes. It is never inferred from edges.

        Returns:
            The graph, sealed.

        Raises:
            GraphError: The store is damaged, or has another number of nodes.
        """
        store = open_store(Path(path), PAIRS, GraphError)
        if store.rows != _count(number_of_nodes):
            raise GraphError(f"edges has {store.rows} nodes, but number_of_nodes is {number_of_nodes}; match them.")
        return cls(Neighbours(store.arrays["starts"], store.arrays["others"], store.checksums))

    @classmethod
    def from_edges(cls, edges: ArrayLike, *, number_of_nodes: int, simplify: bool = False) -> "PrivateGraph":
        """Makes a graph from an array of pairs.

        Args:
            edges: An (m, 2) array of node numbers.
            number_of_nodes: The public number of nodes. It is never inferred from edges.
            simplify: Whether to drop self-loops and merge repeated pairs. By default False: they are refused.

        Returns:
            The graph, sealed.

        Raises:
            GraphError: The edges cannot be read, name unknown nodes, or contain loops or repeated pairs.
        """
        return cls._read(edges, Nodes(_count(number_of_nodes)), simplify)

    @classmethod
    def from_csv(
        cls,
        path: str | Path | Links,
        *,
        number_of_nodes: int,
        node_ids: str | Path | Sequence[str] | None = None,
        simplify: bool = False,
    ) -> "PrivateGraph":
        """Reads a CSV file of rows source,target or source,target,weight; a header source,target is skipped.

        Args:
            path: The file, or some columns of it (`Links`).
            number_of_nodes: The public number of nodes. It is never inferred from edges.
            node_ids: The public names of the nodes in order: a list, or a file with one name a line. By default None:
                edges then name nodes by number.
            simplify: Whether to drop self-loops and merge repeated pairs. By default False: they are refused.

        Returns:
            The graph, sealed.

        Raises:
            GraphError: The edges cannot be read, name unknown nodes, or contain loops or repeated pairs.
        """
        source = path if isinstance(path, Links) else Path(path)
        return cls._read(source, _nodes(number_of_nodes, node_ids), simplify)

    @classmethod
    def from_parquet(
        cls,
        path: str | Path,
        *,
        number_of_nodes: int,
        node_ids: str | Path | Sequence[str] | None = None,
        simplify: bool = False,
    ) -> "PrivateGraph":
        """Reads a Parquet table whose columns are source, target and optionally a weight.

        Args:
            path: The file; its name ends in .parquet.
            number_of_nodes: The public number of nodes. It is never inferred from edges.
            node_ids: The public names of the nodes in order: a list, or a file with one name a line. By default None:
                edges then name nodes by number.
            simplify: Whether to drop self-loops and merge repeated pairs. By default False: they are refused.

        Returns:
            The graph, sealed.

        Raises:
            GraphError: The edges cannot be read, name unknown nodes, or contain loops or repeated pairs.
        """
        path = Path(path)
        if path.suffix != ".parquet":
            raise GraphError(f"edges file {path.name} does not end in .parquet; name the Parquet file.")
        return cls._read(path, _nodes(number_of_nodes, node_ids), simplify)

    @classmethod
    def from_scipy(cls, matrix: Any, *, number_of_nodes: int, simplify: bool = False) -> "PrivateGraph":
        """Makes a graph from a SciPy sparse adjacency matrix, whose non-zero entries are edges.

        Args:
            matrix: The square matrix.
            number_of_nodes: The public number of nodes. It is never inferred from edges.
            simplify: Whether to drop self-loops and merge repeated pairs. By default False: they are refused.

        Returns:
            The graph, sealed.

        Raises:
            GraphError: The edges cannot be read, name unknown nodes, or contain loops or repeated pairs.
        """
        nodes = Nodes(_count(number_of_nodes))
        return cls._read(matrix_rows(matrix, nodes, GraphError), nodes, simplify)

    @classmethod
    def from_pyg(cls, data: Any, *, number_of_nodes: int, simplify: bool = False) -> "PrivateGraph":
        """Makes a graph from the `edge_index` of a PyTorch Geometric `Data`, without edges of `edge_weight` 0.

        Args:
            data: The `Data` object.
            number_of_nodes: The public number of nodes. It is never inferred from edges.
            simplify: Whether to drop self-loops and merge repeated pairs. By default False: they are refused.

        Returns:
            The graph, sealed.

        Raises:
            GraphError: The edges cannot be read, name unknown nodes, or contain loops or repeated pairs.
        """
        return cls._read(edge_index_rows(data, GraphError), Nodes(_count(number_of_nodes)), simplify)

    @classmethod
    def from_networkx(
        cls, graph: Any, *, number_of_nodes: int, node_ids: Sequence[str] | None = None, simplify: bool = False
    ) -> "PrivateGraph":
        """Makes a graph from a networkx graph, without edges of weight 0.

        Args:
            graph: The graph, whose nodes are numbers or names of `node_ids`.
            number_of_nodes: The public number of nodes. It is never inferred from edges.
            node_ids: The public names of the nodes in order. By default None: nodes are then numbers.
            simplify: Whether to drop self-loops and merge repeated pairs. By default False: they are refused.

        Returns:
            The graph, sealed.

        Raises:
            GraphError: The edges cannot be read, name unknown nodes, or contain loops or repeated pairs.
        """
        nodes = _nodes(number_of_nodes, node_ids)
        return cls._read(networkx_rows(graph, nodes, GraphError), nodes, simplify)

    @classmethod
    def _read(cls, source: Path | Links | ArrayLike, nodes: Nodes, simplify: bool) -> "PrivateGraph":
        reader = EdgeListReader("edges", GraphError, nodes, simplify, may_simplify=True)
        return cls.from_pairs(reader.read(source), nodes.count)

    def bind(self, graph_id: str) -> None:
        """Ties this object to one ledger, because two budgets for one graph would double what may be learned of it.

        Args:
            graph_id: The id of the ledger.

        Raises:
            GraphError: The graph is tied to another ledger.
        """
        if self._budget not in (None, graph_id):
            raise GraphError("this graph already spends from another ledger; one private graph has one budget.")
        self._budget = graph_id

    def fingerprint(self, key: bytes) -> str:
        """A keyed digest of the edges, by which the owner's list of graphs recognises them.

        It is the same in memory and in a store. Isolated nodes at the end of the numbering make no difference. It is
        computed before a vault serves, and stays in the owner's files.

        Args:
            key: The owner's secret key, without which the digest says nothing.

        Returns:
            The digest in hexadecimal digits.
        """
        return hmac.digest(key, self._lists.checksums["others"].encode(), "sha256").hex()

    def is_empty(self) -> bool:
        """Whether there is no edge. The owner's list of graphs cannot tell graphs without edges apart."""
        return len(self._lists.others) == 0

    def neighbours(self, node: int) -> Indices:
        """The private neighbours of one node.

        Args:
            node: The node's number.

        Returns:
            Node numbers, ascending.
        """
        start, stop = self._lists.starts[node], self._lists.starts[node + 1]
        return np.asarray(self._lists.others[start:stop], np.int64)

    def own(self, node: int) -> OwnEdges:
        """Cuts out the edges of one node.

        Args:
            node: The node's number.

        Returns:
            A sealed copy of these edges, through which no other edge can be read.
        """
        return OwnEdges(node, self.neighbours(node).copy())

    def includes(self, other: "PrivateGraph") -> bool:
        """Whether every edge of another graph over the same nodes is an edge of this one. For the owner, while loading.

        Args:
            other: The other graph.

        Returns:
            Whether it is a part of this graph.
        """
        return bool(self.has_edges(other._lists.pairs).all())

    def with_public(self, snapshot: Neighbours) -> "PrivateGraph":
        """The same graph together with public pairs.

        Args:
            snapshot: The neighbour lists of the public pairs.

        Returns:
            A graph of its own, sealed.
        """
        pairs = np.concatenate([self._lists.pairs, snapshot.pairs])
        return PrivateGraph.from_pairs(distinct(pairs, self.number_of_nodes), self.number_of_nodes)

    def neighbours_of(self, nodes: Indices) -> tuple[Indices, Indices]:
        """The private neighbours of several nodes, concatenated.

        Args:
            nodes: Node numbers.

        Returns:
            For each entry the position of its node in `nodes`, and the neighbour.
        """
        return self._lists.neighbours_of(nodes)

    def degrees(self, nodes: Indices) -> Indices:
        """The private degrees of nodes.

        Args:
            nodes: Node numbers.

        Returns:
            The number of neighbours of each.
        """
        return self._lists.degrees(nodes)

    def has_edges(self, pairs: Indices) -> NDArray[np.bool_]:
        """Whether pairs are private edges.

        Args:
            pairs: An (m, 2) array of node numbers, the smaller one first.

        Returns:
            One truth value for each pair.
        """
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
