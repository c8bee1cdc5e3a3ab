"""Selection in stages: what a rule offers on top of an earlier answer, which is public by then."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import final

from privcfs.public.candidates.candidates import CandidateRule, Candidates, Caps, Choice
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Intervention


@final
@dataclass(frozen=True, slots=True)
class Beyond(CandidateRule):
    """The earlier answer as it is, and joined with each pair set and each feature set of a rule."""

    start: Intervention
    rule: CandidateRule

    @property
    def caps(self) -> Caps:
        more = self.rule.caps
        return Caps(
            more.pairs + len(self.start.delete) + len(self.start.add),
            more.features + len(self.start.mask),
            None if more.elements is None else more.elements + self.start.size,
        )

    def propose(self, context: PublicContext, target: int) -> Candidates:
        more, start = self.rule.propose(context, target), self.start
        deletions = tuple(dict.fromkeys(start.delete + tuple(one for one in more.deletions if one not in start.add)))
        additions = tuple(dict.fromkeys(start.add + tuple(one for one in more.additions if one not in start.delete)))
        features = tuple(dict.fromkeys(start.mask + more.features))
        pairs = more.deletions + more.additions
        offered = [[pairs[number] for number in chosen] for chosen in more.pair_sets]
        masked = [[more.features[number] for number in chosen] for chosen in more.feature_sets]
        return Candidates(
            target=target,
            caps=self.caps,
            deletions=deletions,
            additions=additions,
            features=features,
            pair_sets=_grown(deletions + additions, start.delete + start.add, offered),
            feature_sets=_grown(features, start.mask, masked),
        )


def _grown(
    universe: Sequence[object], start: Sequence[object], offered: Iterable[Sequence[object]]
) -> tuple[Choice, ...]:
    """Positions in the universe: the empty set, and the start together with each set that is offered."""
    where = {one: position for position, one in enumerate(universe)}
    joined = {tuple(sorted({where[one] for one in (*start, *chosen)})) for chosen in offered}
    return ((), *sorted(joined - {()}, key=lambda one: (len(one), one)))
