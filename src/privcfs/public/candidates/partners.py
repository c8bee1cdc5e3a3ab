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

Floats = NDArray[np.float64]


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
        if target in allowed.immutable_nodes:
            return ()
        scores, free = joined_scores(context, target), _free(context, target, allowed)
        own = int(np.argmax(snapshot_scores(context)[target]))
        lead = -lead_of(scores, own) if self.desired is None else lead_of(scores, self.desired)
        order = np.argsort(-lead, kind="stable")
        order = order[free[order]]
        first, rest = order[: self.away], order[self.away :]
        chosen = [*first, *rest[::-1][: self.towards]]
        near = [one for one in context.snapshot.neighbours(target) if one not in allowed.immutable_nodes]
        further = (
            pair(one, int(node)) for node in chosen for one in near if node not in context.snapshot.neighbours(one)
        )
        return (*(pair(target, int(node)) for node in chosen), *islice(further, self.beyond))


def best_partners(
    context: PublicContext, target: int, towards: int, most: int, allowed: Actionability
) -> tuple[Pair, ...]:
    """The nodes that pull the target most towards one class, best first."""
    if target in allowed.immutable_nodes:
        return ()
    lead = np.where(_free(context, target, allowed), lead_of(joined_scores(context, target), towards), -np.inf)
    order = np.argsort(-lead, kind="stable")[:most]
    return tuple(pair(target, int(node)) for node in order if np.isfinite(lead[node]))


def lead_of(scores: Floats, one: int) -> Floats:
    """By how much each row's class score exceeds the best other one."""
    others = np.delete(scores, one, axis=1)
    lead: Floats = scores[:, one] - others.max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(lead), lead, 0.0)


def joined_scores(context: PublicContext, target: int) -> Floats:
    """About what the model would say of the target on the snapshot graph if it were joined to each node alone."""
    degree = len(context.snapshot.neighbours(target)) + 1
    kept = np.sqrt(degree / (degree + 1)) * snapshot_scores(context)[target]
    scores: Floats = kept + _pulls(context)(target) / np.sqrt(degree + 1)
    return scores


@lru_cache(maxsize=4)
def snapshot_scores(context: PublicContext) -> Floats:
    """What the model says of every node on the snapshot graph."""
    return context.backbone.logits(context.features, context.snapshot.pairs)


@lru_cache(maxsize=4)
def _pulls(context: PublicContext) -> Callable[[int], Floats]:
    return context.backbone.pulls(context.features, context.snapshot.pairs)


def _free(context: PublicContext, target: int, allowed: Actionability) -> NDArray[np.bool_]:
    """Nodes that may be joined to the target and are not, in the snapshot."""
    free = allowed.joinable(context.number_of_nodes)
    free[[target, *context.snapshot.neighbours(target)]] = False
    return free
