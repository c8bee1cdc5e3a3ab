"""What a release would be drawn from, for tests that may look: candidates, which of them flip, scores, exact laws."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privcfs import Method, PrivateGraph, PublicContext
from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.private.allowance import UNLIMITED
from privcfs.private.evaluators import evaluate
from privcfs.private.utilities.utility import Scores
from privcfs.public.candidates.candidates import Candidates


@dataclass(frozen=True)
class Seen:
    """Everything private about one question."""

    context: PublicContext
    method: Method
    candidates: Candidates
    flips: NDArray[np.bool_]
    scores: Scores

    def mechanism(self, epsilon: str) -> Mechanism:
        return self.method.prepare(self.context, self.candidates, Fraction(epsilon)).mechanism

    def probabilities(self, epsilon: str) -> NDArray[np.float64]:
        return self.mechanism(epsilon).probabilities(self.scores, Fraction(epsilon))

    def exact_probabilities(self, epsilon: str) -> list[Fraction]:
        return self.mechanism(epsilon).exact_probabilities(self.scores, Fraction(epsilon))


def look(graph: PrivateGraph, context: PublicContext, target: int, method: Method) -> Seen:
    candidates = method.candidates.propose(context, target)
    outcomes = evaluate(graph, context, candidates, UNLIMITED)
    return Seen(context, method, candidates, method.utility.valid(outcomes), method.utility.score(outcomes))
