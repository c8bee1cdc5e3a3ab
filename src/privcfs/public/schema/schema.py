"""A schema: all features by name, the rules between them, and what a row of the feature table says in their words."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import InputError
from privcfs.public.interventions import EncodedChange, FeatureChange
from privcfs.public.schema.feature import Feature, Level
from privcfs.public.schema.rules import Levels, Rule
from privcfs.tables.named_columns import Table
from privcfs.tables.parsing import shown


@final
@dataclass(frozen=True, slots=True, repr=False)
class Schema:
    """What every feature is called, which values it can have, and which of them a person can change it to.

    `Schema.read` reads a file; docs/recourse.md explains its format by an example.

    Attributes:
        features: The features, each with columns of its own. Columns that belong to none stay as they are.
        rules: What has to hold between features after a change. Default: nothing.
        source: What errors call it. Default: "schema".
    """

    features: tuple[Feature, ...]
    rules: tuple[Rule, ...] = ()
    source: str = "schema"

    @classmethod
    def read(cls, source: str | Path | Mapping[str, Any], columns: Sequence[str] = ()) -> "Schema":
        """Reads a schema and checks it.

        Args:
            source: A file such as "features.toml", or the same as nested dictionaries.
            columns: The names of the columns of the feature table, in order. By default those that the file lists; a
                schema may also give columns by their numbers.

        Returns:
            The schema.

        Raises:
            ContextError: The file cannot be read, or something in it is wrong; the text names the feature.
        """
        from privcfs.public.schema.reading import read_schema  # It makes schemas, so it imports this file.

        return read_schema(source, columns)

    def encode_table(self, table: Table) -> NDArray[np.float64]:
        """Turns values as people write them into what the model reads, for training a model and for a vault.

        Args:
            table: A CSV file whose columns are called like the features.

        Returns:
            The feature table: one row for each row of the file.

        Raises:
            ContextError: A feature has no column in the file, or a cell is none of its values.
        """
        from privcfs.public.schema.raw import encoded_table  # It encodes by schemas, so it imports this file.

        return encoded_table(self, table)

    @property
    def digest(self) -> str:
        """SHA-256 of everything that it says."""
        content = [[one.to_dict() for one in self.features], [one.to_dict() for one in self.rules]]
        text = json.dumps(["privcfs schema 1", *content], sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def __repr__(self) -> str:
        return f"Schema({self.digest})"

    def named(self, name: str) -> Feature | None:
        """Finds a feature.

        Args:
            name: Its name.

        Returns:
            The feature, or None where there is none of that name.
        """
        return next((one for one in self.features if one.name == name), None)

    def level_of(self, change: FeatureChange) -> Level:
        """The level that a change leads to.

        Args:
            change: A feature and a value in words.

        Returns:
            The level.

        Raises:
            InputError: There is no such feature, or it has no such value.
        """
        feature = self.named(change.feature)
        if feature is None:
            raise InputError(
                f"feature {shown(change.feature)} does not exist; choose one of "
                f"{', '.join(one.name for one in self.features)[:400]}."
            )
        level = feature.parse(change.value)
        if level is None:
            raise InputError(
                f"feature {feature.name} has no value {shown(change.value)}; choose one of {_some_of(feature)}."
            )
        return level

    def present(self, row: tuple[NDArray[np.int32], NDArray[np.float32]]) -> dict[str, Level]:
        """Reads the row of one node.

        Args:
            row: The numbers of its columns, ascending, and their values; other columns are 0.

        Returns:
            The level of each feature by name. Fixed features have none.
        """
        numbers, values = row
        found: dict[str, Level] = {}
        for feature in self.features:
            columns = np.array(feature.columns, np.int64)
            place = np.searchsorted(numbers, columns).clip(max=max(len(numbers) - 1, 0))
            here = np.zeros(len(columns))
            if len(numbers):
                here = np.where(numbers[place] == columns, values[place], 0).astype(np.float64)
            level = feature.present(here)
            if level is not None:
                found[feature.name] = level
        return found

    def encoded(self, feature: Feature, level: Level, present: Levels) -> EncodedChange:
        """A change of one feature, as people read it and as evaluators need it.

        Args:
            feature: The feature.
            level: Its new level.
            present: The present levels by name, where these are public.

        Returns:
            The change in words, and the numbers that the feature's columns are set to.
        """
        before = present.get(feature.name)
        words = FeatureChange(
            feature.name, feature.show(level), "" if before is None else feature.show(before), feature.unit
        )
        return EncodedChange(words, feature.columns, feature.encoded(level), feature.price(before, level))

    def encode(self, changes: Sequence[FeatureChange], present: Levels) -> tuple[EncodedChange, ...]:
        """The same for changes that somebody names; whether a person can make them is not asked.

        Args:
            changes: Features and values in words.
            present: The present levels by name, where these are public.

        Returns:
            The changes with their numbers.
        """
        levels = [self.level_of(one) for one in changes]
        features = [one for change in changes if (one := self.named(change.feature)) is not None]
        return tuple(self.encoded(*both, present) for both in zip(features, levels, strict=True))

    def keeps_rules(self, present: Levels, changed: Levels) -> bool:
        """Whether changes that are made together keep all rules between features.

        Args:
            present: The present levels by name, where these are public.
            changed: The new levels of the features that change.

        Returns:
            Whether they do. Where a level that a rule needs is secret, they do not.
        """
        return all(rule.keeps(present, changed) for rule in self.rules)

    def faults(self, changes: Sequence[FeatureChange], present: Levels) -> list[str]:
        """What forbids some changes that are made together.

        Args:
            changes: Features and values in words.
            present: The present levels by name, where these are public.

        Returns:
            One text for each feature and each rule; none where a person can make the changes.
        """
        found = []
        changed = {one.feature: self.level_of(one) for one in changes}
        for name, level in changed.items():
            feature = self.named(name)
            if feature is None or not feature.permits(present.get(name), level):
                found.append(f"{name} cannot be changed so")
        return found + [f"rule: {rule}" for rule in self.rules if not rule.keeps(present, changed)]

    def to_dict(self) -> dict[str, Any]:
        """As JSON shows it."""
        return {
            "digest": self.digest,
            "features": [one.to_dict() for one in self.features],
            "rules": [one.to_dict() for one in self.rules],
        }


def _some_of(feature: Feature) -> str:
    """The values of a feature in words, the first and the last where there are many."""
    words = [feature.show(level) for level in feature.levels]
    return ", ".join(words if len(words) <= 12 else [*words[:5], "...", words[-1]]) or "none, because it is fixed"
