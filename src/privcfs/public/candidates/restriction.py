"""What the owner asks of every candidate: what it may name, which pairs it may delete, and the class to reach."""

from dataclasses import dataclass
from typing import final

from privcfs.public.candidates.actionability import Actionability
from privcfs.public.candidates.pairs import PairUniverse
from privcfs.public.goals import Goal


@final
@dataclass(frozen=True, slots=True)
class Restriction:
    """Public settings of the owner, the same for every private graph."""

    allowed: Actionability = Actionability()
    desired: Goal = None  # the class or classes to reach; any other than the present one, where there is none
    deletions: PairUniverse | None = None  # the pairs that may be deleted; the rule's own, where there is none
