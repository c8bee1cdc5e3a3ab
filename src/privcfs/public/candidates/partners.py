"""Whom the target may be joined to: the nodes that, on the snapshot graph, would pull its prediction furthest."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.candidates.actionability import Actionability, check_nodes
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Pair, pair
from privcfs.public.surroundings import HUB, Surroundings, ends_of, fitting, is_large, surroundings

Floats = NDArray[np.float64]
HEARD, BLOCKS = 1 << 17, 64  # nodes of a large graph that are listened to, in so many blocks
MOST_CELLS = 1 << 23  # what they say, a number for each class
LOUD = 1 << 13  # pairs of those who are then looked at


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
        order = around.furthest_from(around.own) if self.desired is None else around.nearest_to(self.desired)
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
    """Who is around a target, and about how far each class would lead if it were joined to each of them alone."""

    near: Surroundings
    leads: Floats
    own: int  # the class of the target as it is
    free: NDArray[np.bool_]  # whether each may be joined to the target and is not

    def nearest_to(self, one: int) -> NDArray[np.int64]:
        """The free nodes, those first that pull the target most towards a class; ties by number."""
        return self.near.nodes[self.free][np.argsort(-self.leads[self.free, one], kind="stable")]

    def furthest_from(self, one: int) -> NDArray[np.int64]:
        """The free nodes, those first that pull the target least towards a class; ties by number."""
        return self.near.nodes[self.free][np.argsort(self.leads[self.free, one], kind="stable")]

    def lead(self, node: int, towards: int) -> float:
        """Of one class where the target is joined to a node that was named."""
        return float(self.leads[self.near.place(node), towards])


def look_around(
    context: PublicContext, target: int, allowed: Actionability, deletions: tuple[Pair, ...] = ()
) -> Around:
    """Of a large graph, only the most promising partners are looked at, and whoever deletions name."""
    check_nodes(allowed, context.number_of_nodes)
    named = ends_of(target, deletions)
    near = surroundings(context, (*named, *(node for node in _loudest(context, allowed) if node not in named)))
    place, friends = near.place(target), context.snapshot.neighbours(target)
    scores = snapshot_scores(near.context)
    degree = len(friends) + 1
    kept = np.sqrt(degree / (degree + 1)) * scores[place]
    joined = kept + _pulls(near.context)(place) / np.sqrt(degree + 1)
    free = allowed.joinable(near.nodes) & near.known & ~np.isin(near.nodes, [target, *friends])
    free &= target not in allowed.immutable_nodes
    return Around(near, leads(joined), int(scores[place].argmax()), free)


@lru_cache(maxsize=4)
def _loudest(context: PublicContext, allowed: Actionability) -> tuple[int, ...]:
    """Of a large graph, those who would pull most towards each class if their friends spoke as they do.

    As many as have together `LOUD` pairs: the first of each class, then the second of each.
    """
    if not is_large(context):
        return ()
    nodes = _heard(context, allowed)
    rows = (context.feature_rows(part) for part in np.array_split(nodes, BLOCKS) if len(part))
    alone = [context.backbone.logits(part, np.empty((0, 2), np.int64)) for part in rows]
    silent = np.empty((0, context.number_of_classes))  # where nobody may be joined
    spoken, many = leads(np.concatenate([silent, *alone])), np.sqrt(context.snapshot.degrees(nodes) + 2)[:, None]
    ranked = np.argsort(-np.where(spoken > 0, spoken / many, spoken * many), axis=0, kind="stable")[:LOUD].ravel()
    chosen, first = np.unique(ranked, return_index=True)
    return tuple(fitting(context.snapshot, nodes[chosen[np.argsort(first)]], LOUD).tolist())


def _heard(context: PublicContext, allowed: Actionability) -> NDArray[np.int64]:
    """Everyone who may be joined or, where they are very many, some: blocks of neighbouring numbers, spread out."""
    rng, count = np.random.default_rng(int(context.digest[:15], 16)), context.number_of_nodes
    most = min(HEARD, MOST_CELLS // context.number_of_classes)
    if allowed.partners is not None:
        nodes = np.sort(rng.permutation(sorted(allowed.partners))[:most].astype(np.int64))
    elif count <= most:
        nodes = np.arange(count)
    else:
        starts = (np.arange(BLOCKS) + rng.random(BLOCKS)) * ((count - most // BLOCKS) / BLOCKS)
        nodes = np.unique(np.add.outer(starts.astype(np.int64), np.arange(most // BLOCKS)))
    nodes = nodes[allowed.joinable(nodes)]
    return nodes[context.snapshot.degrees(nodes) <= HUB]


def leads(scores: Floats) -> Floats:
    """By how much each class score of a row exceeds the best other one."""
    if scores.shape[1] < 2:
        return np.zeros(scores.shape)
    second, best = np.moveaxis(np.partition(scores, -2, axis=1)[:, -2:], 1, 0)
    is_best = np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None]
    lead: Floats = scores - np.where(is_best, second[:, None], best[:, None])
    return np.where(np.isfinite(lead), lead, 0.0)


@lru_cache(maxsize=4)
def snapshot_scores(context: PublicContext) -> Floats:
    """What the model says of every node on the snapshot graph."""
    return context.backbone.logits(context.features, context.snapshot.pairs)


@lru_cache(maxsize=4)
def _pulls(context: PublicContext) -> Callable[[int], Floats]:
    return context.backbone.pulls(context.features, context.snapshot.pairs)
