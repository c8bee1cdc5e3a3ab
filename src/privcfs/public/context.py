"""Everything an outsider may know before a release: features, snapshot, frozen model, assumptions."""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from privcfs.errors import ContextError, UnknownNode
from privcfs.public.assumptions import DEFAULT, Assumption
from privcfs.public.beliefs.posterior import Posterior
from privcfs.public.interventions import Intervention
from privcfs.public.models.model import Model
from privcfs.public.schema.fitting import refuse_misfit
from privcfs.public.schema.schema import Schema
from privcfs.tables.edges import EdgeListReader
from privcfs.tables.features import TableNames, feature_header, read_features
from privcfs.tables.named_columns import Links, Table
from privcfs.tables.names import Nodes, read_node_ids
from privcfs.tables.neighbours import Neighbours, gather
from privcfs.tables.store import FEATURES, PAIRS, SUFFIX, checksums_of, open_store, taken

FeatureRow = tuple[NDArray[np.int32], NDArray[np.float32]]
DIGITS = re.compile(r"[0-9]{1,18}")


class Readable(Protocol):
    """What an evaluator reads besides edges: a feature table and a model, public or secret."""

    @property
    def features(self) -> sp.csr_array:
        """One row per node."""

    @property
    def model(self) -> Model:
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
        values, numbers = taken(self.features.data, entries), taken(self.features.indices, entries)
        return sp.csr_array((values, numbers, ends), shape=shape)


