"""The rows that a torch module is run on: each node once for all candidates under which it has the same hidden rows.

Zone: private
Claim: a module that permits the way of sharing gives each candidate's row of the target the class scores of a
    full-graph forward pass.
Why: a node that is d steps from the target passes on its hidden rows up to layer `hops` - d. These depend on the
    operations within `hops` - d steps of the node and on no others, so candidates that agree on them can read one row.
    Each row has one incoming edge for each neighbour that the node has under these candidates, so that its degree is
    right. Rows that are `hops` steps away pass on features and a degree alone, so featureless stand-ins take the place
    of neighbours that have no row. Distances are those in the graph with all additions, which are lower bounds.
Check: tests/private/test_evaluators.py::test_every_way_to_share_rows_gives_the_same_scores
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.private.evaluators.outcomes import effective_operations
from privcfs.private.graph import PrivateGraph
from privcfs.public.candidates.candidates import Candidates, membership
from privcfs.tables.neighbours import gather, places

Bools = NDArray[np.bool_]
Numbers = NDArray[np.int64]
WORD = 31  # Operations that are packed into one number; two such numbers fit into 64 bits.


class Sharing(Enum):
    """When two candidates may read one row of a node that passes on its hidden rows up to layer k.

    NEVER: each candidate has rows of its own, and every edge runs in both directions.
    SAME_DEGREES: if the candidates agree on operations and masks within k steps of the node.
    SAME_EDGES: if they agree on operations within k - 1 steps and on masks within k steps, for modules that do not read
    the degrees of neighbours. Rows that pass on features alone need no edges then.
    """

    NEVER = "never"
    SAME_DEGREES = "same degrees"
    SAME_EDGES = "same edges"


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """A graph of rows for a module. The rows of the target come first; positions after all rows are stand-ins."""

    nodes: Numbers  # of each row
    feature_sets: Numbers  # which each row of the target is altered by
    edges: Numbers  # (2, edges): sources and sinks
    stand_ins: int
    answers: Numbers  # for each candidate the row that gets its class scores

    @property
    def size(self) -> int:
        """Rows and messages between them, each as wide as the feature table."""
        return len(self.nodes) + int(self.edges.shape[1])


@dataclass(frozen=True, slots=True, eq=False)
class Area:
    """Everything within reach of the target under some candidate, as neighbour lists with all possible additions.

    Entry i leads to the node at position `others[i]` of `nodes`, or out of the area if that is -1. It exists under a
    pair set if `alive[pair set, operations[i]]`. Row `patterns[pattern[v]]` says which operations, and in the last
    column whether the masks, can change the hidden rows that the node at position v passes on.
    """

    nodes: Numbers  # the target first
    starts: Numbers
    others: Numbers
    operations: Numbers
    alive: Bools  # (pair sets, operations + 1); nothing deletes the edges of the last column
    chosen: Bools  # (pair sets, operations): those that change the graph
    pattern: Numbers
    patterns: Bools
    hops: int
    sharing: Sharing

    @classmethod
    def around(cls, graph: PrivateGraph, candidates: Candidates, hops: int, sharing: Sharing) -> "Area":
        """The area of a list of candidates."""
        effective = effective_operations(graph, candidates)
        chosen = membership(candidates.pair_sets, len(effective)) & effective
        pairs = np.array(candidates.deletions + candidates.additions, np.int64).reshape(-1, 2)
        deletions = len(candidates.deletions)
        nodes, steps = _within(graph, candidates.target, pairs[deletions:], hops)
        starts, others, operations = _entries(graph, nodes, pairs, deletions)
        relevant = _relevant(starts, others, _ends(nodes, pairs, effective), hops - steps, sharing)
        pattern, first = _numbered(_words(relevant))
        alive = chosen.copy()
        alive[:, :deletions] ^= True
        return cls(
            nodes=nodes,
            starts=starts,
            others=others,
            operations=operations,
            alive=np.column_stack([alive, np.ones(len(alive), np.bool_)]),
            chosen=chosen,
            pattern=pattern,
            patterns=relevant[first],
            hops=hops,
            sharing=sharing,
        )

    @property
    def size(self) -> int:
        """At least as large as the size of the rows of one candidate."""
        return len(self.nodes) + len(self.others)

    def rows(self, pair_sets: Numbers, feature_sets: Numbers) -> Rows:
        """The rows for some candidates, each given by its pair set and its feature set.

        A row is identified by a key, its node's position times the number of views plus its view. Step by step from the
        target, the neighbours of the latest rows are looked up under one of the candidates that read the row.
        """
        views = self._views(pair_sets, feature_sets)
        width = int(views.max()) + 1
        answers = views[:, self.pattern[0]]
        keys, states = np.unique(answers, return_index=True)
        nodes, targets, done = np.zeros(len(keys), np.int64), len(keys), 0
        sinks, sources = [], []
        for step in range(self.hops + (self.sharing is not Sharing.SAME_EDGES)):
            owner, entry = gather(self.starts, nodes[done:])
            living = self.alive[pair_sets[states[done:][owner]], self.operations[entry]]
            owner, other = done + owner[living], self.others[entry[living]]
            source = np.where(other < 0, -1, other * width + views[states[owner], self.pattern[other]])
            sinks.append(owner)
            sources.append(source)
            done = len(keys)
            if step < self.hops:
                fresh = _fresh(source, keys)
                keys = np.concatenate([keys, source[fresh]])
                nodes = np.concatenate([nodes, other[fresh]])
                states = np.concatenate([states, states[owner[fresh]]])
        edges = np.stack([_positions(keys, np.concatenate(sources)), np.concatenate(sinks)])
        edges = _with_stand_ins(edges, len(keys), in_both_directions=self.sharing is Sharing.NEVER)
        return Rows(
            nodes=self.nodes[nodes],
            feature_sets=feature_sets[states[:targets]],
            edges=edges,
            stand_ins=max(0, int(edges.max(initial=-1)) + 1 - len(keys)),
            answers=_positions(keys, answers),
        )

    def _views(self, pair_sets: Numbers, feature_sets: Numbers) -> Numbers:
        """(candidates, patterns): equal numbers in a column mean that the candidates share rows of such nodes."""
        if self.sharing is Sharing.NEVER:
            return np.repeat(np.arange(len(pair_sets))[:, None], len(self.patterns), axis=1)
        chosen, relevant = _words(self.chosen), _words(self.patterns[:, :-1])
        words = [one[pair_sets][:, None] & other for one, other in zip(chosen, relevant, strict=True)]
        return _numbered([*words, feature_sets[:, None] * self.patterns[:, -1]])[0]


def _within(graph: PrivateGraph, target: int, additions: Numbers, hops: int) -> tuple[Numbers, Numbers]:
    """The target, then every node within so many steps of it once all additions are made; and the steps to each."""
    nodes, counts = np.array([target]), [1]
    for _ in range(hops):
        _, reached = graph.neighbours_of(nodes[len(nodes) - counts[-1] :])
        partners = additions[np.isin(additions, nodes).any(axis=1)].ravel()
        fresh = np.setdiff1d(np.concatenate([reached, partners]), nodes)
        nodes = np.concatenate([nodes, fresh])
        counts.append(len(fresh))
    return nodes, np.repeat(np.arange(hops + 1), counts)


def _entries(graph: PrivateGraph, nodes: Numbers, pairs: Numbers, deletions: int) -> tuple[Numbers, Numbers, Numbers]:
    """Neighbour lists with all additions: starts, positions of the neighbours, and the operation on each entry."""
    owner, other = graph.neighbours_of(nodes)
    ends = np.sort(np.column_stack([nodes[owner], other]), axis=1)
    key = np.array([graph.number_of_nodes, 1])
    operation = _positions(pairs[:deletions] @ key, ends @ key)
    added = deletions + np.flatnonzero(~graph.has_edges(pairs[deletions:]))
    new_owner = _positions(nodes, pairs[added].T.ravel())
    inside = new_owner >= 0
    owner = np.concatenate([owner, new_owner[inside]])
    other = np.concatenate([other, pairs[added, ::-1].T.ravel()[inside]])
    operation = np.concatenate([operation, np.tile(added, 2)[inside]])
    order = np.argsort(owner, kind="stable")
    starts = np.searchsorted(owner[order], np.arange(len(nodes) + 1))
    return starts, _positions(nodes, other[order]), operation[order]


def _relevant(starts: Numbers, others: Numbers, ends: Bools, layers: Numbers, sharing: Sharing) -> Bools:
    """Which columns of `ends` can change the hidden rows that nodes pass on up to the layers given."""
    owner = np.repeat(np.arange(len(layers)), np.diff(starts))
    inside = others >= 0
    links = (np.ones(np.count_nonzero(inside), np.float32), (owner[inside], others[inside]))
    adjacency = sp.csr_array(links, shape=(len(layers), len(layers)))
    late = np.zeros(ends.shape[1], np.int64)
    late[:-1] = sharing is Sharing.SAME_EDGES  # A neighbour's edges are seen a layer later than its degree.
    near, relevant = ends, np.zeros_like(ends)
    for steps in range(int(layers[0]) + 1):
        near = near | (adjacency @ near.astype(np.float32) > 0) if steps else near
        relevant |= near & (layers[:, None] >= late + steps)
    return relevant


def _ends(nodes: Numbers, pairs: Numbers, effective: Bools) -> Bools:
    """(nodes, operations + 1): the ends of each operation that changes the graph and, last, the target."""
    ends = np.zeros((len(nodes) + 1, len(pairs) + 1), np.bool_)  # Ends outside the area are at position -1.
    ends[_positions(nodes, pairs), np.arange(len(pairs))[:, None]] = effective[:, None]
    ends[0, -1] = True
    return ends[:-1]


def _fresh(keys: Numbers, known: Numbers) -> Numbers:
    """Positions of the keys that are not known yet, of equal ones the first."""
    distinct, first = np.unique(keys, return_index=True)
    fresh: Numbers = first[~np.isin(distinct, known)]
    return fresh


def _positions(listed: Numbers, wanted: Numbers) -> Numbers:
    """Where each wanted number stands in a list without repetitions; -1 for those that do not."""
    order = np.argsort(listed)
    found: Numbers = np.append(order, -1)[places(listed[order], wanted)]
    return found


def _with_stand_ins(edges: Numbers, rows: int, in_both_directions: bool) -> Numbers:
    """Edges in which stand-ins, of which a row has each at most once, take the place of sources that are -1."""
    missing = np.flatnonzero(edges[0] < 0)
    missing = missing[np.argsort(edges[1, missing], kind="stable")]
    sinks = edges[1, missing]
    edges[0, missing] = rows + np.arange(len(missing)) - np.searchsorted(sinks, sinks)
    return np.concatenate([edges, edges[::-1, missing]], axis=1) if in_both_directions else edges


def _words(table: Bools) -> list[Numbers]:
    """The rows of a table as numbers, each of which holds up to WORD columns."""
    columns = table.shape[1]
    return [
        table[:, start : start + WORD] @ (1 << np.arange(min(WORD, columns - start)))
        for start in range(0, columns, WORD)
    ]


def _numbered(columns: list[Numbers]) -> tuple[Numbers, Numbers]:
    """Numbers the distinct tuples of several arrays of one shape; and the first position of each tuple."""
    numbers, first = np.zeros_like(columns[0]), np.zeros(1, np.int64)
    for column in columns:
        _, first, inverse = np.unique((numbers << WORD) | column, return_index=True, return_inverse=True)
        numbers = inverse.reshape(column.shape)
    return numbers, first
