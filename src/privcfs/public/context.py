"""Everything an outsider may know before a release: features, snapshot, frozen backbone, assumptions."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from privcfs.errors import ContextError, UnknownNode
from privcfs.files import EdgeListReader, Nodes, gather, read_features, read_node_ids
from privcfs.public.assumptions import DEFAULT, Assumption
from privcfs.public.backbones.backbone import Backbone

FeatureRow = tuple[NDArray[np.int32], NDArray[np.float32]]
DIGITS = re.compile(r"[0-9]{1,18}")


class Readable(Protocol):
    """What an evaluator reads besides edges: a feature table and a model, public or secret."""

    @property
    def features(self) -> sp.csr_array:
        """One row per node."""

    @property
    def backbone(self) -> Backbone:
        """The frozen model that decides."""

    def feature_row(self, node: int) -> FeatureRow:
        """The node's non-zero features and their values, in feature order."""

    def feature_rows(self, nodes: NDArray[np.int64]) -> sp.csr_array:
        """Some nodes' rows of the feature table, in the order given."""


class PublicContext:
    """The fixed public side of a vault; its digest stands on each release and is never computed from private data."""

    __slots__ = ("assumptions", "backbone", "digest", "features", "node_ids", "nodes", "snapshot")

    features: sp.csr_array
    snapshot: "Snapshot"
    backbone: Backbone
    node_ids: tuple[str, ...] | None
    nodes: Nodes
    assumptions: frozenset[Assumption]
    digest: str

    def __init__(
        self,
        features: str | Path | ArrayLike | sp.sparray | sp.spmatrix,
        snapshot: str | Path | ArrayLike,
        backbone: Backbone,
        *,
        node_ids: str | Path | Sequence[str] | None = None,
        assumptions: Iterable[Assumption] = DEFAULT,
    ) -> None:
        if not isinstance(backbone, Backbone):
            raise ContextError(f"backbone is a {type(backbone).__name__}; load it with privcfs.load_backbone first.")
        self.features = read_features(features, ContextError)
        self.backbone = backbone
        if self.features.shape[1] != backbone.number_of_features:
            raise ContextError(
                f"features has {self.features.shape[1]} columns, but the backbone was trained on "
                f"{backbone.number_of_features}; give the table it was trained with."
            )
        self.node_ids = None if node_ids is None else read_node_ids(node_ids, ContextError)
        self.nodes = self._nodes()
        pairs = EdgeListReader("snapshot", ContextError, self.nodes).read(snapshot)
        self.snapshot = Snapshot(pairs, self.nodes.count)
        self.assumptions = frozenset(assumptions)
        self.digest = self._digest(pairs)

    @property
    def number_of_nodes(self) -> int:
        """Public input: the rows of the feature table."""
        return self.nodes.count

    @property
    def number_of_classes(self) -> int:
        """Public: what the backbone can say."""
        return self.backbone.number_of_classes

    def node(self, target: int | str) -> int:
        """The node that an analyst means: text is a name where nodes have names, otherwise a number."""
        if isinstance(target, str) and self.nodes.numbers is not None:
            if target in self.nodes.numbers:
                return self.nodes.numbers[target]
            raise UnknownNode(f"target {target[:80]!r} is not a node; give a name of node_ids.")
        if not isinstance(target, str | int | np.integer):
            raise UnknownNode(f"target is a {type(target).__name__}; give a node number or name.")
        text = target if isinstance(target, str) else str(target) if abs(target) < 10**18 else "a huge number"
        if not isinstance(target, bool) and DIGITS.fullmatch(text) and int(text) < self.number_of_nodes:
            return int(text)
        raise UnknownNode(f"target {text[:80]!r} is not a node; give a number from 0 to {self.number_of_nodes - 1}.")

    def label(self, node: int) -> str:
        """The node's public name, or its number."""
        return str(node) if self.node_ids is None else self.node_ids[node]

    def feature_row(self, node: int) -> FeatureRow:
        """The node's non-zero features and their values, in feature order."""
        return row_of(self.features, node)

    def feature_rows(self, nodes: NDArray[np.int64]) -> sp.csr_array:
        """Some nodes' rows of the feature table, in the order given."""
        return rows_of(self.features, nodes)

    def _nodes(self) -> Nodes:
        count = int(self.features.shape[0])
        if self.node_ids is None:
            return Nodes(count)
        if len(self.node_ids) != count:
            raise ContextError(f"node_ids has {len(self.node_ids)} names, but features has {count} rows; match them.")
        return Nodes(count, {name: number for number, name in enumerate(self.node_ids)})

    def _digest(self, pairs: NDArray[np.int64]) -> str:
        hasher = hashlib.sha256(b"privcfs context 1\n")
        canonical = self.features.sorted_indices()
        for part in (
            np.array(canonical.shape, "<i8"),
            canonical.indptr.astype("<i8"),
            canonical.indices.astype("<i8"),
            canonical.data.astype("<f4"),
            pairs.astype("<i8"),
        ):
            hasher.update(f"{part.shape}\n".encode() + part.tobytes())
        words = [
            self.backbone.digest,
            *sorted(item.name for item in self.assumptions),
            *(self.node_ids or ()),
        ]
        hasher.update("\n".join(f"{len(word)}:{word}" for word in words).encode())
        return hasher.hexdigest()


def row_of(features: sp.csr_array, node: int) -> FeatureRow:
    """The node's non-zero features and their values, in feature order."""
    start, stop = features.indptr[node], features.indptr[node + 1]
    order = np.argsort(features.indices[start:stop], kind="stable")
    return features.indices[start:stop][order], features.data[start:stop][order]


def rows_of(features: sp.csr_array, nodes: NDArray[np.int64]) -> sp.csr_array:
    """Some nodes' rows of a feature table, in the order given."""
    starts = features.indptr
    _, entries = gather(starts, nodes)
    ends = np.concatenate([[0], np.cumsum(starts[nodes + 1] - starts[nodes])])
    shape = (len(nodes), features.shape[1])
    return sp.csr_array((features.data[entries], features.indices[entries], ends), shape=shape)


class Snapshot:
    """The public pairs. A pair here may or may not be an edge of the private graph."""

    __slots__ = ("_adjacency", "pairs")

    pairs: NDArray[np.int64]
    _adjacency: sp.csr_array

    def __init__(self, pairs: NDArray[np.int64], number_of_nodes: int) -> None:
        self.pairs = pairs
        both = np.concatenate([pairs, pairs[:, ::-1]])
        entries = (np.ones(len(both), np.int8), (both[:, 0], both[:, 1]))
        self._adjacency = sp.csr_array(entries, shape=(number_of_nodes, number_of_nodes)).sorted_indices()

    def neighbours(self, node: int) -> tuple[int, ...]:
        """Public neighbours by ascending node number."""
        start, stop = self._adjacency.indptr[node], self._adjacency.indptr[node + 1]
        return tuple(int(other) for other in self._adjacency.indices[start:stop])
