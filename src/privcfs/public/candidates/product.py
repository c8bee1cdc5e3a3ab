"""The paper's support: every small set of deletable pairs with every small set of maskable features."""

from dataclasses import dataclass
from typing import final

from privcfs.errors import SettingsError
from privcfs.public.candidates.candidates import CandidateRule, Candidates, Caps, subsets
from privcfs.public.candidates.pairs import OneHop, PairUniverse
from privcfs.public.candidates.top_influence import FeatureUniverse, TopInfluence
from privcfs.public.context import PublicContext


@final
@dataclass(frozen=True, slots=True)
class Product(CandidateRule):
    """At most `most_pairs` of the pair universe joined with at most `most_features` of the feature universe."""

    pairs: PairUniverse = OneHop()
    features: FeatureUniverse = TopInfluence()
    most_pairs: int = 2
    most_features: int = 3

    def __post_init__(self) -> None:
        if self.most_pairs < 0 or self.most_features < 0:
            raise SettingsError("most_pairs and most_features must not be negative.")

    @property
    def caps(self) -> Caps:
        return Caps(self.most_pairs, self.most_features)

    def propose(self, context: PublicContext, target: int) -> Candidates:
        deletions = self.pairs.pairs(context, target) if self.most_pairs else ()
        features = self.features.features(context, target) if self.most_features else ()
        return Candidates(
            target=target,
            caps=self.caps,
            deletions=deletions,
            features=features,
            pair_sets=subsets(len(deletions), self.most_pairs),
            feature_sets=subsets(len(features), self.most_features),
        )
