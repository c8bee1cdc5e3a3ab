"""Selection in stages: what a rule offers on top of an earlier answer, which is public by then."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.candidates import CandidateRule, Candidates, Caps, Choice
from privcfs.public.candidates.change_sets import kept_together
from privcfs.public.context import PublicContext
from privcfs.public.interventions import EncodedChange, Intervention
from privcfs.public.schema.of_node import encoded_changes


@final
@dataclass(frozen=True, slots=True)
class Beyond(CandidateRule):
    """The earlier answer as it is, and joined with each pair set and each feature set of a rule."""

    start: Intervention
    rule: CandidateRule

    @property
    def allowed(self) -> Actionability:
        return self.rule.allowed

    @property
    def keeps_schema(self) -> bool:
        return self.rule.keeps_schema

    @property
    def caps(self) -> Caps:
        more = self.rule.caps
        return Caps(
            more.pairs + len(self.start.delete) + len(self.start.add),
            more.features + len(self.start.mask) + len(self.start.change),
            None if more.elements is None else more.elements + self.start.size,
        )

    def propose(self, context: PublicContext, target: int) -> Candidates:
        more, start = self.rule.propose(context, target), self.start
        deletions = tuple(dict.fromkeys(start.delete + tuple(one for one in more.deletions if one not in start.add)))
        additions = tuple(dict.fromkeys(start.add + tuple(one for one in more.additions if one not in start.delete)))
        features = tuple(dict.fromkeys(start.mask + more.features))
        begun = encoded_changes(context, target, start.change)
        changes = tuple(dict.fromkeys(begun + more.changes))
        pairs = more.deletions + more.additions
        offered = [[pairs[number] for number in chosen] for chosen in more.pair_sets]
        altered = more.features + more.changes
        offered_features = [[altered[number] for number in chosen] for chosen in more.feature_sets]
        feature_sets = _grown(features + changes, start.mask + begun, offered_features)
        return Candidates(
            target=target,
            caps=self.caps,
            deletions=deletions,
            additions=additions,
            features=features,
            pair_sets=_grown(deletions + additions, start.delete + start.add, offered),
            feature_sets=feature_sets if not changes else _kept(feature_sets, len(features), context, target, changes),
            changes=changes,
        )


def _kept(
    sets: tuple[Choice, ...],
    masks: int,
    context: PublicContext,
    target: int,
    changes: tuple[EncodedChange, ...],
) -> tuple[Choice, ...]:
    """The sets whose changes may be made together; the first `masks` positions are masks."""
    parts = [tuple(position - masks for position in one if position >= masks) for one in sets]
    may_be = set(kept_together(context, target, changes, parts))
    return tuple(one for one, part in zip(sets, parts, strict=True) if part in may_be)


def _grown(
    universe: Sequence[object], start: Sequence[object], offered: Iterable[Sequence[object]]
) -> tuple[Choice, ...]:
    """Positions in the universe: the empty set, and the start together with each set that is offered."""
    where = {one: position for position, one in enumerate(universe)}
    joined = {tuple(sorted({where[one] for one in (*start, *chosen)})) for chosen in offered}
    return ((), *sorted(joined - {()}, key=lambda one: (len(one), one)))
