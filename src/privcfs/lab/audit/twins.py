"""Deliberately broken parts. Each looks right, and the check named beside it must reject it. Never use one."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, final

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.mechanisms.exponential import Exponential
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.randomness import Randomness
from privcfs.private.deadline import Deadline
from privcfs.private.graph import PrivateGraph
from privcfs.private.outcomes import evaluate
from privcfs.private.utilities.utility import Scores
from privcfs.public.candidates.candidates import CandidateRule, Candidates, Caps
from privcfs.public.candidates.product import Product
from privcfs.public.context import PublicContext


@final
@dataclass(frozen=True, slots=True)
class HalfSensitivity(Mechanism):
    """Believes that scores move by half their span. Rejected by hostile scores; it passes the paper's own check."""

    name: ClassVar[str] = "half sensitivity"

    honest: Exponential = Exponential()

    def draw(self, scores: Scores, epsilon: Fraction, randomness: Randomness) -> int:
        return self.honest.draw(_halved(scores), epsilon, randomness)

    def probabilities(self, scores: Scores, epsilon: Fraction) -> NDArray[np.float64]:
        return self.honest.probabilities(_halved(scores), epsilon)

    def exact_probabilities(self, scores: Scores, epsilon: Fraction) -> list[Fraction]:
        return self.honest.exact_probabilities(_halved(scores), epsilon)

    def advantage(self, epsilon: Fraction) -> float:
        return self.honest.advantage(epsilon)


def _halved(scores: Scores) -> Scores:
    return Scores(scores.unseal(), replace(scores.grid, span=scores.grid.span // 2))


@final
@dataclass(frozen=True, slots=True, eq=False)
class FilteredSupport(CandidateRule):
    """Leaves out feature sets that never flip on the private graph. Rejected by comparing supports."""

    graph: PrivateGraph
    honest: Product = Product()

    @property
    def caps(self) -> Caps:
        return self.honest.caps

    def propose(self, context: PublicContext, target: int) -> Candidates:
        proposed = self.honest.propose(context, target)
        flips = evaluate(self.graph, context, proposed, Deadline(60)).flips()
        useful = [bool(column.any()) for column in flips.T]
        kept = tuple(chosen for chosen, keep in zip(proposed.feature_sets, useful, strict=True) if keep or not chosen)
        return replace(proposed, feature_sets=kept)


@final
@dataclass(frozen=True, slots=True, eq=False)
class PrivateOrder(CandidateRule):
    """Lists real edges before absent ones. Rejected by comparing supports in order."""

    graph: PrivateGraph
    honest: Product = Product()

    @property
    def caps(self) -> Caps:
        return self.honest.caps

    def propose(self, context: PublicContext, target: int) -> Candidates:
        proposed = self.honest.propose(context, target)
        ordered = sorted(proposed.deletions, key=lambda pair: not self.graph.has_edge(*pair))
        return replace(proposed, deletions=tuple(ordered))


@final
class SeededRandomness(Randomness):
    """Starts from a known seed. Rejected by the restart test."""

    def __init__(self, seed: int = 0) -> None:
        self._generator = np.random.default_rng(seed)

    def integer(self, bits: int) -> int:
        return int.from_bytes(self._generator.bytes((bits + 7) // 8), "big") >> (-bits % 8)

    def words(self, count: int) -> NDArray[np.uint64]:
        return self._generator.integers(0, 2**64, count, np.uint64)
