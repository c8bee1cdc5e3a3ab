"""Short public vectors of all nodes: the inner product of two of them is nearly the log weight of their pair.

A vector has three parts: the node's features and the mean features of its surroundings, both reduced to the directions
in which public profiles vary most, and the public model's class probabilities. Each part is scaled by the weight that
the link model gives it. Entries are whole numbers of one byte, so that inner products are exact in any order of
summation, and ten million nodes fit into memory.

Some public pairs are held out: nothing here sees them. How many of them are found again says how many hidden ones are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import final

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from privcfs.public.beliefs.imagined import Beliefs
from privcfs.public.beliefs.links import LogLinear
from privcfs.public.beliefs.pool import pool_of, softmax, unit_rows
from privcfs.public.context import PublicContext
from privcfs.public.nearby import MOST_KEPT, snapshot_logits, some_neighbours
from privcfs.public.per_context import per_context
from privcfs.tables.neighbours import Neighbours, places
from privcfs.tables.store import resting

Numbers = NDArray[np.int64]
Floats = NDArray[np.float32]
Bytes = NDArray[np.int8]
Classes = NDArray[np.int16]
# Profiles of features are reduced to so many directions.
DIRECTIONS = 32
# The log of the agreement of classes is replaced by a line through its values for none and for full agreement.
SLOPE = 3.9
# The largest whole number of a vector.
LARGEST = 127
# Probabilities are stored as whole numbers of this part.
PERCENT = 255
# So many nodes are looked at together.
BLOCK = 1 << 12
# So many public pairs are held out, and at most this share of them.
HELD_OUT, MOST_HELD_OUT = 1000, 0.1


@final
@dataclass(frozen=True, slots=True, eq=False)
class Vectors:
    """What is publicly known of all nodes, in few bytes.

    Attributes:
        entries: The vectors (nodes, entries).
        unit: What the inner product of two vectors is multiplied by to become a log weight.
        popularity: The factor that a node's public degree contributes as a partner.
        likely: The public model's class probabilities, in parts of 255: (nodes, classes).
        held_out: Public pairs that vectors and popularity do not see, smaller node first.
    """

    entries: Bytes
    unit: np.float32
    popularity: Floats
    likely: NDArray[np.uint8]
    held_out: Numbers


def vectors_of(context: PublicContext, beliefs: Beliefs) -> Vectors:
    """The vectors of all nodes; the same for the same public data."""
    assert isinstance(beliefs.links, LogLinear)
    alike, around_alike, agreement, degree, _ = (max(weight, 0.0) for weight in beliefs.links.weights)
    scale = LARGEST / max(sqrt(max(alike, around_alike, SLOPE * agreement)), 1e-9)
    factors = [sqrt(weight) * scale for weight in (alike, around_alike, SLOPE * agreement)]
    held_out = held_out_pairs(context.snapshot, np.random.default_rng([context.seed, 8]))
    likely, _ = classes_of(_without(context, held_out))
    own = _own_profiles(context)
    width, classes = own.shape[1], likely.shape[1]
    entries = np.empty((context.number_of_nodes, 2 * width + classes), np.int8)
    popularity = np.empty(context.number_of_nodes, np.float32)
    for nodes in _blocks(context.number_of_nodes):
        position, other = shown_neighbours(context.snapshot, nodes, held_out)
        around = own[nodes].astype(np.float32)
        degrees = np.bincount(position, minlength=len(nodes))
        if len(other):
            members = sp.csr_array(
                (np.ones(len(other), np.float32), np.arange(len(other)), np.append(0, np.cumsum(degrees))),
                shape=(len(nodes), len(other)),
            )
            around += members @ own[other].astype(np.float32)
        around /= np.maximum(np.linalg.norm(around, axis=1, keepdims=True), 1e-9)
        entries[nodes, :width] = np.rint(own[nodes] * np.float32(factors[0] / LARGEST))
        entries[nodes, width : 2 * width] = np.rint(around * factors[1])
        entries[nodes, 2 * width :] = np.rint(likely[nodes] * np.float32(factors[2] / PERCENT))
        popularity[nodes] = np.exp(degree * np.log1p(degrees))
    return Vectors(entries, np.float32(1 / scale**2), popularity, likely, held_out)


@per_context(maxsize=1)
def classes_of(context: PublicContext) -> tuple[NDArray[np.uint8], Classes]:
    """What the public model says of all nodes on the snapshot: probabilities in parts of 255, and classes."""
    likely = np.empty((context.number_of_nodes, context.number_of_classes), np.uint8)
    said = np.empty(context.number_of_nodes, np.int16)
    for nodes in _blocks(context.number_of_nodes):
        with resting():
            logits = snapshot_logits(context, nodes)
        likely[nodes] = np.rint(PERCENT * softmax(logits))
        said[nodes] = logits.argmax(axis=1)
    return likely, said


def held_out_pairs(snapshot: Neighbours, rng: np.random.Generator) -> Numbers:
    """A sample of the public pairs, smaller node first; none where there are too few."""
    pairs = len(snapshot.others) // 2
    wanted = min(HELD_OUT, int(MOST_HELD_OUT * pairs))
    entries = np.unique(rng.integers(2 * pairs, size=wanted)) if wanted else np.empty(0, np.int64)
    one = np.searchsorted(snapshot.starts, entries, side="right") - 1
    ends = np.sort(np.column_stack([one, np.asarray(snapshot.others[entries], np.int64)]), axis=1)
    return np.unique(ends, axis=0)


def _without(context: PublicContext, held_out: Numbers) -> PublicContext:
    """The context without the pairs that are held out; a large one as it is, where they make no difference."""
    if not len(held_out) or context.number_of_nodes + len(context.snapshot.others) > MOST_KEPT:
        return context
    pairs = context.snapshot.pairs
    kept = places(_keys(held_out, context.number_of_nodes), _keys(pairs, context.number_of_nodes)) < 0
    return PublicContext(context.features, pairs[kept], context.model, assumptions=context.assumptions)


def _keys(pairs: Numbers, count: int) -> Numbers:
    """One number for each pair, in the order of pairs."""
    keys: Numbers = pairs[:, 0] * count + pairs[:, 1]
    return keys


def shown_neighbours(
    snapshot: Neighbours, nodes: Numbers, held_out: Numbers, *, every: bool = False
) -> tuple[Numbers, Numbers]:
    """Snapshot neighbours of nodes without the pairs that are held out: position of the node, and neighbour.

    Of a hub some neighbours are taken, unless `every` one is asked for.
    """
    with resting():
        position, other = snapshot.neighbours_of(nodes) if every else some_neighbours(snapshot, nodes)
    if len(held_out):
        count = len(snapshot.starts) - 1
        barred = np.sort(np.concatenate([_keys(held_out, count), _keys(held_out[:, ::-1], count)]))
        at = nodes[position]
        touched = np.flatnonzero(places(np.unique(held_out), at) >= 0)
        kept = np.ones(len(at), np.bool_)
        kept[touched] = places(barred, at[touched] * count + other[touched]) < 0
        position, other = position[kept], other[kept]
    return position, other


def _own_profiles(context: PublicContext) -> Bytes:
    """Profiles of features, in the directions in which they vary most."""
    pool = pool_of(context)
    directions = _directions(pool.profiles.own)
    weights = sp.diags_array(pool.feature_weights)
    own = np.empty((context.number_of_nodes, directions.shape[1]), np.int8)
    for nodes in _blocks(context.number_of_nodes):
        with resting():
            rows = context.feature_rows(nodes)
        reduced = unit_rows(rows @ weights) @ directions
        own[nodes] = np.rint(LARGEST * np.clip(reduced, -1, 1))
    return own


def _directions(profiles: sp.csr_array) -> Floats:
    """Orthogonal directions (features, directions) in which profiles of a sample vary most; all of few features."""
    if min(profiles.shape) <= DIRECTIONS:
        return np.eye(profiles.shape[1], dtype=np.float32)
    from scipy.sparse.linalg import svds  # Takes long to import, and answers do not need it.

    start = np.ones(min(profiles.shape), np.float64)
    found = svds(profiles.astype(np.float64), k=DIRECTIONS, v0=start, return_singular_vectors="vh")[2]
    directions: Floats = np.ascontiguousarray(found.T, np.float32)
    return directions


def _blocks(count: int) -> Iterator[Numbers]:
    """All nodes, some at a time."""
    for start in range(0, count, BLOCK):
        yield np.arange(start, min(start + BLOCK, count))
