"""Which changes of features are offered: those that push the target most towards another class on the snapshot."""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.partners import class_margins
from privcfs.public.context import PublicContext
from privcfs.public.goals import Goal, best_of, classes_of
from privcfs.public.interventions import EncodedChange
from privcfs.public.nearby import nearby, some_neighbours
from privcfs.public.schema.feature import Feature, Level
from privcfs.public.schema.of_node import present_levels
from privcfs.public.schema.rules import Levels

Floats = NDArray[np.float64]
Numbers = NDArray[np.int64]
TRIED = 8  # values of a number that are tried in each direction: one step away, two, four and so on, and the last


@final
@dataclass(frozen=True, slots=True)
class PushedChanges:
    """Changes of the target's features that the schema permits, in a public order.

    `away` changes lower the margin of the target's class on the snapshot most and `towards` changes raise it most,
    because the snapshot's prediction can be wrong. With a `desired` class or several, the first kind raise the margin
    of these. For each of the next `rivals` likeliest classes, `for_each_rival` further changes raise the margin of that
    class most. Of each feature at most `each` values are offered. Where features are secret, all changes are those of
    an average node, so the list says nothing about the target's own row.
    """

    away: int = 12
    towards: int = 3
    desired: Goal = None
    rivals: int = 3
    for_each_rival: int = 2
    each: int = 3

    def changes(self, context: PublicContext, target: int, allowed: Actionability) -> tuple[EncodedChange, ...]:
        """Distinct changes, none of them to the present value; none at all where there is no schema."""
        tried = _tried(context, target, allowed)
        if not tried:
            return ()
        logits = _logits_after(context, target, tried)
        ranked = [self._ranking(logits)]
        rivals = np.argsort(-logits[0], kind="stable")[1 : 1 + self.rivals]
        margins = class_margins(logits)[1:]
        ranked += [np.argsort(-margins[:, rival], kind="stable") for rival in rivals.tolist()]
        chosen = self._first(tried, [], ranked[0], self.away)
        chosen = self._first(tried, chosen, ranked[0][::-1], self.towards)
        for order in ranked[1:]:
            chosen = self._first(tried, chosen, order, self.for_each_rival)
        return tuple(tried[position] for position in chosen)

    def _ranking(self, logits: Floats) -> Numbers:
        """Positions of changes, first those that push most towards what is wanted; row 0 is the target as it is."""
        if self.desired is None:
            return np.argsort(class_margins(logits)[1:, int(logits[0].argmax())], kind="stable")
        wanted = classes_of(self.desired, logits.shape[1])
        return np.argsort(best_of(logits[1:].T, ~wanted) - best_of(logits[1:].T, wanted), kind="stable")

    def _first(self, tried: list[EncodedChange], chosen: list[int], order: Numbers, most: int) -> list[int]:
        """Some positions, and the first `most` others in an order that leave each feature few values."""
        found, end = list(chosen), len(chosen) + most
        for position in order.tolist():
            feature = tried[position].change.feature
            taken = sum(tried[one].change.feature == feature for one in found)
            if len(found) < end and position not in found and taken < self.each:
                found.append(position)
        return found


def _tried(context: PublicContext, target: int, allowed: Actionability) -> list[EncodedChange]:
    """A few values of every feature that may change."""
    schema = context.schema
    if schema is None:
        return []
    present = present_levels(context, target)
    free = [one for one in schema.features if not allowed.immutable_features & set(one.columns)]
    return [schema.encoded(feature, level, present) for feature in free for level in _levels_to_try(feature, present)]


def _levels_to_try(feature: Feature, present: Levels) -> list[Level]:
    """Levels at growing distances from the present one, or spread over all where that is secret."""
    levels = feature.reachable(present.get(feature.name))
    if len(levels) <= TRIED:
        return list(levels)
    middle = present.get(feature.name)
    if middle is None:
        return [levels[place] for place in np.linspace(0, len(levels) - 1, TRIED).astype(int).tolist()]
    below, above = [one for one in levels if one < middle][::-1], [one for one in levels if one > middle]
    return [side[place] for side in (below, above) for place in _growing(len(side))]


def _growing(count: int) -> list[int]:
    """The first position, and others at distances that grow up to the last one; at most TRIED."""
    return np.unique(np.geomspace(1, count, TRIED).round().astype(int) - 1).tolist() if count else []


def _logits_after(context: PublicContext, target: int, tried: list[EncodedChange]) -> Floats:
    """The target's logits on the snapshot as it is, then after each change: (1 + changes, classes)."""
    _, neighbours = some_neighbours(context.snapshot, np.array([target]))
    near = nearby(context, np.union1d(neighbours, [target]))
    node = int(near.rows[np.searchsorted(np.union1d(neighbours, [target]), target)])
    present = near.features[[node]].toarray()
    if not context.features_are_public:
        present = np.asarray(context.features.mean(axis=0), np.float32).reshape(1, -1)
    rows = np.repeat(present, 1 + len(tried), axis=0)
    for row, one in enumerate(tried, 1):
        rows[row, list(one.columns)] = one.values
    logits = context.model.responses(near.features, near.pairs, node, rows)
    return np.nan_to_num(logits)