class PublicContext(FeatureRows):
    """Everything that is public: features, snapshot, public model, names of nodes, assumptions.

    Its digest stands on each release and is never computed from private data. `caches` belongs to
    `privcfs.public.per_context`, and `learned` to `privcfs.gate.learning`. A context that knows a sketch of the hidden
    pairs has `base`, the context without it, `sketch` and `posterior`, which are None for any other.

    Args:
        features: The public feature table with one row for each node: a file (.csv, .npy, .npz or .store), some columns
            of a CSV file (`Table`), an array or a sparse matrix.
        snapshot: The pairs that were public before, and independently of, the private edges: a file, some columns of a
            CSV file (`Links`), or an (m, 2) array.
        model: The public model: `load_model(...)`, `GCN(...)` or `TorchModel(...)`. It guides the choice of candidates,
            and decides unless the vault has a secret model.
        node_ids: The public names of the nodes in order: a list, or a file with one name a line. By default None:
            nodes have numbers only.
        assumptions: What must be true outside this program for the guarantee to hold; it is printed on each release.
            By default everything but the edges is public. `hiding(...)` makes others.
        schema: What features are called, which values they can have and what of them a person can change: a file such
            as "features.toml", or `Schema.read(...)`. By default None: features have numbers, and can be masked.

    Raises:
        ContextError: An input cannot be read, or the inputs do not fit each other.
    """

    __slots__ = (
        "__weakref__",
        "assumptions",
        "base",
        "caches",
        "columns",
        "digest",
        "features",
        "inputs",
        "learned",
        "model",
        "node_ids",
        "nodes",
        "posterior",
        "schema",
        "sketch",
        "snapshot",
    )

    features: sp.csr_array
    snapshot: Neighbours
    model: Model
    inputs: NDArray[np.float32] | None
    node_ids: tuple[str, ...] | None
    nodes: Nodes
    schema: Schema | None
    columns: Sequence[str]
    assumptions: frozenset[Assumption]
    digest: str
    caches: dict[Callable[..., Any], Callable[..., Any]]
    learned: dict[Any, Any]
    base: "PublicContext | None"
    sketch: Any
    posterior: Posterior | None

    def __init__(
        self,
        features: str | Path | Table | ArrayLike | sp.sparray | sp.spmatrix,
        snapshot: str | Path | Links | ArrayLike,
        model: Model,
        *,
        node_ids: str | Path | Sequence[str] | None = None,
        assumptions: Iterable[Assumption] = DEFAULT,
        schema: str | Path | Schema | None = None,
    ) -> None:
        if not isinstance(model, Model):
            raise ContextError(f"model is a {type(model).__name__}; load it with privcfs.load_model first.")
        named = isinstance(features, str | Path) and Path(features).suffix == ".csv"
        stored = isinstance(features, str | Path) and Path(features).suffix == SUFFIX
        self.columns = ()
        if isinstance(features, Table):
            schema = schema if schema is None or isinstance(schema, Schema) or not features.raw else Schema.read(schema)
            node_ids = names_of(features, node_ids)
            features, self.columns = read_table(features, schema)
        self.node_ids = None if node_ids is None else read_node_ids(node_ids, ContextError)
        self.features = read_features(features, ContextError, TableNames(self.columns, self.node_ids or ()))
        if named:
            self.columns = feature_header(Path(str(features)), ContextError)
        self.model = model
        if self.features.shape[1] != model.number_of_features:
            raise ContextError(
                f"features has {self.features.shape[1]} columns, but the model was trained on "
                f"{model.number_of_features}; give the table it was trained with."
            )
        self.inputs = model.inputs(self.features)
        self.nodes = nodes_of(self.features, self.node_ids)
        self.snapshot = read_snapshot(snapshot, self.nodes)
        self.assumptions = frozenset(assumptions)
        self.schema = None if schema is None else self._fitting_schema(schema)
        checksums = open_store(Path(str(features)), FEATURES, ContextError).checksums if stored else None
        self.digest = self._digest(checksums or _checksums(self.features))
        self.caches = {}
        self.learned = {}
        self.base = self.sketch = None
        self.posterior = None

    def knowing(self, sketch: Any, posterior: Posterior, digest: str) -> "PublicContext":
        """The same context with a believed graph in the place of its snapshot; `privcfs.with_sketch` makes it.

        Args:
            sketch: A `privcfs.public.sketches.sketch.Sketch`.
            posterior: What follows from it. Its believed graph is the snapshot together with the hidden pairs that are
                likelier than not.
            digest: The name of the new context.

        Returns:
            A context of its own, whose `base` is this one.
        """
        other = copy(self)
        other.snapshot, other.digest, other.base = posterior.believed, digest, self
        other.sketch, other.posterior = sketch, posterior
        other.assumptions = self.assumptions | {Assumption.SKETCH_KNOWN}
        other.caches, other.learned = {}, {}
        return other

    @property
    def disclosed(self) -> Neighbours:
        """The pairs of the snapshot as they were disclosed, where `snapshot` also has pairs that a sketch suggests."""
        return self.snapshot if self.base is None else self.base.snapshot

    def _fitting_schema(self, schema: str | Path | Schema) -> Schema:
        """A schema that fits the feature table; its columns have the names of a CSV file's header."""
        if not isinstance(schema, Schema):
            schema = Schema.read(schema, self.columns)
        refuse_misfit(schema, self.features, self.node_ids, self.features_are_public)
        return schema

    def columns_of(self, feature: int | str) -> frozenset[int]:
        """The columns of the feature table that somebody means.

        Args:
            feature: A column's number, the name of a feature of the schema, or of a column of a CSV file with a header.

        Returns:
            Numbers of columns.

        Raises:
            ContextError: There is no such feature.
        """
        if isinstance(feature, int):
            return frozenset({feature})
        named = None if self.schema is None else self.schema.named(feature)
        if named is not None:
            return frozenset(named.columns)
        if feature in self.columns:
            return frozenset({list(self.columns).index(feature)})
        if feature.isdecimal():
            return frozenset({int(feature)})
        known = [*(one.name for one in self.schema.features)] if self.schema is not None else list(self.columns)
        advice = f"choose one of {', '.join(known)[:400]}" if known else "features have no names here; give its number"
        raise ContextError(f"feature {feature[:80]!r} does not exist; {advice}.")

    @property
    def features_are_public(self) -> bool:
        """Whether the features that decide are those of this context."""
        return Assumption.FEATURES_SECRET not in self.assumptions

    @property
    def seed(self) -> int:
        """The public seed of everything that is drawn from public data: the first 60 bits of the digest."""
        return int(self.digest[:15], 16)

    @property
    def number_of_nodes(self) -> int:
        """Public input: the rows of the feature table."""
        return self.nodes.count

    @property
    def number_of_classes(self) -> int:
        """Public: what the model can say."""
        return self.model.number_of_classes

    def node(self, target: int | str) -> int:
        """The number of the node that an analyst means.

        Args:
            target: A node's number (int), or text: a name where nodes have names, and digits otherwise.

        Returns:
            The node's number.

        Raises:
            UnknownNode: There is no such node.
        """
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
        """The public name of a node.

        Args:
            node: The node's number.

        Returns:
            Its name, or its number as text where nodes have no names.
        """
        return str(node) if self.node_ids is None else self.node_ids[node]

    def labels(self, nodes: Iterable[int]) -> dict[int, str]:
        """The public names of several nodes.

        Args:
            nodes: Node numbers.

        Returns:
            The names of those that exist; empty where nodes have no names.
        """
        names = self.node_ids or ()
        return {node: names[node] for node in sorted(nodes) if 0 <= node < len(names)}

    def named(self, intervention: Intervention) -> Intervention:
        """Gives an intervention the public names of its nodes.

        Args:
            intervention: Any intervention.

        Returns:
            The same intervention with names.
        """
        return replace(intervention, names=self.labels(intervention.nodes))

    def _digest(self, checksums: Mapping[str, str]) -> str:
        """The same for the same content, in memory or in a store."""
        words = [
            "privcfs context 2",
            *(str(side) for side in self.features.shape),
            *(checksums[name] for name in sorted(checksums)),
            *(self.snapshot.checksums[name] for name in sorted(self.snapshot.checksums)),
            self.model.digest,
            *sorted(item.name for item in self.assumptions),
            *(self.node_ids or ()),
            *(() if self.schema is None else ("schema", self.schema.digest)),
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


def names_of(table: Table, node_ids: str | Path | Sequence[str] | None) -> str | Path | Sequence[str] | None:
    """The names of nodes that a table has in a column of its own, or else those that are given."""
    if table.nodes is not None and node_ids is not None:
        raise ContextError("node_ids and the column nodes of features both name the nodes; give one of them.")
    return node_ids if table.nodes is None else table.node_ids(ContextError)


def read_table(table: Table, schema: str | Path | Schema | None) -> tuple[NDArray[np.float64], Sequence[str]]:
    """The numbers of a table, and the names of its columns; none where a schema turned its values into numbers."""
    if not table.raw:
        return table.features(ContextError)
    if not isinstance(schema, Schema):
        raise ContextError("features is a raw table, which only a schema can turn into numbers; give a schema.")
    return schema.encode_table(table), ()


def read_snapshot(source: str | Path | Links | ArrayLike, nodes: Nodes) -> Neighbours:
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
