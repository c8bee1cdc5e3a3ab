"""What a release says: which pairs to delete, which to add, which features of the target to mask."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from operator import index
from typing import Any

from privcfs.errors import InputError

Pair = tuple[int, int]


def pair(u: int, w: int) -> Pair:
    """The undirected pair, smaller node first."""
    if u == w:
        raise InputError(f"a pair joins two nodes, not node {u} to itself; name two different nodes.")
    return (u, w) if u < w else (w, u)


@dataclass(frozen=True, slots=True)
class Intervention:
    """Delete pairs, add pairs, mask features; each sorted and unique, no pair both deleted and added.

    Deleting an absent edge or adding a present one changes nothing, so an intervention asserts no edge.
    """

    delete: tuple[Pair, ...] = ()
    add: tuple[Pair, ...] = ()
    mask: tuple[int, ...] = ()

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

    def to_dict(self) -> dict[str, list[Any]]:
        """As JSON shows it."""
        return {
            "delete": [list(item) for item in self.delete],
            "add": [list(item) for item in self.add],
            "mask": list(self.mask),
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Iterable[Any]]) -> "Intervention":
        """The inverse of `to_dict`."""
        delete, add = (tuple(pair(int(u), int(w)) for u, w in fields[name]) for name in ("delete", "add"))
        return cls(delete, add, tuple(int(feature) for feature in fields["mask"]))

    def __str__(self) -> str:
        parts = [f"delete {u}-{w}" for u, w in self.delete] + [f"add {u}-{w}" for u, w in self.add]
        parts += [f"mask feature {feature}" for feature in self.mask]
        return ", ".join(parts) if parts else "no intervention"
