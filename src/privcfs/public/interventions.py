"""What a release says: which pairs to delete, which to add, which features of the target to mask or to change."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from operator import index
from typing import Any, final

from privcfs.errors import InputError

Pair = tuple[int, int]
NOTHING = "no intervention"


def pair(u: int, w: int) -> Pair:
    """The undirected pair, smaller node first."""
    if u == w:
        raise InputError(f"a pair joins two nodes, not node {u} to itself; name two different nodes.")
    return (u, w) if u < w else (w, u)


@final
@dataclass(frozen=True, slots=True)
class FeatureChange:
    """A feature of the target that is set to a public value, in words and units of people.

    Attributes:
        feature: Its name in the schema of features.
        value: The new value in words, such as "24".
        before: The present value in words. Default: empty, where features are secret. It is public where it is known,
            and changes that differ in it alone are equal.
        unit: The unit of both, such as "months". Default: none.

    Raises:
        InputError: The feature or the value is missing, or is not printable text.
    """

    feature: str
    value: str
    before: str = field(default="", compare=False, repr=False)
    unit: str = field(default="", compare=False, repr=False)

    def __post_init__(self) -> None:
        for text in (self.feature, self.value, self.before, self.unit):
            if not isinstance(text, str) or not (text.isprintable() or not text):
                raise InputError("a change names a feature and a value, both printable text.")
        if not self.feature or not self.value:
            raise InputError("a change names a feature and a value; give both.")

    def to_dict(self) -> dict[str, str]:
        """As JSON shows it."""
        optional = {"from": self.before, "unit": self.unit}
        return {"feature": self.feature, "to": self.value, **{key: text for key, text in optional.items() if text}}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "FeatureChange":
        """Reads what `to_dict` writes.

        Args:
            fields: The feature and the new value, `to`; the present value, `from`, and the unit, where they are known.

        Returns:
            The change.
        """
        return cls(fields["feature"], fields["to"], fields.get("from", ""), fields.get("unit", ""))

    def __str__(self) -> str:
        value = f"{self.value} {self.unit}" if self.unit else self.value
        return f"{self.feature}: {self.before} -> {value}" if self.before else f"set {self.feature} to {value}"


@final
@dataclass(frozen=True, slots=True)
class EncodedChange:
    """A change of a feature as evaluators need it: the numbers that columns of the feature table are set to.

    Attributes:
        change: The same in words.
        columns: Numbers of columns, each once.
        values: The new number of each column, exact in 32 bits.
        cost: What the change costs, in the owner's currency.
    """

    change: FeatureChange
    columns: tuple[int, ...]
    values: tuple[float, ...]
    cost: int = 1


@dataclass(frozen=True, slots=True)
class Intervention:
    """Which pairs to delete, which to add, which features of the target to mask and which to set to another value.

    Each kind is sorted and without repetition.

    Deleting an absent edge or adding a present one changes nothing, so an intervention asserts no edge.

    Attributes:
        delete: Pairs of node numbers. Default: none.
        add: Pairs of node numbers. Default: none.
        mask: Numbers of features that are set to 0. Default: none.
        names: Public names of nodes, for people. Default: none. Interventions that differ in names alone are equal.
        change: Features that are set to another value, in vaults with a schema of features. Default: none.

    Raises:
        InputError: A pair or a feature is not given in whole numbers, joins a node to itself, is deleted and added, or
            a feature is set to two values.
    """

    delete: tuple[Pair, ...] = ()
    add: tuple[Pair, ...] = ()
    mask: tuple[int, ...] = ()
    names: Mapping[int, str] = field(default_factory=dict, compare=False, repr=False)
    change: tuple[FeatureChange, ...] = ()

    def __post_init__(self) -> None:
        if self.change:
            self._sort_changes()
        try:
            for name in ("delete", "add"):
                pairs = {pair(index(u), index(w)) for u, w in getattr(self, name)}
                object.__setattr__(self, name, tuple(sorted(pairs)))
            object.__setattr__(self, "mask", tuple(sorted({index(feature) for feature in self.mask})))
        except (TypeError, ValueError):
            raise InputError("an intervention names pairs of node numbers and feature numbers, all whole.") from None
        if both := set(self.delete) & set(self.add):
            raise InputError(f"pair {min(both)} is both deleted and added; keep one of the two.")

    def _sort_changes(self) -> None:
        if not all(isinstance(one, FeatureChange) for one in self.change):
            raise InputError("change lists something else than changes of features; write FeatureChange(name, value).")
        distinct = {(one.feature, one.value): one for one in self.change}
        found = tuple(distinct[key] for key in sorted(distinct))
        for one, other in pairwise(found):
            if one.feature == other.feature:
                raise InputError(f"feature {one.feature!r} is set to two values; keep one of the two.")
        object.__setattr__(self, "change", found)

    def __repr__(self) -> str:
        """The text that digests of methods contain: without changes it is that of version 0.1."""
        changed = f", change={self.change!r}" if self.change else ""
        return f"Intervention(delete={self.delete!r}, add={self.add!r}, mask={self.mask!r}{changed})"

    @property
    def size(self) -> int:
        """How many elements it has."""
        return len(self.delete) + len(self.add) + len(self.mask) + len(self.change)

    @property
    def operations(self) -> frozenset[tuple[str, object]]:
        """The kind of each operation, and the pair, the feature or the change of a feature."""
        return frozenset((kind, one) for kind in ("delete", "add", "mask", "change") for one in getattr(self, kind))

    @property
    def subjects(self) -> frozenset[tuple[str, object]]:
        """The kind of each operation, and what it acts on: two changes of one feature act on the same."""
        kept = {one for one in self.operations if one[0] != "change"}
        return frozenset(kept | {("change", one.feature) for one in self.change})

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes of its pairs, ascending."""
        return tuple(sorted({node for ends in self.delete + self.add for node in ends}))

    def to_dict(self) -> dict[str, list[Any]]:
        """As JSON shows it."""
        return {
            "delete": [list(item) for item in self.delete],
            "add": [list(item) for item in self.add],
            "mask": list(self.mask),
            **({"change": [one.to_dict() for one in self.change]} if self.change else {}),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Iterable[Any]], names: Mapping[int, str] | None = None) -> "Intervention":
        """Reads what `to_dict` writes.

        Args:
            fields: The lists `delete`, `add`, `mask` and, where features are changed, `change`.
            names: Public names of its nodes. By default None: no names.

        Returns:
            The intervention.
        """
        delete, add = (tuple(pair(int(u), int(w)) for u, w in fields[name]) for name in ("delete", "add"))
        change = tuple(FeatureChange.from_dict(one) for one in fields.get("change", ()))
        return cls(delete, add, tuple(int(feature) for feature in fields["mask"]), names or {}, change)

    def elements(self) -> list[str]:
        """Each element in words, such as `add u1 - u2`: the spaces keep pairs legible where names contain a hyphen."""
        pairs = [("delete", *ends) for ends in self.delete] + [("add", *ends) for ends in self.add]
        lines = [f"{verb} {self._name(u)} - {self._name(w)}" for verb, u, w in pairs]
        return lines + [f"mask feature {feature}" for feature in self.mask] + [str(one) for one in self.change]

    def in_numbers(self) -> str:
        """The text that ledgers keep of it: the same whatever the names, and the same since version 0.1."""
        parts = [f"delete {u}-{w}" for u, w in self.delete] + [f"add {u}-{w}" for u, w in self.add]
        parts += [f"mask feature {feature}" for feature in self.mask]
        parts += [f"set {json.dumps(one.feature)} to {json.dumps(one.value)}" for one in self.change]
        return ", ".join(parts) or NOTHING

    def __str__(self) -> str:
        return ", ".join(self.elements()) or NOTHING

    def _name(self, node: int) -> str:
        return self.names.get(node, str(node))
