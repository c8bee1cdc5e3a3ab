"""Every set of at most so many deletions, additions and masks."""

from dataclasses import dataclass
from typing import final

from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.candidates import CandidateRule, Candidates, Caps, check_most, subsets
from privcfs.public.candidates.pairs import OneHop, PairUniverse
from privcfs.public.candidates.partners import Partners
from privcfs.public.candidates.top_influence import FeatureUniverse, TopInfluence
from privcfs.public.context import PublicContext


@final
@dataclass(frozen=True, slots=True)
class SmallSets(CandidateRule):
    """All sets of at most `most` elements of three public universes."""

    most: int = 2
    deletions: PairUniverse = OneHop()
    partners: Partners = Partners()
    features: FeatureUniverse = TopInfluence()
    allowed: Actionability = Actionability()

    def __post_init__(self) -> None:
        check_most(self.most)

    @property
    def caps(self) -> Caps:
        return Caps(self.most, self.most, self.most)

    def propose(self, context: PublicContext, target: int) -> Candidates:
        deletions = self.allowed.pairs(self.deletions.pairs(context, target))
        joined = self.partners.pairs(context, target, self.allowed)
        additions = tuple(pair for pair in joined if pair not in deletions)
        features = self.allowed.features(self.features.features(context, target))
        return Candidates(
            target=target,
            caps=self.caps,
            deletions=deletions,
            additions=additions,
            features=features,
            pair_sets=subsets(len(deletions) + len(additions), self.most),
            feature_sets=subsets(len(features), self.most),
        )
