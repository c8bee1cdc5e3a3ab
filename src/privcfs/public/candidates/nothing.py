"""The trivial rule: the empty set alone. Copy it to start a new one."""

from dataclasses import dataclass
from typing import final

from privcfs.public.candidates.candidates import CandidateRule, Candidates, Caps
from privcfs.public.context import PublicContext


@final
@dataclass(frozen=True, slots=True)
class Nothing(CandidateRule):
    """Always releases "no intervention"; says nothing about the graph."""

    @property
    def caps(self) -> Caps:
        return Caps(0, 0)

    def propose(self, context: PublicContext, target: int) -> Candidates:  # noqa: ARG002
        return Candidates(target, self.caps)
