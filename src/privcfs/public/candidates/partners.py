"""Whom the target may be joined to: the nodes that would change its logits most, judged on the public snapshot."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.beliefs.surroundings import HUB, Surroundings, ends_of, is_large, surroundings, within_room
from privcfs.public.candidates.actionability import Actionability, check_nodes
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Pair, pair
from privcfs.public.per_context import per_context

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
# Of a large graph, at most so many nodes are scored by themselves, in so many blocks of consecutive numbers.
SAMPLED_NODES, BLOCKS = 1 << 17, 64
# Their logits have at most so many entries.
MOST_LOGITS = 1 << 23
# The best of them are scored again with their neighbours; these have at most so many pairs together.
SHORTLISTED_PAIRS = 1 << 13


@final
@dataclass(frozen=True, slots=True)
class Partners:
    """Which pairs with the target may be added.

    `away` partners lower the margin of the target's class on the snapshot most, and `towards` partners raise it most:
    both directions, because the snapshot's prediction can be wrong. With a `desired` class, the first kind raise the
    margin of that class. After these, `beyond` pairs may join such a partner to a snapshot neighbour of the target.
    """

    away: int = 8
    towards: int = 4
    desired: int | None = None
    beyond: int = 0

    def pairs(self, context: PublicContext, target: int, allowed: Actionability) -> tuple[Pair, ...]:
        """Distinct pairs, none of them in the snapshot."""
        scored = score_partners(context, target, allowed)
        ranked = scored.falling_from(scored.own_class) if self.desired is None else scored.rising_to(self.desired)
        away, rest = ranked[: self.away], ranked[self.away :]
        towards = rest[::-1][: self.towards]
        chosen = [*away, *towards]
        neighbours = [one for one in context.snapshot.neighbours(target) if one not in allowed.immutable_nodes]
        second_hop = (
            pair(one, int(node))
            for node in chosen
            for one in neighbours
            if node not in context.snapshot.neighbours(one)
        )
        return (*(pair(target, int(node)) for node in chosen), *islice(second_hop, self.beyond))


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScoredPartners:
    """Nodes around a target, with the target's class margins if it were joined to each of them alone.

    `margins` has a row for each node and a column for each class, and is an estimate. `own_class` is the target's
    prediction on the snapshot. `joinable` says which nodes may be joined to the target and are not its neighbours.
    """

    near: Surroundings
    margins: Floats
    own_class: int
    joinable: NDArray[np.bool_]

    def rising_to(self, label: int) -> Numbers:
        """The joinable nodes, first those that pull the target most towards a class; ties by number."""
        return self.near.nodes[self.joinable][np.argsort(-self.margins[self.joinable, label], kind="stable")]

    def falling_from(self, label: int) -> Numbers:
        """The joinable nodes, first those that pull the target least towards a class; ties by number."""
        return self.near.nodes[self.joinable][np.argsort(self.margins[self.joinable, label], kind="stable")]

    def margin(self, node: int, label: int) -> float:
        """The margin of one class if the target is joined to a node that was named."""
        return float(self.margins[self.near.place(node), label])


def score_partners(
    context: PublicContext, target: int, allowed: Actionability, deletions: tuple[Pair, ...] = ()
) -> ScoredPartners:
    """Scores all nodes or, of a large graph, a shortlist and the nodes that `deletions` name."""
    check_nodes(allowed, context.number_of_nodes)
    named = ends_of(target, deletions)
    near = surroundings(context, (*named, *(node for node in _shortlist(context, allowed) if node not in named)))
    target_row, neighbours = near.place(target), context.snapshot.neighbours(target)
    logits = snapshot_logits(near.context)
    degree = len(neighbours) + 1  # With the self-loop that a GCN adds.
    own_logits = np.sqrt(degree / (degree + 1)) * logits[target_row]
    joined_logits = own_logits + _pulls(near.context)(target_row) / np.sqrt(degree + 1)
    joinable = allowed.joinable(near.nodes) & near.known & ~np.isin(near.nodes, [target, *neighbours])
    joinable &= target not in allowed.immutable_nodes
    return ScoredPartners(near, class_margins(joined_logits), int(logits[target_row].argmax()), joinable)


@per_context(maxsize=4)
def _shortlist(context: PublicContext, allowed: Actionability) -> tuple[int, ...]:
    """Of a large graph, the nodes that promise to pull most towards each class; none if the graph is not large.

    A node is scored by its logits without any neighbours, as if its neighbours had the same features, divided by the
    root of its degree. The best of each class come first, then the second best of each, and so on, as many as have
    together SHORTLISTED_PAIRS pairs.
    """
    if not is_large(context):
        return ()
    nodes = _sampled_nodes(context, allowed)
    blocks = [context.feature_rows(block) for block in np.array_split(nodes, BLOCKS) if len(block)]
    no_pairs = np.empty((0, 2), np.int64)
    no_logits = np.empty((0, context.number_of_classes))  # All there is if nobody may be joined.
    margins = class_margins(np.concatenate([no_logits, *(context.model.logits(block, no_pairs) for block in blocks)]))
    root_degrees = np.sqrt(context.snapshot.degrees(nodes) + 2)[:, None]
    scores = np.where(margins > 0, margins / root_degrees, margins * root_degrees)
    best_of_each_class = np.argsort(-scores, axis=0, kind="stable")[:SHORTLISTED_PAIRS].ravel()
    chosen, first_place = np.unique(best_of_each_class, return_index=True)
    in_order = nodes[chosen[np.argsort(first_place)]]
    return tuple(within_room(context.snapshot, in_order, SHORTLISTED_PAIRS).tolist())


def _sampled_nodes(context: PublicContext, allowed: Actionability) -> Numbers:
    """The nodes that may be joined, without hubs; a sample of them if there are very many.

    The sample consists of blocks of consecutive numbers, spread over all nodes, because rows of a feature table on disk
    are read fastest in blocks.
    """
    rng, count = np.random.default_rng(context.seed), context.number_of_nodes
    most = min(SAMPLED_NODES, MOST_LOGITS // context.number_of_classes)
    if allowed.partners is not None:
        nodes = np.sort(rng.permutation(sorted(allowed.partners))[:most].astype(np.int64))
    elif count <= most:
        nodes = np.arange(count)
    else:
        starts = (np.arange(BLOCKS) + rng.random(BLOCKS)) * ((count - most // BLOCKS) / BLOCKS)
        nodes = np.unique(np.add.outer(starts.astype(np.int64), np.arange(most // BLOCKS)))
    nodes = nodes[allowed.joinable(nodes)]
    return nodes[context.snapshot.degrees(nodes) <= HUB]


def class_margins(logits: Floats) -> Floats:
    """For each row and class, the logit minus the highest logit of any other class; 0 where that is not finite."""
    if logits.shape[1] < 2:
        return np.zeros(logits.shape)
    second, best = np.moveaxis(np.partition(logits, -2, axis=1)[:, -2:], 1, 0)
    is_best = np.arange(logits.shape[1]) == logits.argmax(axis=1)[:, None]
    margins: Floats = logits - np.where(is_best, second[:, None], best[:, None])
    return np.where(np.isfinite(margins), margins, 0.0)


@per_context(maxsize=1)
def snapshot_logits(context: PublicContext) -> Floats:
    """The public model's logits of every node on the snapshot graph."""
    return context.model.logits(context.features, context.snapshot.pairs)


@per_context(maxsize=1)
def _pulls(context: PublicContext) -> Callable[[int], Floats]:
    return context.model.pulls(context.features, context.snapshot.pairs)
