"""The paper's support with masks that do nothing: features that the target does not have take the place of its own.

Certifies: the same as any public candidate list. It exists as evidence: the paper's printed joint numbers look like it.
Operations: delete at most two pairs; the masks only dilute.
"""

from dataclasses import dataclass, replace
from typing import final

import numpy as np

from privcfs.public.candidates.candidates import CandidateRule, Candidates, Caps
from privcfs.public.candidates.product import Product
from privcfs.public.context import PublicContext


@final
@dataclass(frozen=True, slots=True)
class InertMasks(CandidateRule):
    """As many candidates as the joint support, and the reach of the edge-only one."""

    rule: Product = Product()

    @property
    def caps(self) -> Caps:
        return self.rule.caps

    def propose(self, context: PublicContext, target: int) -> Candidates:
        proposed = self.rule.propose(context, target)
        owned, _ = context.feature_row(target)
        absent = np.setdiff1d(np.arange(context.model.number_of_features), owned)[: len(proposed.features)]
        if len(absent) < len(proposed.features):
            raise ValueError("the target has too many features for masks that do nothing")
        return replace(proposed, features=tuple(int(number) for number in absent))
