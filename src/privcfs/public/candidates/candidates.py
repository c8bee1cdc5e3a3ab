"""The public list that a release is drawn from."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SettingsError
from privcfs.public.candidates.actionability import Actionability
from privcfs.public.context import PublicContext
from privcfs.public.interventions import EncodedChange, Intervention, Pair
from privcfs.public.labels import labels_to_dict
from privcfs.public.tabular import Row, Tabular

if TYPE_CHECKING:
    from privcfs.public.candidates.restriction import Restriction

Choice = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Caps:
    """The most pairs and the most features that one candidate of a rule may name, and the most elements in all.

    Features count alike whether they are masked or set to another value.
    """

    pairs: int
    features: int
    elements: int | None = None

    @property
    def largest(self) -> int:
        """The paper's k_max."""
        both = self.pairs + self.features
        return both if self.elements is None else min(both, self.elements)


@dataclass(frozen=True, slots=True)
class Candidates(Tabular):
    """Combinations of a pair set with a feature set, in a fixed public order; the first is the empty set.

    A pair set holds positions in `deletions + additions`, a feature set positions in `features + changes`: features
    that are masked, then features that are set to another value. Each pair set comes with all feature sets or, where
    the caps bound the elements in all, with the first so many: those that still fit.
    """

    target: int
    caps: Caps
    deletions: tuple[Pair, ...] = ()
    additions: tuple[Pair, ...] = ()
    features: tuple[int, ...] = ()
    pair_sets: tuple[Choice, ...] = ((),)
    feature_sets: tuple[Choice, ...] = ((),)
    names: Mapping[int, str] = field(default_factory=dict, repr=False, compare=False)  # public, of nodes; for people
    changes: tuple[EncodedChange, ...] = ()
    starts: NDArray[np.int64] = field(
        init=False, repr=False, compare=False
    )  # of each pair set's candidates, and the end

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", _starts(self.pair_sets, self.feature_sets, self.caps.elements))

    def __len__(self) -> int:
        return int(self.starts[-1])

    @property
    def nodes(self) -> tuple[int, ...]:
        """The target and the nodes of every pair that a candidate may name, ascending."""
        return tuple(sorted({self.target, *(node for ends in self.deletions + self.additions for node in ends)}))

    @property
    def feature_operations(self) -> int:
        """How many masks and changes the feature sets choose from."""
        return len(self.features) + len(self.changes)

    @property
    def feature_set_counts(self) -> NDArray[np.int64]:
        """With how many of the feature sets, from the first, each pair set is combined."""
        return np.diff(self.starts)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """How many elements each candidate has."""
        pair_set, feature_set = self.parts()
        sizes: NDArray[np.int64] = lengths(self.pair_sets)[pair_set] + lengths(self.feature_sets)[feature_set]
        return sizes

    def parts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The pair set and the feature set of each candidate, by position."""
        pair_set = np.repeat(np.arange(len(self.pair_sets)), self.feature_set_counts)
        return pair_set, np.arange(len(self)) - self.starts[pair_set]

    def sharing(self, position: int) -> NDArray[np.bool_]:
        """Which candidates act on a pair or a feature that the one at this position acts on."""
        pair_set, feature_set = self.parts()
        pairs = membership(self.pair_sets, len(self.deletions) + len(self.additions))
        acted_on = [("mask", one) for one in self.features] + [("change", one.change.feature) for one in self.changes]
        names = {one: number for number, one in enumerate(dict.fromkeys(acted_on))}
        subject = np.array([names[one] for one in acted_on], np.int64)
        features = membership(self.feature_sets, self.feature_operations) @ (subject[:, None] == np.arange(len(names)))
        shared_pairs = (pairs & pairs[pair_set[position]]).any(axis=1)
        shared_features = (features & features[feature_set[position]]).any(axis=1)
        found: NDArray[np.bool_] = shared_pairs[pair_set] | shared_features[feature_set]
        return found

    def __getitem__(self, position: int) -> Intervention:
        if not 0 <= position < len(self):
            raise IndexError(f"candidate {position} of {len(self)}")
        pair_set = int(np.searchsorted(self.starts, position, side="right")) - 1
        feature_set = position - int(self.starts[pair_set])
        chosen = self.pair_sets[pair_set]
        border, masks = len(self.deletions), len(self.features)
        altered = self.feature_sets[feature_set]
        return Intervention(
            delete=tuple(self.deletions[i] for i in chosen if i < border),
            add=tuple(self.additions[i - border] for i in chosen if i >= border),
            mask=tuple(self.features[i] for i in altered if i < masks),
            names=self.names,
            change=tuple(self.changes[i - masks].change for i in altered if i >= masks),
        )

    def __iter__(self) -> Iterator[Intervention]:
        return (self[position] for position in range(len(self)))

    def named(self, context: PublicContext) -> "Candidates":
        """The same candidates, which now carry the public names of their nodes."""
        return replace(self, names=context.labels(self.nodes))

    def rows(self) -> list[Row]:
        """One row for each candidate, with its number, its size and what it says."""
        return [{"candidate": number, "size": one.size, "says": str(one)} for number, one in enumerate(self)]

    @property
    def caption(self) -> str:
        """About whom, and how many."""
        return (
            f"Node {self.names.get(self.target, str(self.target))}: {len(self):,} candidates, from public data alone."
        )

    def to_dict(self, most: int) -> dict[str, Any]:
        """The list as JSON shows it everywhere: what it is made of, and its first `most` candidates."""
        return {
            "target": self.target,
            "number": len(self),
            "labels": labels_to_dict(self.names),
            "deletable": [list(pair) for pair in self.deletions],
            "addable": [list(pair) for pair in self.additions],
            "maskable": list(self.features),
            **({"changeable": [one.change.to_dict() for one in self.changes]} if self.changes else {}),
            "listed": [self[position].to_dict() for position in range(min(most, len(self)))],
        }


class CandidateRule(ABC):
    """Proposes candidates from public data alone: it is never given a graph, so it cannot read an edge."""

    @property
    @abstractmethod
    def caps(self) -> Caps:
        """Public bounds on the size of a candidate, whatever the target."""

    @property
    def allowed(self) -> Actionability:
        """Which nodes and features candidates may name; by default all."""
        return Actionability()

    @property
    def keeps_schema(self) -> bool:
        """Whether every candidate is a change that the schema of the context permits; by default not."""
        return False

    @abstractmethod
    def propose(self, context: PublicContext, target: int) -> Candidates:
        """The candidates for one target."""

    def restricted(self, to: "Restriction") -> "CandidateRule":  # noqa: ARG002
        """The same rule within the owner's restriction; a rule that cannot keep one refuses it."""
        raise SettingsError(
            "vault file: [actionable] and metadata need candidates that are sets or ladders, such as small-sets."
        )

    def knowing(self, own: tuple[Pair, ...]) -> "CandidateRule":  # noqa: ARG002
        """The same rule for a person who knows all pairs of her own, which may be deleted in the place of public ones.

        A rule without deletable pairs and partners stays as it is.
        """
        return self


