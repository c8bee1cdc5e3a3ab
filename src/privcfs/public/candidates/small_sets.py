"""Every set of at most so many deletions, additions and masks, or a public sample of them."""

from dataclasses import dataclass, replace
from math import comb
from typing import final

import numpy as np

from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.candidates import CandidateRule, Candidates, Caps, Choice, check_most, subsets
from privcfs.public.candidates.pairs import Listed, OneHop, PairUniverse
from privcfs.public.candidates.partners import Partners
from privcfs.public.candidates.restriction import Restriction
from privcfs.public.candidates.top_influence import FeatureUniverse, TopInfluence
from privcfs.public.context import PublicContext
from privcfs.public.interventions import Pair


@final
@dataclass(frozen=True, slots=True)
class SmallSets(CandidateRule):
    """All sets of at most `most` elements of three public universes.

    With `sampled`, only so many of the sets of two pairs and more, by a public draw that a target's name decides.
    """

    most: int = 2
    deletions: PairUniverse = OneHop()
    partners: Partners = Partners()
    features: FeatureUniverse = TopInfluence()
    allowed: Actionability = Actionability()
    sampled: int | None = None

    def __post_init__(self) -> None:
        check_most(self.most)

    @property
    def caps(self) -> Caps:
        return Caps(self.most, self.most, self.most)

    def restricted(self, to: Restriction) -> "SmallSets":
        partners = replace(self.partners, desired=to.desired)
        return replace(self, allowed=to.allowed, deletions=to.deletions or self.deletions, partners=partners)

    def knowing(self, own: tuple[Pair, ...]) -> "SmallSets":
        return replace(self, deletions=Listed(own), partners=replace(self.partners, own=own))

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
            pair_sets=self._pair_sets(context, target, len(deletions) + len(additions)),
            feature_sets=subsets(len(features), self.most),
        )

    def _pair_sets(self, context: PublicContext, target: int, count: int) -> tuple[Choice, ...]:
        if self.sampled is None or sum(comb(count, size) for size in range(2, self.most + 1)) <= self.sampled:
            return subsets(count, self.most)
        rng = np.random.default_rng([context.seed, target])
        sizes = rng.integers(2, min(self.most, count), self.sampled, endpoint=True)
        chosen = {tuple(sorted(rng.permutation(count)[:size].tolist())) for size in sizes}
        return subsets(count, 1) + tuple(sorted(chosen, key=lambda one: (len(one), one)))
