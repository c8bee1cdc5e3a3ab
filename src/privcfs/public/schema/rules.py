"""Rules between features: what has to hold of several changes that are made together."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, final

from privcfs.public.schema.amounts import show_amount
from privcfs.public.schema.feature import Level

Levels = Mapping[str, Level]  # by name of feature
MOVES = ("rise", "fall", "change")


def moves(how: str, before: Level, after: Level) -> bool:
    """Whether a feature rises, falls or changes."""
    return {"rise": after > before, "fall": after < before, "change": after != before}[how]


class Rule(ABC):
    """What has to hold after a change."""

    @property
    @abstractmethod
    def features(self) -> tuple[str, ...]:
        """The features that it is about."""

    @abstractmethod
    def holds(self, before: Levels, after: Levels) -> bool:
        """Whether a change from some levels to others keeps it; both have all features of the rule."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """As digests and JSON have it."""

    def keeps(self, before: Levels, changed: Levels) -> bool:
        """Whether changes keep the rule; a change of no feature of it does.

        Where a present level is secret, whether the rule holds is secret too. No such change is offered.
        """
        touched = [name for name in self.features if name in changed]
        if not touched:
            return True
        return all(name in before for name in self.features) and self.holds(before, {**before, **changed})


@final
@dataclass(frozen=True, slots=True)
class Together(Rule):
    """If one feature rises, falls or changes, then another one must do so, or may not."""

    first: str
    first_moves: str
    second: str
    second_moves: str
    must: bool

    @property
    def features(self) -> tuple[str, ...]:
        return (self.first, self.second)

    def holds(self, before: Levels, after: Levels) -> bool:
        if not moves(self.first_moves, before[self.first], after[self.first]):
            return True
        return moves(self.second_moves, before[self.second], after[self.second]) == self.must

    def to_dict(self) -> dict[str, Any]:
        word = "must" if self.must else "may_not"
        return {f"if_{self.first_moves}s": self.first, f"{word}_{self.second_moves}": self.second}

    def __str__(self) -> str:
        word = "must" if self.must else "may not"
        return f"if {self.first} {self.first_moves}s, {self.second} {word} {self.second_moves}"


@final
@dataclass(frozen=True, slots=True)
class Sum(Rule):
    """The sum of several numbers stays within bounds."""

    terms: tuple[str, ...]
    at_least: Fraction | None
    at_most: Fraction | None

    @property
    def features(self) -> tuple[str, ...]:
        return self.terms

    def holds(self, before: Levels, after: Levels) -> bool:  # noqa: ARG002
        total = sum((after[name] for name in self.terms), Fraction(0))
        return (self.at_least is None or total >= self.at_least) and (self.at_most is None or total <= self.at_most)

    def to_dict(self) -> dict[str, Any]:
        bounds = {"at_least": self.at_least, "at_most": self.at_most}
        named = {key: show_amount(value) for key, value in bounds.items() if value is not None}
        return {"sum": list(self.terms), **named}

    def __str__(self) -> str:
        least = "" if self.at_least is None else f" is at least {show_amount(self.at_least)}"
        most = "" if self.at_most is None else f" is at most {show_amount(self.at_most)}"
        return f"the sum of {', '.join(self.terms)}{least}{' and' if least and most else ''}{most}"
