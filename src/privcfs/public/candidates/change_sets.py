"""Which changes of features may be made together: no feature twice, and the rules between features are kept."""

from collections.abc import Iterable, Sequence
from itertools import combinations

from privcfs.public.candidates.candidates import Choice
from privcfs.public.context import PublicContext
from privcfs.public.interventions import EncodedChange
from privcfs.public.schema.of_node import present_levels
from privcfs.public.schema.schema import Schema


def change_sets(context: PublicContext, target: int, changes: Sequence[EncodedChange], most: int) -> tuple[Choice, ...]:
    """Positions of changes that may be made together: the empty set, then smaller sets before larger ones."""
    every = (one for size in range(1, most + 1) for one in combinations(range(len(changes)), size))
    return ((), *kept_together(context, target, changes, every))


def kept_together(
    context: PublicContext, target: int, changes: Sequence[EncodedChange], sets: Iterable[Choice]
) -> list[Choice]:
    """The sets, positions of changes, that name no feature twice and keep the rules of the schema, in their order."""
    names = [one.change.feature for one in changes]
    schema = context.schema
    apart = [one for one in sets if len({names[position] for position in one}) == len(one)]
    if schema is None or not schema.rules:
        return apart
    return _keeping_rules(schema, context, target, changes, apart)


def _keeping_rules(
    schema: Schema, context: PublicContext, target: int, changes: Sequence[EncodedChange], sets: list[Choice]
) -> list[Choice]:
    present = present_levels(context, target)
    levels = [schema.level_of(one.change) for one in changes]
    names = [one.change.feature for one in changes]
    return [one for one in sets if schema.keeps_rules(present, {names[position]: levels[position] for position in one})]
