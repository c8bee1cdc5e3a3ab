"""Whom the target may be joined to: the nodes that would change its logits most, judged on the public snapshot."""

from dataclasses import dataclass, field
from itertools import islice
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.candidates.actionability import Actionability, check_nodes
from privcfs.public.context import PublicContext
from privcfs.public.goals import Goal
from privcfs.public.interventions import Pair, pair
from privcfs.public.nearby import HUB, nearby, snapshot_logits
from privcfs.public.per_context import per_context
from privcfs.tables.neighbours import among

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
# At most so many nodes are scored by themselves, in so many blocks of consecutive numbers.
SAMPLED_NODES, BLOCKS = 1 << 17, 64
# Their logits have at most so many entries.
MOST_LOGITS = 1 << 23
# The best of them are scored again with their neighbours; these have at most so many snapshot pairs together.
MOST_PAIRS = 1 << 18
# Of all scored nodes, those that pull most and least towards each class are kept, so many of each.
KEPT = 48


@final
@dataclass(frozen=True, slots=True)
class Partners:
    """Which pairs with the target may be added.

    `away` partners lower the margin of the target's class on the snapshot most, and `towards` partners raise it most:
    both directions, because the snapshot's prediction can be wrong. With a `desired` class, the first kind raise the
    margin of that class, or of several classes the highest margin. For each of the next `rivals` likeliest classes,
    `for_each_rival` further partners raise the margin of that class most. After these, `beyond` pairs may join such a
    partner to a public neighbour of the target. With `own`, all pairs of the target as the person concerned knows them,
    these take the place of its snapshot pairs; they never stand in the text of a rule, which names a method.
    """

    away: int = 4
    towards: int = 2
    desired: Goal = None
    beyond: int = 0
    rivals: int = 3
    for_each_rival: int = 2
    own: tuple[Pair, ...] | None = field(default=None, repr=False)

    def pairs(self, context: PublicContext, target: int, allowed: Actionability) -> tuple[Pair, ...]:
        """Distinct pairs, none of them in the snapshot, or among the target's own pairs where these are known."""
        scored = score_partners(context, target, allowed, own=self.own)
        likeliest = [int(label) for label in np.argsort(-scored.own_logits, kind="stable")]
        ranked = scored.falling_from(likeliest[0]) if self.desired is None else scored.rising_to(self.desired)
        away, rest = ranked[: self.away].tolist(), ranked[self.away :]
        chosen = dict.fromkeys([*away, *rest[::-1][: self.towards].tolist()])
        for rival in likeliest[1 : 1 + self.rivals]:
            first = scored.rising_to(rival)[: len(chosen) + self.for_each_rival]
            others = [node for node in first.tolist() if node not in chosen]
            chosen |= dict.fromkeys(others[: self.for_each_rival])
        neighbours = [one for one in context.snapshot.neighbours(target) if one not in allowed.immutable_nodes]
        second_hop = (
            pair(one, node) for node in chosen for one in neighbours if node not in context.snapshot.neighbours(one)
        )
        return (*(pair(target, node) for node in chosen), *islice(second_hop, self.beyond))


@final
@dataclass(frozen=True, slots=True, eq=False)
class ScoredPartners:
    """Nodes with the target's class margins if it were joined to each of them alone.

    `margins` has a row for each node and a column for each class, and is an estimate. `own_logits` are the target's
    logits on the snapshot. `joinable` says which nodes may be joined to the target and are not its neighbours.
    """

    nodes: Numbers
    margins: Floats
    own_logits: Floats
    joinable: NDArray[np.bool_]

    def rising_to(self, label: int | tuple[int, ...]) -> Numbers:
        """The joinable nodes, first those that pull it most towards a class, or one of several; ties by number."""
        margins = self.margins[self.joinable][:, np.atleast_1d(label)].max(axis=1)
        return self.nodes[self.joinable][np.argsort(-margins, kind="stable")]

    def falling_from(self, label: int) -> Numbers:
        """The joinable nodes, first those that pull the target least towards a class; ties by number."""
        return self.nodes[self.joinable][np.argsort(self.margins[self.joinable, label], kind="stable")]

    def margin(self, node: int, label: int) -> float:
        """The margin of one class if the target is joined to a node that was named."""
        return float(self.margins[int(np.searchsorted(self.nodes, node)), label])


