"""What one node can change about itself: the features of the schema with present and possible values, for forms."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, final

from privcfs.public.context import PublicContext
from privcfs.public.schema.feature import Feature, Level
from privcfs.public.schema.of_node import present_levels
from privcfs.public.tabular import Row, Tabular

MOST_WORDS = 12  # values of a feature that a row of a table names


@final
@dataclass(frozen=True, slots=True)
class PossibleChange:
    """One feature that can change.

    Attributes:
        feature: Its name.
        kind: number, flag or category.
        unit: Of its values; empty for none.
        present: The present value; empty where features are secret.
        values: The values that it can change to, in their order; of a number in equal steps, the present one left out.
        step: Of a number, how far two values are apart; empty for other kinds.
        cost: What any change of it costs, in the owner's currency.
        cost_per_step: What each step costs in addition.
    """

    feature: str
    kind: str
    unit: str
    present: str
    values: tuple[str, ...]
    step: str
    cost: int
    cost_per_step: int

    def to_dict(self) -> dict[str, Any]:
        """As JSON shows it: a number by its bounds and its step, other kinds by their values."""
        bounds = {"least": self.values[0], "most": self.values[-1], "step": self.step}
        return {
            "feature": self.feature,
            "kind": self.kind,
            "unit": self.unit,
            "from": self.present,
            **(bounds if self.kind == "number" else {"values": list(self.values)}),
            "cost": self.cost,
            "cost_per_step": self.cost_per_step,
        }


@final
@dataclass(frozen=True, slots=True)
class PossibleChanges(Tabular):
    """What a node can change, feature by feature. What may be changed together follows from the schema's rules.

    Attributes:
        target: The node's public name.
        features: The features that can change, in the order of the schema.
        rules: The rules between features, in words.
    """

    target: str
    features: tuple[PossibleChange, ...]
    rules: tuple[str, ...] = ()

    def rows(self) -> list[Row]:
        """One row for each feature."""
        return [
            {
                "feature": one.feature,
                "now": one.present or None,
                "to": _in_words(one.values),
                "unit": one.unit or None,
                "cost": one.cost,
                "cost_per_step": one.cost_per_step,
            }
            for one in self.features
        ]

    @property
    def caption(self) -> str:
        """About whom."""
        rules = f" Rules: {'; '.join(self.rules)}." if self.rules else ""
        return f"What can be changed about {self.target}, from public data alone.{rules}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "target_name": self.target,
            "features": [one.to_dict() for one in self.features],
            "rules": list(self.rules),
        }


def possible_changes(context: PublicContext, node: int, immutable: Collection[int] = ()) -> PossibleChanges:
    """What a node can change about itself.

    Args:
        context: The public context; without a schema, nothing can be changed.
        node: The node's number.
        immutable: Columns of the feature table that stay as they are; by default none.

    Returns:
        The features that have at least one possible value.
    """
    schema = context.schema
    if schema is None:
        return PossibleChanges(context.label(node), ())
    present = present_levels(context, node)
    free = (one for one in schema.features if not set(immutable) & set(one.columns))
    found = (_possible(feature, present.get(feature.name)) for feature in free)
    rules = tuple(str(rule) for rule in schema.rules)
    return PossibleChanges(context.label(node), tuple(one for one in found if one.values), rules)


def _possible(feature: Feature, present: Level | None) -> PossibleChange:
    return PossibleChange(
        feature.name,
        feature.kind,
        feature.unit,
        "" if present is None else feature.show(present),
        tuple(feature.show(level) for level in feature.reachable(present)),
        feature.step_in_words,
        feature.freedom.cost,
        feature.freedom.cost_per_step,
    )


def _in_words(values: tuple[str, ...]) -> str:
    shown = values if len(values) <= MOST_WORDS else (*values[:3], "...", values[-1])
    return ", ".join(shown)
