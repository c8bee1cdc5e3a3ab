"""The part of a large public context that guidance looks at: a small context of its own.

It holds the target, whoever else is named, some friends of the target, and strangers who stand for the rest, each with
its snapshot pairs. The other ends of those pairs, the rim, have further pairs that lead out of sight: in their place
each gets as many pairs with others of the rim, likes joined to likes as often as in sight. So degrees are about right
and the part is a graph like the whole; only hubs lose most of their pairs. Where a guess is wrong, usefulness suffers,
never privacy.
"""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Pair, pair
from privcfs.tables.neighbours import Neighbours, distinct, gather

Numbers = NDArray[np.int64]
MOST_WHOLE = 200_000  # nodes and neighbours up to which a context is looked at as a whole
ROOM = 1 << 10  # pairs of friends and strangers
MOST_STUBS = 100  # pairs of one node that lead out of sight: of more, the rest is left out
HUB = 256  # pairs that are looked at of one node other than the target; friends with more are left in the rim
PRIOR_PAIRS = 10  # pairs that stand for what is believed of likes joining likes before any pair is seen
PRIOR_LIKE = 0.8


@final
@dataclass(frozen=True, slots=True, eq=False)
class Surroundings:
    """A small context, and which nodes of the large one its nodes are."""

    context: PublicContext
    nodes: Numbers  # by ascending number
    known: NDArray[np.bool_]  # whether all of a node's snapshot pairs are there

    def place(self, node: int) -> int:
        """The number here of a node that is named."""
        return int(np.searchsorted(self.nodes, node))

    def inside(self, candidates: Candidates) -> Candidates:
        """The same list in the numbers used here."""
        deletions, additions = (
            tuple(pair(self.place(one), self.place(other)) for one, other in pairs)
            for pairs in (candidates.deletions, candidates.additions)
        )
        target = self.place(candidates.target)
        return replace(candidates, target=target, deletions=deletions, additions=additions, names={})


def is_large(context: PublicContext) -> bool:
    """Whether guidance looks at a part of it alone."""
    return context.number_of_nodes + len(context.snapshot.others) > MOST_WHOLE


def ends_of(target: int, *lists: tuple[Pair, ...]) -> tuple[int, ...]:
    """The target, and every other node that pairs name."""
    return target, *sorted({node for pairs in lists for one in pairs for node in one} - {target})


@lru_cache(maxsize=4)
def surroundings(context: PublicContext, named: tuple[int, ...], room: int = ROOM) -> Surroundings:
    """The named nodes, the first of them the target, and friends and strangers who have up to `room` pairs.

    Contexts that are not large are looked at as they are.
    """
    snapshot, count = context.snapshot, context.number_of_nodes
    if not is_large(context):
        return Surroundings(context, np.arange(count), np.ones(count, np.bool_))
    seed = int(context.digest[:15], 16)
    rng = np.random.default_rng([seed, *named])
    friends = rng.permutation(np.array(snapshot.neighbours(named[0]), np.int64))
    strangers = np.random.default_rng(seed).integers(count, size=room)  # the same for all targets
    inner = np.unique(
        np.concatenate([named, fitting(snapshot, friends, room // 2), fitting(snapshot, strangers, room)])
    )
    sight = _pairs(snapshot, inner, named[0], rng)
    nodes = np.unique(np.concatenate([inner, sight[:, 1]]))
    pairs = distinct(np.sort(np.searchsorted(nodes, sight), axis=1), len(nodes))
    features = context.feature_rows(nodes)
    classes = context.backbone.logits(features, pairs).argmax(axis=1)
    hidden = snapshot.degrees(nodes) - np.bincount(pairs.ravel(), minlength=len(nodes))
    closing = _matched(hidden.clip(max=MOST_STUBS), classes, likeness(pairs, classes), rng)
    closed = distinct(np.concatenate([pairs, closing]), len(nodes))
    small = PublicContext(features, closed, context.backbone, assumptions=context.assumptions)
    return Surroundings(small, nodes, hidden == 0)


def fitting(snapshot: Neighbours, nodes: Numbers, room: int) -> Numbers:
    """The first of the nodes, hubs left out, that have together no more pairs than there is room."""
    pairs = snapshot.degrees(nodes)
    nodes, pairs = nodes[pairs <= HUB], pairs[pairs <= HUB]
    first: Numbers = nodes[np.cumsum(pairs + 1) <= room]
    return first


def _pairs(snapshot: Neighbours, nodes: Numbers, target: int, rng: np.random.Generator) -> Numbers:
    """Node and neighbour, for all pairs of these nodes; of hubs other than the target, for some."""
    hubs = nodes[(snapshot.degrees(nodes) > HUB) & (nodes != target)]
    whole = nodes[~np.isin(nodes, hubs)]
    owner, entries = gather(snapshot.starts, whole)
    some = [np.unique(rng.integers(snapshot.starts[hub], snapshot.starts[hub + 1], HUB)) for hub in hubs]
    ends = np.concatenate([whole[owner], np.repeat(hubs, [len(one) for one in some])])
    return np.column_stack([ends, snapshot.others[np.concatenate([entries, *some])]]).astype(np.int64)


def _matched(stubs: Numbers, classes: Numbers, like: float, rng: np.random.Generator) -> Numbers:
    """Pairs such that each node has about as many as it has stubs, likes joined to likes as often as is said."""
    ends = np.repeat(np.arange(len(stubs)), stubs)
    group = np.where(rng.random(len(ends)) < like, classes[ends], -1)
    ends = ends[np.lexsort([rng.random(len(ends)), group])]
    pairs = np.sort(ends[: len(ends) // 2 * 2].reshape(-1, 2), axis=1)
    apart: Numbers = pairs[pairs[:, 0] != pairs[:, 1]]
    return apart


def likeness(pairs: Numbers, classes: Numbers) -> float:
    """The share of pairs whose ends have the same predicted class, with a little prior belief."""
    same = int((classes[pairs[:, 0]] == classes[pairs[:, 1]]).sum())
    return (same + PRIOR_PAIRS * PRIOR_LIKE) / (len(pairs) + PRIOR_PAIRS)