def score_partners(
    context: PublicContext,
    target: int,
    allowed: Actionability,
    deletions: tuple[Pair, ...] = (),
    own: tuple[Pair, ...] | None = None,
) -> ScoredPartners:
    """Scores the most promising nodes of the graph, and the nodes that `deletions` name.

    With `own`, the target's pairs are these, whatever the snapshot shows of them; nothing of that is kept.
    """
    check_nodes(allowed, context.number_of_nodes)
    promising = _promising(context, allowed)
    nodes, messages = promising.nodes, promising.messages
    named = np.array(sorted({node for one in deletions for node in one} - {target}), np.int64)
    if len(named):
        nodes, first = np.unique(np.concatenate([nodes, named]), return_index=True)
        messages = np.concatenate([messages, _messages(context, named)])[first]
    if own is None:
        neighbours = np.array(context.snapshot.neighbours(target), np.int64)
        own_logits = snapshot_logits(context, np.array([target]))[0]
    else:
        neighbours = np.array(sorted({one + other - target for one, other in own}), np.int64)
        own_logits = _logits_with(context, target, neighbours)
    degree = len(neighbours) + 1  # With the self-loop that a GCN adds.
    joined_logits = np.sqrt(degree / (degree + 1)) * own_logits + messages / np.sqrt(degree + 1)
    joinable = allowed.joinable(nodes) & ~among(np.append(neighbours, target), nodes)
    joinable &= target not in allowed.immutable_nodes
    return ScoredPartners(nodes, class_margins(joined_logits), own_logits, joinable)


def _logits_with(context: PublicContext, target: int, neighbours: Numbers) -> Floats:
    """The target's logits if it has these neighbours, ascending, and all other pairs are the snapshot's near them.

    Of very many neighbours, some at equal distances are read.
    """
    read = neighbours[:: len(neighbours) // HUB + 1]
    nodes = np.unique(np.append(read, target))
    near = nearby(context, nodes)
    row, rows = near.rows[np.searchsorted(nodes, target)], near.rows[np.searchsorted(nodes, read)]
    elsewhere = near.pairs[(near.pairs != row).all(axis=1)]
    pairs = np.concatenate([elsewhere, np.column_stack([np.minimum(row, rows), np.maximum(row, rows)])])
    logits: Floats = context.model.logits(near.features, pairs)[row]
    return logits


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Promising:
    """Nodes, ascending, and what each would add to the logits of a target that is joined to it: (nodes, classes)."""

    nodes: Numbers
    messages: Floats


@per_context(maxsize=4)
def _promising(context: PublicContext, allowed: Actionability) -> _Promising:
    """The nodes that pull most, and those that pull least, towards each class, whoever the target is."""
    nodes = _within_room(context, _ranked_by_themselves(context, allowed))
    messages = _messages(context, nodes)
    margins = class_margins(messages)
    order = np.argsort(margins, axis=0, kind="stable")
    kept = np.unique(np.concatenate([order[:KEPT].ravel(), order[-KEPT:].ravel()]))
    kept = kept[np.argsort(nodes[kept], kind="stable")]
    return _Promising(nodes[kept], messages[kept])


def _messages(context: PublicContext, nodes: Numbers) -> Floats:
    """What each node would add to a target's logits, judged on the snapshot pairs that one of the nodes is part of."""
    if not len(nodes):
        return np.empty((0, context.number_of_classes))
    near = nearby(context, nodes)
    return context.model.messages(near.features, near.pairs)[near.rows]


def _ranked_by_themselves(context: PublicContext, allowed: Actionability) -> Numbers:
    """The sampled nodes in order of promise: the best of each class, then the second best of each, and so on.

    A node is scored by its logits without any neighbours, as if its neighbours had the same features, divided by the
    root of its degree.
    """
    nodes = _sampled_nodes(context, allowed)
    if context.snapshot.degrees(nodes).sum() + len(nodes) <= MOST_PAIRS:
        return nodes  # All of them will be scored with their neighbours, in any order.
    blocks = [context.feature_rows(block) for block in np.array_split(nodes, BLOCKS) if len(block)]
    no_pairs = np.empty((0, 2), np.int64)
    no_logits = np.empty((0, context.number_of_classes))  # All there is if nobody may be joined.
    margins = class_margins(np.concatenate([no_logits, *(context.model.logits(block, no_pairs) for block in blocks)]))
    root_degrees = np.sqrt(context.snapshot.degrees(nodes) + 2)[:, None]
    scores = np.where(margins > 0, margins / root_degrees, margins * root_degrees)
    best_of_each_class = np.argsort(-scores, axis=0, kind="stable").ravel()
    chosen, first_place = np.unique(best_of_each_class, return_index=True)
    return nodes[chosen[np.argsort(first_place)]]


def _within_room(context: PublicContext, nodes: Numbers) -> Numbers:
    """The first of the nodes that together have at most MOST_PAIRS snapshot pairs; every node counts as one more."""
    within: Numbers = nodes[np.cumsum(context.snapshot.degrees(nodes) + 1) <= MOST_PAIRS]
    return within


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
