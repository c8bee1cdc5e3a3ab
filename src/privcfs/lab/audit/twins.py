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
from privcfs.private.outcomes.outcomes import Outcomes
from privcfs.private.utilities.gated import Gated
from privcfs.private.utilities.utility import Scores, Utility
from privcfs.public.candidates.candidates import CandidateRule, Candidates, Caps
from privcfs.public.candidates.product import Product
from privcfs.public.context import PublicContext
from privcfs.public.grid import Grid


@final
@dataclass(frozen=True, slots=True)
class Overconfident(Mechanism):
    """Draws as if scores moved by `factor` times less than they do.

    Factor 2, half the sensitivity, is rejected by hostile scores and passes the paper's own check; a large factor is
    rejected by every comparison of two graphs.
    """

    factor: int = 2
    honest: Exponential = Exponential()
    name: ClassVar[str] = "overconfident"

    def draw(self, scores: Scores, epsilon: Fraction, randomness: Randomness) -> int:
        return self.honest.draw(scores, self.factor * epsilon, randomness)

    def probabilities(self, scores: Scores, epsilon: Fraction) -> NDArray[np.float64]:
        return self.honest.probabilities(scores, self.factor * epsilon)

    def exact_probabilities(self, scores: Scores, epsilon: Fraction) -> list[Fraction]:
        return self.honest.exact_probabilities(scores, self.factor * epsilon)

    def advantage(self, epsilon: Fraction) -> float:
        return self.honest.advantage(epsilon)


@final
@dataclass(frozen=True, slots=True)
class Understated(Utility):
    """Claims half the range that its scores have. Rejected by measuring how far scores move."""

    honest: Gated = Gated()

    def grid(self, caps: Caps) -> Grid:
        grid = self.honest.grid(caps)
        return replace(grid, span=grid.span // 2)

    def score(self, outcomes: Outcomes) -> Scores:
        return Scores(self.honest.score(outcomes).unseal(), self.grid(outcomes.candidates.caps))

    def failed(self, candidates: Candidates) -> Scores:
        return Scores(self.honest.failed(candidates).unseal(), self.grid(candidates.caps))


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
