"""Sets of up to five elements without their number exploding: for each class, the best partners one after another."""

from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import final

from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.candidates import CandidateRule, Candidates, Caps, Choice, check_most, subsets
from privcfs.public.candidates.pairs import Listed, OneHop, PairUniverse
from privcfs.public.candidates.partners import ScoredPartners, score_partners
from privcfs.public.candidates.restriction import Restriction
from privcfs.public.candidates.top_influence import FeatureUniverse, TopInfluence
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Pair, pair


@final
@dataclass(frozen=True, slots=True)
class Ladders(CandidateRule):
    """For each class, its best partners combined with the deletions that help it most and with sets of masks.

    Partners are ordered by how far they pull the target towards the class, deletions by how far their other end pulls
    it away, both on the snapshot graph. The first i partners are combined with the first j deletions, for all i and j
    within the cap. Every single pair is a candidate too, and so is every set of `most` partners out of the first `most`
    and `spare` more, because hidden pairs may have made some of them weaker than they look.
    With `own`, all pairs of the target as the person concerned knows them, these take the place of its snapshot pairs.
    """

    most: int = 5
    spare: int = 2
    deletions: PairUniverse = OneHop()
    features: FeatureUniverse = TopInfluence(3)
    allowed: Actionability = Actionability()
    own: tuple[Pair, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_most(self.most)

    @property
    def caps(self) -> Caps:
        return Caps(self.most, min(self.most, self.features.most), self.most)

    def restricted(self, to: Restriction) -> "Ladders":
        return replace(self, allowed=to.allowed, deletions=to.deletions or self.deletions)

    def knowing(self, own: tuple[Pair, ...]) -> "Ladders":
        return replace(self, deletions=Listed(own), own=own)

    def propose(self, context: PublicContext, target: int) -> Candidates:
        deletions = self.allowed.pairs(self.deletions.pairs(context, target))
        features = self.allowed.features(self.features.features(context, target))
        scored = score_partners(context, target, self.allowed, deletions, self.own)
        rungs = [
            [
                one
                for node in scored.rising_to(towards)[: self.most + self.spare]
                if (one := pair(target, int(node))) not in deletions
            ]
            for towards in range(context.number_of_classes)
        ]
        additions = tuple(dict.fromkeys(one for rung in rungs for one in rung))
        position = {one: number for number, one in enumerate(deletions + additions)}
        sets: set[Choice] = {(number,) for number in position.values()}
        for towards, rung in enumerate(rungs):
            clearing = _clearing(scored, target, towards, deletions)
            partners = [position[one] for one in rung]
            sets |= self._ladder(partners[: self.most], [position[one] for one in clearing])
            sets |= {tuple(sorted(chosen)) for chosen in combinations(partners, self.most)}
        return Candidates(
            target=target,
            caps=self.caps,
            deletions=deletions,
            additions=additions,
            features=features,
            pair_sets=tuple(sorted(sets | {()}, key=lambda chosen: (len(chosen), chosen))),
            feature_sets=subsets(len(features), self.caps.features),
        )

    def _ladder(self, adds: list[int], deletes: list[int]) -> set[Choice]:
        """The first i additions with the first j deletions, for all i and j with i + j at most `most`."""
        return {
            tuple(sorted(adds[:added] + deletes[:deleted]))
            for added in range(len(adds) + 1)
            for deleted in range(min(len(deletes), self.most - added) + 1)
        }


def _clearing(scored: ScoredPartners, target: int, towards: int, deletions: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """Deletions in order of how little the other end pulls towards the class."""

    def pull(one: Pair) -> float:
        return min(scored.margin(end, towards) for end in one if end != target)

    return tuple(sorted(deletions, key=lambda one: (pull(one), one)))
