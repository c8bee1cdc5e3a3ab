"""Whom the target may be joined to: the nodes that, on the snapshot graph, would pull its prediction furthest."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.candidates.actionability import Actionability
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Pair, pair
from privcfs.public.surroundings import Surroundings, ends_of, is_large, surroundings

Floats = NDArray[np.float64]
ROOM = 1 << 11  # pairs in sight of a large graph, besides those of promising partners
BLOCKS, BLOCK = 64, 1 << 11  # of nodes with consecutive numbers that are listened to there
PROMISING = 1 << 10  # of them, for all classes together


@final
@dataclass(frozen=True, slots=True)
class Partners:
    """`away` partners that leave the snapshot's class furthest behind, and `towards` that lift it most.

    The snapshot's prediction can be wrong, hence both directions. With a `desired` class, away means towards it. The
    first `beyond` pairs of such a partner and a snapshot neighbour of the target follow: its friends' new friends.
    """

    away: int = 8
    towards: int = 4
    desired: int | None = None
    beyond: int = 0

    def pairs(self, context: PublicContext, target: int, allowed: Actionability) -> tuple[Pair, ...]:
        """Distinct pairs, none of them in the snapshot."""
        around = look_around(context, target, allowed)
        nodes, scores = around.free()
        lead = -lead_of(scores, around.own) if self.desired is None else lead_of(scores, self.desired)
        order = nodes[np.argsort(-lead, kind="stable")]
        first, rest = order[: self.away], order[self.away :]
        chosen = [*first, *rest[::-1][: self.towards]]
        near = [one for one in context.snapshot.neighbours(target) if one not in allowed.immutable_nodes]
        further = (
            pair(one, int(node)) for node in chosen for one in near if node not in context.snapshot.neighbours(one)
        )
        return (*(pair(target, int(node)) for node in chosen), *islice(further, self.beyond))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Around:
    """Who is around a target and about what the model would say of it, on the snapshot graph, joined to each alone."""

    near: Surroundings
    scores: Floats
    own: int  # the class of the target as it is
    joinable: NDArray[np.bool_]

    def free(self) -> tuple[NDArray[np.int64], Floats]:
        """Nodes that may be joined to the target and are not, by number, and their scores."""
        return self.near.nodes[self.joinable], self.scores[self.joinable]

    def score(self, node: int) -> Floats:
        """Of a node that was named."""
        scores: Floats = self.scores[[self.near.place(node)]]
        return scores

    def best_partners(self, towards: int, most: int) -> NDArray[np.int64]:
        """The nodes that pull the target most towards one class, best first."""
        nodes, scores = self.free()
        best: NDArray[np.int64] = nodes[np.argsort(-lead_of(scores, towards), kind="stable")[:most]]
        return best


def look_around(
    context: PublicContext, target: int, allowed: Actionability, deletions: tuple[Pair, ...] = ()
) -> Around:
    """Of a large graph, only the most promising partners are looked at, and whoever deletions name."""
    named = ends_of(target, deletions)
    near = surroundings(context, (*named, *(node for node in _loudest(context, allowed) if node not in named)), ROOM)
    place, friends = near.place(target), context.snapshot.neighbours(target)
    scores = snapshot_scores(near.context)
    degree = len(friends) + 1
    kept = np.sqrt(degree / (degree + 1)) * scores[place]
    joinable = allowed.joinable(near.nodes) & near.known & ~np.isin(near.nodes, [target, *friends])
    if target in allowed.immutable_nodes:
        joinable[:] = False
    joined: Floats = kept + _pulls(near.context)(place) / np.sqrt(degree + 1)
    return Around(near, joined, int(scores[place].argmax()), joinable)


@lru_cache(maxsize=4)
def _loudest(context: PublicContext, allowed: Actionability) -> tuple[int, ...]:
    """Of a large graph, those who would pull most towards each class if their friends spoke as they do."""
    if not is_large(context):
        return ()
    rng, count = np.random.default_rng(int(context.digest[:15], 16)), context.number_of_nodes
    nodes = np.unique(np.add.outer(rng.integers(count, size=BLOCKS), np.arange(BLOCK)) % count)
    if allowed.partners is not None:
        nodes = rng.permutation(sorted(allowed.partners))[: BLOCKS * BLOCK].astype(np.int64)
    nodes = nodes[allowed.joinable(nodes)]
    rows = (context.feature_rows(part) for part in np.array_split(nodes, BLOCKS) if len(part))
    alone = [context.backbone.logits(part, np.empty((0, 2), np.int64)) for part in rows]
    silent = np.empty((0, context.number_of_classes))  # where nobody may be joined
    spoken = np.concatenate([silent, *alone]) / np.sqrt(context.snapshot.degrees(nodes) + 2)[:, None]
    each = PROMISING // context.number_of_classes + 1
    first = [np.argsort(-lead_of(spoken, one), kind="stable")[:each] for one in range(context.number_of_classes)]
    return tuple(nodes[np.unique(np.concatenate(first))].tolist())


def lead_of(scores: Floats, one: int) -> Floats:
    """By how much each row's class score exceeds the best other one."""
    others = np.delete(scores, one, axis=1)
    lead: Floats = scores[:, one] - others.max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(lead), lead, 0.0)


@lru_cache(maxsize=4)
def snapshot_scores(context: PublicContext) -> Floats:
    """What the model says of every node on the snapshot graph."""
    return context.backbone.logits(context.features, context.snapshot.pairs)


@lru_cache(maxsize=4)
def _pulls(context: PublicContext) -> Callable[[int], Floats]:
    return context.backbone.pulls(context.features, context.snapshot.pairs)
