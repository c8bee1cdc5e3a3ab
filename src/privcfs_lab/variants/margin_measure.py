"""The plain alternative to imagined graphs: a base measure that falls with the margin left on the snapshot graph.

Certifies: the same as any public base measure. Operations: those of the list.
"""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, final

import numpy as np

from privcfs.gate.guidance import WHOLE, Bools, Guide, Prepared
from privcfs.gate.mechanisms.exponential import Exponential
from privcfs.gate.mechanisms.rank_profile import SubsetSelection
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.graph import PrivateGraph
from privcfs.private.utilities.utility import Utility
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext


@final
@dataclass(frozen=True, slots=True)
class MarginMeasure(Guide):
    """Weight e**(-margin / temperature), the empty set as if its margin were 1, and a fixed share in front."""

    name: ClassVar[str] = "subset-selection by margin"

    temperature: float = 0.4
    share: Fraction = Fraction(1, 4)

    def prepare(
        self,
        context: PublicContext,
        candidates: Candidates,
        utility: Utility,  # noqa: ARG002
        epsilon: Fraction,  # noqa: ARG002
        allowed: Bools | None = None,
    ) -> Prepared:
        snapshot = PrivateGraph.from_snapshot(context.snapshot)
        margins = evaluate(snapshot, context, candidates, UNLIMITED).margins()
        margins[0] = 1
        weights = np.exp((margins.min() - margins) / self.temperature)
        base = np.maximum(np.rint(weights * WHOLE), 1).astype(np.int64)
        base = base if allowed is None else base * allowed
        return Prepared(SubsetSelection(self.share, tuple(base.tolist())))


@final
@dataclass(frozen=True, slots=True)
class Scored(Guide):
    """Another guide's base measure, drawn by the exponential mechanism: what the order of ranks adds is left out."""

    guide: Guide
    name: ClassVar[str] = "exponential under a base measure"

    def prepare(
        self,
        context: PublicContext,
        candidates: Candidates,
        utility: Utility,
        epsilon: Fraction,
        allowed: Bools | None = None,
    ) -> Prepared:
        prepared = self.guide.prepare(context, candidates, utility, epsilon, allowed).mechanism
        assert isinstance(prepared, SubsetSelection)
        return Prepared(Exponential(prepared.base))
