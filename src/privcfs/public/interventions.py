"""What a release says: which pairs to delete, which to add, which features of the target to mask."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from operator import index
from typing import Any

from privcfs.errors import InputError

Pair = tuple[int, int]
NOTHING = "no intervention"


def pair(u: int, w: int) -> Pair:
    """The undirected pair, smaller node first."""
    if u == w:
        raise InputError(f"a pair joins two nodes, not node {u} to itself; name two different nodes.")
    return (u, w) if u < w else (w, u)


@dataclass(frozen=True, slots=True)
class Intervention:
    """Which pairs to delete, which to add, which features of the target to mask; each sorted and without repetition.

    Deleting an absent edge or adding a present one changes nothing, so an intervention asserts no edge.

    Attributes:
        delete: Pairs of node numbers. Default: none.
        add: Pairs of node numbers. Default: none.
        mask: Numbers of features that are set to 0. Default: none.
        names: Public names of nodes, for people. Default: none. Interventions that differ in names alone are equal.

    Raises:
        InputError: A pair or a feature is not given in whole numbers, joins a node to itself, or is deleted and added.
    """

    delete: tuple[Pair, ...] = ()
    add: tuple[Pair, ...] = ()
    mask: tuple[int, ...] = ()
    names: Mapping[int, str] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        try:
            for name in ("delete", "add"):
                pairs = {pair(index(u), index(w)) for u, w in getattr(self, name)}
                object.__setattr__(self, name, tuple(sorted(pairs)))
            object.__setattr__(self, "mask", tuple(sorted({index(feature) for feature in self.mask})))
        except (TypeError, ValueError):
            raise InputError("an intervention names pairs of node numbers and feature numbers, all whole.") from None
        if both := set(self.delete) & set(self.add):
            raise InputError(f"pair {min(both)} is both deleted and added; keep one of the two.")

    @property
    def size(self) -> int:
        """How many elements it has."""
        return len(self.delete) + len(self.add) + len(self.mask)

    @property
    def operations(self) -> frozenset[tuple[str, object]]:
        """The kind of each operation, and the pair or the feature that it acts on."""
        return frozenset((kind, one) for kind in ("delete", "add", "mask") for one in getattr(self, kind))

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
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Iterable[Any]], names: Mapping[int, str] | None = None) -> "Intervention":
        """Reads what `to_dict` writes.

        Args:
            fields: The lists `delete`, `add` and `mask`.
            names: Public names of its nodes. By default None: no names.

        Returns:
            The intervention.
        """
        delete, add = (tuple(pair(int(u), int(w)) for u, w in fields[name]) for name in ("delete", "add"))
        return cls(delete, add, tuple(int(feature) for feature in fields["mask"]), names or {})

    def elements(self) -> list[str]:
        """Each element in words, such as `add u1 - u2`: the spaces keep pairs legible where names contain a hyphen."""
        pairs = [("delete", *ends) for ends in self.delete] + [("add", *ends) for ends in self.add]
        lines = [f"{verb} {self._name(u)} - {self._name(w)}" for verb, u, w in pairs]
        return lines + [f"mask feature {feature}" for feature in self.mask]

    def in_numbers(self) -> str:
        """The text that ledgers keep of it: the same whatever the names, and the same since version 0.1."""
        parts = [f"delete {u}-{w}" for u, w in self.delete] + [f"add {u}-{w}" for u, w in self.add]
        parts += [f"mask feature {feature}" for feature in self.mask]
        return ", ".join(parts) or NOTHING

    def __str__(self) -> str:
        return ", ".join(self.elements()) or NOTHING

    def _name(self, node: int) -> str:
        return self.names.get(node, str(node))
