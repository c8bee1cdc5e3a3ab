"""Sets of up to five elements without their number exploding: for each class, the best partners one after another."""

from dataclasses import dataclass, replace
from itertools import combinations
from typing import final

from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.candidates import CandidateRule, Candidates, Caps, Choice, check_most, subsets
from privcfs.public.candidates.pairs import OneHop, PairUniverse
from privcfs.public.candidates.partners import Around, look_around
from privcfs.public.candidates.restriction import Restriction
from privcfs.public.candidates.top_influence import FeatureUniverse, TopInfluence
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Pair, pair


@final
@dataclass(frozen=True, slots=True)
class Ladders(CandidateRule):
    """For each class: its first partners, with the first deletions that clear its way, with sets of masks.

    Every single pair is there too, and every largest set of the first partners and `spare` more: hidden pairs may have
    made some of them weaker than they look. Partners are ordered by how far they pull towards the class, deletions by
    how far the other end pulls away from it, both on the snapshot graph.
    """

    most: int = 5
    spare: int = 2
    deletions: PairUniverse = OneHop()
    features: FeatureUniverse = TopInfluence(3)
    allowed: Actionability = Actionability()

    def __post_init__(self) -> None:
        check_most(self.most)

    @property
    def caps(self) -> Caps:
        return Caps(self.most, min(self.most, self.features.most), self.most)

    def restricted(self, to: Restriction) -> "Ladders":
        return replace(self, allowed=to.allowed, deletions=to.deletions or self.deletions)

    def propose(self, context: PublicContext, target: int) -> Candidates:
        deletions = self.allowed.pairs(self.deletions.pairs(context, target))
        features = self.allowed.features(self.features.features(context, target))
        around = look_around(context, target, self.allowed, deletions)
        rungs = [
            [
                one
                for node in around.nearest_to(towards)[: self.most + self.spare]
                if (one := pair(target, int(node))) not in deletions
            ]
            for towards in range(context.number_of_classes)
        ]
        additions = tuple(dict.fromkeys(one for rung in rungs for one in rung))
        position = {one: number for number, one in enumerate(deletions + additions)}
        sets: set[Choice] = {(number,) for number in position.values()}
        for towards, rung in enumerate(rungs):
            clearing = _clearing(around, target, towards, deletions)
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
        """The first so many of both, together at most `most`."""
        return {
            tuple(sorted(adds[:added] + deletes[:deleted]))
            for added in range(len(adds) + 1)
            for deleted in range(min(len(deletes), self.most - added) + 1)
        }


def _clearing(around: Around, target: int, towards: int, deletions: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """Deletions by how little the other end pulls towards the class."""

    def pull(one: Pair) -> float:
        return min(around.lead(end, towards) for end in one if end != target)

    return tuple(sorted(deletions, key=lambda one: (pull(one), one)))