def check_most(most: int) -> None:
    """Refuses a rule whose answers could name nothing."""
    if most < 1:
        raise SettingsError(f"most is {most}; an answer needs room for at least one element.")


@lru_cache(maxsize=64)
def subsets(count: int, most: int) -> tuple[Choice, ...]:
    """Subsets of range(count) with at most `most` members: smaller first, then in lexicographic order."""
    return tuple(choice for size in range(most + 1) for choice in combinations(range(count), size))


@lru_cache(maxsize=64)
def lengths(sets: tuple[Choice, ...]) -> NDArray[np.int64]:
    """How many members each public set has."""
    found = np.array([len(chosen) for chosen in sets], np.int64)
    found.flags.writeable = False
    return found


@lru_cache(maxsize=64)
def _starts(pair_sets: tuple[Choice, ...], feature_sets: tuple[Choice, ...], most: int | None) -> NDArray[np.int64]:
    """Where the candidates of each pair set start, and the end, if each has at most so many elements in all."""
    room = np.full(len(pair_sets), len(feature_sets))
    if most is not None:
        room = np.searchsorted(np.maximum.accumulate(lengths(feature_sets)), most - lengths(pair_sets), side="right")
    starts = np.concatenate([[0], np.cumsum(room)])
    starts.flags.writeable = False
    return starts


@lru_cache(maxsize=64)
def membership(sets: tuple[Choice, ...], universe: int) -> NDArray[np.bool_]:
    """One row per public set, one column per member of the universe."""
    table = np.zeros((len(sets), universe), np.bool_)
    rows = np.repeat(np.arange(len(sets)), [len(chosen) for chosen in sets])
    table[rows, [position for chosen in sets for position in chosen]] = True
    table.flags.writeable = False
    return table
