"""Any candidate rule within a schema of features: masks become changes to 0 where the schema permits these."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from privcfs.errors import SettingsError
from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.candidates import CandidateRule, Candidates, Caps, Choice
from privcfs.public.candidates.change_sets import kept_together
from privcfs.public.candidates.restriction import Restriction
from privcfs.public.context import PublicContext
from privcfs.public.interventions import EncodedChange, Pair
from privcfs.public.schema.of_node import present_levels
from privcfs.public.schema.rules import Levels
from privcfs.public.schema.schema import Schema


@final
@dataclass(frozen=True, slots=True)
class WithinSchema(CandidateRule):
    """The candidates of a rule that a person can carry out: within the schema, and naming allowed pairs alone.

    In a context without a schema, features are masked as the rule says.
    """

    rule: CandidateRule
    allowed: Actionability = Actionability()

    @property
    def caps(self) -> Caps:
        return self.rule.caps

    @property
    def keeps_schema(self) -> bool:
        return True

    def restricted(self, to: Restriction) -> "WithinSchema":
        try:
            return replace(self, rule=self.rule.restricted(to), allowed=to.allowed)
        except SettingsError:
            if to.deletions is not None:
                raise
            return replace(self, allowed=to.allowed)

    def knowing(self, own: tuple[Pair, ...]) -> "WithinSchema":
        return replace(self, rule=self.rule.knowing(own))

    def propose(self, context: PublicContext, target: int) -> Candidates:
        proposed = _with_allowed_pairs(self.rule.propose(context, target), self.allowed)
        if context.schema is None:
            return proposed
        present = present_levels(context, target)
        masked = [_mask_as_change(context.schema, column, context, target) for column in proposed.features]
        permitted = [
            one if one is not None and _is_permitted(context.schema, one, present, self.allowed) else None
            for one in (*masked, *proposed.changes)
        ]
        changes = list(dict.fromkeys(one for one in permitted if one is not None))
        places = {old: changes.index(one) for old, one in enumerate(permitted) if one is not None}
        sets = sorted(set(_moved(proposed.feature_sets, places)) - {()}, key=lambda one: (len(one), one))
        return replace(
            proposed,
            features=(),
            changes=tuple(changes),
            feature_sets=((), *kept_together(context, target, changes, sets)),
        )


def _with_allowed_pairs(proposed: Candidates, allowed: Actionability) -> Candidates:
    """Without candidates that name a pair that has to stay as it is."""
    deletions = allowed.pairs(proposed.deletions)
    joined = np.array([sum(one) - proposed.target for one in proposed.additions], np.int64)
    may_join = allowed.joinable(joined) | np.array([proposed.target not in one for one in proposed.additions], np.bool_)
    kept = {one for one, may in zip(proposed.additions, may_join.tolist(), strict=True) if may}
    additions = tuple(one for one in allowed.pairs(proposed.additions) if one in kept)
    new = {one: position for position, one in enumerate(deletions + additions)}
    places = {old: new[one] for old, one in enumerate(proposed.deletions + proposed.additions) if one in new}
    pair_sets = tuple(_moved(proposed.pair_sets, places))
    return replace(proposed, deletions=deletions, additions=additions, pair_sets=pair_sets)


def _moved(sets: Collection[Choice], places: Mapping[int, int]) -> Sequence[Choice]:
    """Sets in new positions; those with a position that is gone, or twice the same one, are left out."""
    moved = [tuple(sorted({places[one] for one in chosen})) for chosen in sets if all(one in places for one in chosen)]
    lengths = [len(chosen) for chosen in sets if all(one in places for one in chosen)]
    return [one for one, length in zip(moved, lengths, strict=True) if len(one) == length]


def _mask_as_change(schema: Schema, column: int, context: PublicContext, target: int) -> EncodedChange | None:
    """The change that setting a column to 0 is, if it leads to a public value of a feature."""
    feature = next((one for one in schema.features if column in one.columns), None)
    if feature is None:
        return None
    if len(feature.columns) > 1 and not context.features_are_public:
        return None  # What is left of a category depends on the target's secret row.
    numbers, values = context.feature_row(target)
    row = dict(zip(numbers.tolist(), values.tolist(), strict=True))
    level = feature.present(np.array([0.0 if one == column else row.get(one, 0.0) for one in feature.columns]))
    if level is None or feature.parse(feature.show(level)) is None:
        return None
    return schema.encoded(feature, level, present_levels(context, target))


def _is_permitted(schema: Schema, one: EncodedChange, present: Levels, allowed: Actionability) -> bool:
    feature = schema.named(one.change.feature)
    if feature is None or allowed.immutable_features & set(one.columns):
        return False
    return feature.permits(present.get(feature.name), schema.level_of(one.change))
