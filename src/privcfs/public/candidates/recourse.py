"""Recourse: sets of changes that people can make, of features within the schema and of pairs."""

from dataclasses import dataclass, replace
from typing import final

from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.candidates import CandidateRule, Candidates, Caps, check_most, subsets
from privcfs.public.candidates.change_sets import change_sets
from privcfs.public.candidates.pairs import Listed, OneHop, PairUniverse
from privcfs.public.candidates.partners import Partners
from privcfs.public.candidates.pushed_changes import PushedChanges
from privcfs.public.candidates.restriction import Restriction
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Pair


@final
@dataclass(frozen=True, slots=True)
class Recourse(CandidateRule):
    """All sets of at most `most` elements: deletions, additions and changes of features that the schema permits.

    With `pairs` off, features alone. In a context without a schema no feature changes.
    """

    most: int = 3
    deletions: PairUniverse = OneHop()
    partners: Partners = Partners()
    changes: PushedChanges = PushedChanges()
    allowed: Actionability = Actionability()
    pairs: bool = True

    def __post_init__(self) -> None:
        check_most(self.most)

    @property
    def caps(self) -> Caps:
        return Caps(self.most if self.pairs else 0, self.most, self.most)

    @property
    def keeps_schema(self) -> bool:
        return True

    def restricted(self, to: Restriction) -> "Recourse":
        partners = replace(self.partners, desired=to.desired)
        changes = replace(self.changes, desired=to.desired)
        deletions = to.deletions or self.deletions
        return replace(self, allowed=to.allowed, deletions=deletions, partners=partners, changes=changes)

    def knowing(self, own: tuple[Pair, ...]) -> "Recourse":
        return replace(self, deletions=Listed(own), partners=replace(self.partners, own=own)) if self.pairs else self

    def propose(self, context: PublicContext, target: int) -> Candidates:
        deletions: tuple[Pair, ...] = ()
        additions: tuple[Pair, ...] = ()
        if self.pairs:
            deletions = self.allowed.pairs(self.deletions.pairs(context, target))
            joined = self.partners.pairs(context, target, self.allowed)
            additions = tuple(pair for pair in joined if pair not in deletions)
        changes = self.changes.changes(context, target, self.allowed)
        return Candidates(
            target=target,
            caps=self.caps,
            deletions=deletions,
            additions=additions,
            pair_sets=subsets(len(deletions) + len(additions), self.caps.pairs),
            feature_sets=change_sets(context, target, changes, self.most),
            changes=changes,
        )
