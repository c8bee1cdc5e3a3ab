"""Everything an outsider may know before a release: features, snapshot, frozen backbone, assumptions."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from privcfs.errors import ContextError, UnknownNode
from privcfs.public.assumptions import DEFAULT, Assumption
from privcfs.public.backbones.backbone import Backbone
from privcfs.public.interventions import Intervention
from privcfs.tables.edges import EdgeListReader
from privcfs.tables.features import TableNames, read_features
from privcfs.tables.names import Nodes, read_node_ids
from privcfs.tables.neighbours import Neighbours, gather
from privcfs.tables.store import FEATURES, PAIRS, SUFFIX, checksums_of, open_store

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

    @property
    def inputs(self) -> NDArray[np.float32] | None:
        """What the model's first layer makes of each node, where that is kept."""

    def feature_row(self, node: int) -> FeatureRow:
        """The node's non-zero features and their values, in feature order."""

    def feature_rows(self, nodes: NDArray[np.int64]) -> sp.csr_array:
        """Some nodes' rows of the feature table, in the order given."""


class FeatureRows:
    """Reads rows of a feature table, in memory or mapped."""

    __slots__ = ()

    features: sp.csr_array

    def feature_row(self, node: int) -> FeatureRow:
        """The node's non-zero features and their values, in feature order."""
        start, stop = self.features.indptr[node], self.features.indptr[node + 1]
        order = np.argsort(self.features.indices[start:stop], kind="stable")
        return self.features.indices[start:stop][order], self.features.data[start:stop][order]

    def feature_rows(self, nodes: NDArray[np.int64]) -> sp.csr_array:
        """Some nodes' rows of the feature table, in the order given."""
        starts = self.features.indptr
        _, entries = gather(starts, nodes)
        ends = np.concatenate([[0], np.cumsum(starts[nodes + 1] - starts[nodes])])
        shape = (len(nodes), self.features.shape[1])
        return sp.csr_array((self.features.data[entries], self.features.indices[entries], ends), shape=shape)


class PublicContext(FeatureRows):
    """The fixed public side of a vault; its digest stands on each release and is never computed from private data."""

    __slots__ = ("assumptions", "backbone", "digest", "features", "inputs", "node_ids", "nodes", "snapshot")

    features: sp.csr_array
    snapshot: Neighbours
    backbone: Backbone
    inputs: NDArray[np.float32] | None
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
        self.node_ids = None if node_ids is None else read_node_ids(node_ids, ContextError)
        self.features = read_features(features, ContextError, TableNames(nodes=self.node_ids or ()))
        self.backbone = backbone
        if self.features.shape[1] != backbone.number_of_features:
            raise ContextError(
                f"features has {self.features.shape[1]} columns, but the backbone was trained on "
                f"{backbone.number_of_features}; give the table it was trained with."
            )
        self.inputs = backbone.inputs(self.features)
        self.nodes = nodes_of(self.features, self.node_ids)
        self.snapshot = read_snapshot(snapshot, self.nodes)
        self.assumptions = frozenset(assumptions)
        stored = isinstance(features, str | Path) and Path(features).suffix == SUFFIX
        checksums = open_store(Path(str(features)), FEATURES, ContextError).checksums if stored else None
        self.digest = self._digest(checksums or _checksums(self.features))

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

    def labels(self, nodes: Iterable[int]) -> dict[int, str]:
        """The public names of those nodes that exist; none where nodes have no names."""
        names = self.node_ids or ()
        return {node: names[node] for node in sorted(nodes) if 0 <= node < len(names)}

    def named(self, intervention: Intervention) -> Intervention:
        """The same intervention, which now carries the public names of its nodes."""
        return replace(intervention, names=self.labels(intervention.nodes))

    def _digest(self, checksums: Mapping[str, str]) -> str:
        """The same for the same content, in memory or in a store."""
        words = [
            "privcfs context 2",
            *(str(side) for side in self.features.shape),
            *(checksums[name] for name in sorted(checksums)),
            *(self.snapshot.checksums[name] for name in sorted(self.snapshot.checksums)),
            self.backbone.digest,
            *sorted(item.name for item in self.assumptions),
            *(self.node_ids or ()),
        ]
        return hashlib.sha256("\n".join(f"{len(word)}:{word}" for word in words).encode()).hexdigest()


def nodes_of(features: sp.csr_array, node_ids: Sequence[str] | None) -> Nodes:
    """The nodes of a feature table: as many as it has rows, with their names where they have names."""
    count = int(features.shape[0])
    if node_ids is None:
        return Nodes(count)
    if len(node_ids) != count:
        raise ContextError(f"node_ids has {len(node_ids)} names, but features has {count} rows; match them.")
    return Nodes(count, {name: number for number, name in enumerate(node_ids)})


def read_snapshot(source: str | Path | ArrayLike, nodes: Nodes) -> Neighbours:
    """The public pairs of a file, an array or a store."""
    reader = EdgeListReader("snapshot", ContextError, nodes)
    if not isinstance(source, str | Path) or Path(source).suffix != SUFFIX:
        return Neighbours.of_pairs(reader.read(source), nodes.count)
    store = open_store(Path(source), PAIRS, ContextError)
    if store.rows != nodes.count:
        reader.refuse(f"has {store.rows} nodes, but features has {nodes.count} rows", "match them")
    return Neighbours(store.arrays["starts"], store.arrays["others"], store.checksums)


def _checksums(features: sp.csr_array) -> Mapping[str, str]:
    table = features.sorted_indices()
    return checksums_of(FEATURES, {"starts": table.indptr, "numbers": table.indices, "values": table.data})
