"""The part of a large public context that beliefs and partner scores read: a small context of its own.

The part consists of inner nodes, with all of their snapshot pairs, and of boundary nodes, the other ends of those
pairs. Inner nodes are the target, every other node that is named, some neighbours of the target, and a uniform sample
that stands for the rest of the graph. Boundary nodes have further pairs that leave the part. In their place each
boundary node is joined to other boundary nodes by a configuration model, with as large a share of pairs between nodes
of one predicted class as inside the part. Degrees are then about right, and the part resembles the whole graph; only
hubs lose most of their pairs. All of this is public computation: where it is wrong, usefulness suffers, never privacy.
"""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Pair, pair
from privcfs.public.per_context import per_context
from privcfs.tables.neighbours import Neighbours, distinct, gather

Numbers = NDArray[np.int64]
# A context with at most so many nodes and neighbours is read as a whole.
MOST_WHOLE = 200_000
# The neighbours of the target and the sampled nodes that are inner nodes have at most so many pairs.
ROOM = 1 << 10
# Of the pairs of one boundary node that leave the part, at most so many are replaced.
MOST_STUBS = 100
# A node other than the target with more pairs is a hub. So many of its pairs are read if it is named, none otherwise.
HUB = 256
# The prior belief that a pair joins nodes of one class: a probability, and the number of pairs that it counts for.
PRIOR_HOMOPHILY, PRIOR_PAIRS = 0.8, 10


@final
@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """A small context, and which nodes of the large one its nodes are.

    `nodes` are their numbers in the large context, ascending. `known` says of each whether all of its snapshot pairs
    are in the small context.
    """

    context: PublicContext
    nodes: Numbers
    known: NDArray[np.bool_]

    def place(self, node: int) -> int:
        """The number in the small context of a node that was named."""
        return int(np.searchsorted(self.nodes, node))

    def inside(self, candidates: Candidates) -> Candidates:
        """The same candidates in the numbers of the small context."""
        deletions, additions = (
            tuple(pair(self.place(one), self.place(other)) for one, other in pairs)
            for pairs in (candidates.deletions, candidates.additions)
        )
        target = self.place(candidates.target)
        return replace(candidates, target=target, deletions=deletions, additions=additions, names={})


def is_large(context: PublicContext) -> bool:
    """Whether beliefs read only a part of this context."""
    limit = MOST_WHOLE if context.whole_limit is None else context.whole_limit
    return context.number_of_nodes + len(context.snapshot.others) > limit


def ends_of(target: int, *lists: tuple[Pair, ...]) -> tuple[int, ...]:
    """The target, followed by every other node that the pairs name, ascending."""
    return target, *sorted({node for pairs in lists for one in pairs for node in one} - {target})


@per_context(maxsize=4)
def surroundings(context: PublicContext, named: tuple[int, ...], room: int = ROOM) -> Surroundings:
    """The part around the named nodes, of which the first is the target; a context that is not large as it is.

    Neighbours of the target and sampled nodes become inner nodes while they have at most `room` pairs together.
    """
    if not is_large(context):
        count = context.number_of_nodes
        return Surroundings(context, np.arange(count), np.ones(count, np.bool_))
    rng = np.random.default_rng([context.seed, *named])
    inner = _inner_nodes(context, named, room, rng)
    inner_pairs = _pairs_of(context.snapshot, inner, named[0], rng)
    nodes = np.unique(np.concatenate([inner, inner_pairs[:, 1]]))
    pairs = distinct(np.sort(np.searchsorted(nodes, inner_pairs), axis=1), len(nodes))
    features = context.feature_rows(nodes)
    classes = context.model.logits(features, pairs).argmax(axis=1)
    stubs = context.snapshot.degrees(nodes) - np.bincount(pairs.ravel(), minlength=len(nodes))
    closing = _configuration_model(stubs.clip(max=MOST_STUBS), classes, homophily(pairs, classes), rng)
    closed = distinct(np.concatenate([pairs, closing]), len(nodes))
    small = PublicContext(features, closed, context.model, assumptions=context.assumptions)
    return Surroundings(small, nodes, stubs == 0)


def _inner_nodes(context: PublicContext, named: tuple[int, ...], room: int, rng: np.random.Generator) -> Numbers:
    """The named nodes, neighbours of the first of them, and a uniform sample that is the same for all targets."""
    snapshot = context.snapshot
    neighbours = rng.permutation(np.array(snapshot.neighbours(named[0]), np.int64))
    sample = np.random.default_rng(context.seed).integers(context.number_of_nodes, size=room)
    chosen = [within_room(snapshot, neighbours, room // 2), within_room(snapshot, sample, room)]
    return np.unique(np.concatenate([named, *chosen]))


def within_room(snapshot: Neighbours, nodes: Numbers, room: int) -> Numbers:
    """The first of the nodes, without hubs, that together have at most `room` pairs; every node counts as one more."""
    degrees = snapshot.degrees(nodes)
    is_hub = degrees > HUB
    nodes, degrees = nodes[~is_hub], degrees[~is_hub]
    first: Numbers = nodes[np.cumsum(degrees + 1) <= room]
    return first


def _pairs_of(snapshot: Neighbours, nodes: Numbers, target: int, rng: np.random.Generator) -> Numbers:
    """Rows (node, neighbour) for all snapshot pairs of these nodes, or for a sample of the pairs of hubs."""
    is_hub = (snapshot.degrees(nodes) > HUB) & (nodes != target)
    hubs, others = nodes[is_hub], nodes[~is_hub]
    row, entries = gather(snapshot.starts, others)
    sampled = [np.unique(rng.integers(snapshot.starts[hub], snapshot.starts[hub + 1], HUB)) for hub in hubs]
    ends = np.concatenate([others[row], np.repeat(hubs, [len(one) for one in sampled])])
    neighbours = snapshot.others[np.concatenate([entries, *sampled])]
    return np.column_stack([ends, neighbours]).astype(np.int64)


def _configuration_model(stubs: Numbers, classes: Numbers, same_class: float, rng: np.random.Generator) -> Numbers:
    """Random pairs such that each node has about as many as it has stubs, with this share of pairs in one class.

    Stubs are shuffled within groups and joined two by two. With probability `same_class` a stub is in the group of its
    node's class, otherwise in a group that all classes share. Self-loops are dropped.
    """
    ends = np.repeat(np.arange(len(stubs)), stubs)
    group = np.where(rng.random(len(ends)) < same_class, classes[ends], -1)
    shuffled = ends[np.lexsort([rng.random(len(ends)), group])]
    pairs = np.sort(shuffled[: len(shuffled) // 2 * 2].reshape(-1, 2), axis=1)
    without_loops: Numbers = pairs[pairs[:, 0] != pairs[:, 1]]
    return without_loops


def homophily(pairs: Numbers, classes: Numbers) -> float:
    """The share of pairs whose ends have the same predicted class, smoothed by the prior belief."""
    same = int((classes[pairs[:, 0]] == classes[pairs[:, 1]]).sum())
    return (same + PRIOR_PAIRS * PRIOR_HOMOPHILY) / (len(pairs) + PRIOR_PAIRS)
