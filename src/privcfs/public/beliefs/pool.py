"""The nodes that imagined pairs may lead to: all nodes or, of a large graph, a public sample, with what guides a guess.

Everything that beliefs know of a node is gathered here once per context: its public degree, the public model's class
probabilities, and its profile. A profile is the node's feature row in which rare features weigh more, scaled to length
1. The profile of a node's surroundings is the mean profile of the node and its snapshot neighbours, scaled likewise.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.public.context import PublicContext
from privcfs.public.nearby import snapshot_logits, some_neighbours
from privcfs.public.per_context import per_context
from privcfs.tables.neighbours import places

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
# A pool has at most so many nodes.
MOST_NODES = 1 << 12
# Class probabilities of so many nodes are computed together.
BLOCK = 1 << 10


@final
@dataclass(frozen=True, slots=True, eq=False)
class Profiles:
    """Unit-length rows of some nodes: their own features, and the mean of their surroundings."""

    own: sp.csr_array
    around: sp.csr_array


@final
@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """What is publicly known of the nodes that imagined pairs may lead to; rows follow `nodes`, which is ascending."""

    nodes: Numbers
    degrees: Numbers
    log_degrees: Floats  # log(1 + degree)
    probabilities: Floats  # (nodes, classes)
    profiles: Profiles
    feature_weights: Floats  # (features): how much a feature counts in a profile; more if it is rare


@per_context(maxsize=1)
def pool_of(context: PublicContext) -> Pool:
    """The pool of a context; the same for the same public data."""
    nodes = sampled_nodes(context, MOST_NODES)
    rows, degrees = context.feature_rows(nodes), context.snapshot.degrees(nodes)
    frequency = np.bincount(rows.indices, minlength=rows.shape[1])
    weights = np.log1p(len(nodes) / np.maximum(frequency, 1)).astype(np.float32)
    return Pool(
        nodes=nodes,
        degrees=degrees,
        log_degrees=np.log1p(degrees).astype(np.float32),
        probabilities=_probabilities(context, nodes),
        profiles=profiles_of(context, nodes, weights),
        feature_weights=weights,
    )


def sampled_nodes(context: PublicContext, most: int) -> Numbers:
    """All nodes or, if there are more than `most`, a uniform sample of them; ascending."""
    if context.number_of_nodes <= most:
        return np.arange(context.number_of_nodes)
    drawn = np.random.default_rng(context.seed).integers(context.number_of_nodes, size=most)
    return np.unique(drawn)


def public_degrees(context: PublicContext, nodes: Numbers) -> Numbers:
    """How many snapshot neighbours nodes have: as the pool knows it where they are in it."""
    pool = pool_of(context)
    place = places(pool.nodes, nodes)
    found = pool.degrees[place]
    elsewhere = np.flatnonzero(place < 0)
    if len(elsewhere):
        found[elsewhere] = context.snapshot.degrees(nodes[elsewhere])
    return found


def class_probabilities(context: PublicContext, nodes: Numbers) -> Floats:
    """The public model's class probabilities of nodes: those of the pool where they are in it."""
    pool = pool_of(context)
    place = places(pool.nodes, nodes)
    found = pool.probabilities[place]
    elsewhere = np.flatnonzero(place < 0)
    if len(elsewhere):
        found[elsewhere] = _probabilities(context, nodes[elsewhere])
    return found


def profiles_of(context: PublicContext, nodes: Numbers, feature_weights: Floats) -> Profiles:
    """The profiles of some nodes and of their surroundings."""
    position, neighbours = some_neighbours(context.snapshot, nodes)
    everyone, place = np.unique(np.concatenate([nodes, neighbours]), return_inverse=True)
    own = unit_rows(context.feature_rows(everyone) @ sp.diags_array(feature_weights))
    rows = np.concatenate([np.arange(len(nodes)), position])
    members = sp.csr_array((np.ones(len(rows), np.float32), (rows, place)), shape=(len(nodes), len(everyone)))
    return Profiles(own[place[: len(nodes)]], unit_rows(members @ own))


def softmax(logits: NDArray[np.floating]) -> Floats:
    """Class probabilities (nodes, classes)."""
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities: Floats = (exponentials / exponentials.sum(axis=1, keepdims=True)).astype(np.float32)
    return probabilities


def _probabilities(context: PublicContext, nodes: Numbers) -> Floats:
    """Class probabilities of nodes on the snapshot near them, computed in blocks."""
    blocks = np.array_split(nodes, max(len(nodes) // BLOCK, 1))
    return np.concatenate([softmax(snapshot_logits(context, block)) for block in blocks])


def unit_rows(table: sp.csr_array) -> sp.csr_array:
    """Every row scaled to length 1."""
    lengths = np.sqrt(np.asarray(table.multiply(table).sum(axis=1)).ravel())
    return (sp.diags_array((1 / np.maximum(lengths, 1e-9)).astype(np.float32)) @ table).tocsr()
