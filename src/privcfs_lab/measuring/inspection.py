"""For the owner's eyes: every candidate with its prediction, utility and exact release probability."""

from dataclasses import dataclass
from fractions import Fraction
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.gate.mechanisms.mechanism import Mechanism
from privcfs.gate.method import Method
from privcfs.private.allowance import Allowance
from privcfs.private.evaluators import evaluate
from privcfs.private.evaluators.outcomes import Outcomes
from privcfs.private.graph import PrivateGraph
from privcfs.private.utilities.utility import Scores
from privcfs.public.candidates.candidates import Candidates
from privcfs.public.context import PublicContext, Readable
from privcfs.public.epsilon import Price, parse_epsilon


@final
@dataclass(frozen=True, slots=True, eq=False)
class Inspection:
    """What no release may show. Arrays have one entry per candidate, in public order."""

    candidates: Candidates
    original: int
    runner_up: int  # the second most likely class on the untouched graph
    predictions: NDArray[np.int64]
    flips: NDArray[np.bool_]
    utilities: NDArray[np.float64]
    scores: Scores
    method: Method
    context: PublicContext

    @property
    def range(self) -> Fraction:
        """The utility's public range, the paper's sensitivity."""
        return self.scores.grid.range

    def probabilities(self, epsilon: Price) -> NDArray[np.float64]:
        """The release distribution at this price."""
        return self.mechanism(epsilon).probabilities(self.scores, parse_epsilon(epsilon))

    def mechanism(self, epsilon: Price) -> Mechanism:
        """What draws at this price."""
        return self.method.prepare(self.context, self.candidates, parse_epsilon(epsilon)).mechanism


def inspect(
    graph: PrivateGraph,
    context: PublicContext,
    target: int | str,
    method: Method | None = None,
    readable: Readable | None = None,
) -> Inspection:
    """Evaluates every candidate on the private graph and shows the result: never to an analyst.

    `readable` decides in the context's place where a model or features are secret.
    """
    method = method or Method()
    candidates = method.candidates.propose(context, context.node(target))
    outcomes = evaluate(graph, readable or context, candidates, Allowance(method.evaluation_seconds))
    scores = method.utility.score(outcomes)
    return Inspection(
        candidates,
        outcomes.original(),
        runner_up(outcomes),
        outcomes.predictions(),
        method.utility.valid(outcomes),
        scores.unseal() / scores.grid.denominator,
        scores,
        method,
        context,
    )


def runner_up(outcomes: Outcomes) -> int:
    """The class that comes second before any intervention; the only class, if there is but one."""
    scores = outcomes.logits[:, 0]
    return int(np.argsort(-scores, kind="stable")[:2][-1])
