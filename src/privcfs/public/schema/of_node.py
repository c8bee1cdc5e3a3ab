"""What the schema of a context says of one node: its present values, and changes of them."""

from dataclasses import replace

from privcfs.errors import InputError
from privcfs.public.context import PublicContext
from privcfs.public.interventions import EncodedChange, FeatureChange, Intervention
from privcfs.public.schema.rules import Levels


def present_levels(context: PublicContext, node: int) -> Levels:
    """The present levels of a node by name; none where there is no schema, or where features are secret."""
    if context.schema is None or not context.features_are_public:
        return {}
    return context.schema.present(context.feature_row(node))


def encoded_changes(context: PublicContext, node: int, changes: tuple[FeatureChange, ...]) -> tuple[EncodedChange, ...]:
    """Changes of a node's features that somebody names; refuses names and values that there are not."""
    if not changes:
        return ()
    if context.schema is None:
        raise InputError("there is no schema of features here, so no feature can be changed; mask it by its number.")
    return context.schema.encode(changes, present_levels(context, node))


def told(context: PublicContext, node: int, intervention: Intervention) -> Intervention:
    """The same intervention with public names of nodes, present values and units."""
    changes = tuple(one.change for one in encoded_changes(context, node, intervention.change))
    return replace(context.named(intervention), change=changes)
