"""Any explainer's objective as a score: what its search would lower, made a bounded utility.

Zone: private
Claim: a candidate scores the objective's gain over the empty set, cut to [0, 1] and rounded down to hundredths; one
    candidate's scores on any two graphs differ by at most 1.
Why: the cut; the empty set gains nothing, and so does everything after a failed evaluation.
Check: tests/contracts/test_utilities.py::test_no_pair_of_graphs_on_five_nodes_moves_a_score_by_more_than_the_span
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SettingsError
from privcfs.private.evaluators.outcomes import Outcomes
from privcfs.private.utilities.utility import Scores, Utility
from privcfs.public.candidates.candidates import Candidates, Caps
from privcfs.public.grid import Grid

Floats = NDArray[np.float64]
HUNDREDTHS = Grid(100, tuple(range(101)), 100)
FAR = 10.0  # a log-loss of so many nats counts as a full score


def _probability(outcomes: Outcomes) -> Floats:
    """The probability, under each candidate, of the class that is predicted without a change."""
    shifted = np.exp(outcomes.logits - outcomes.logits.max(axis=0), dtype=np.float64)
    probability: Floats = shifted[outcomes.original()] / shifted.sum(axis=0)
    return probability


def _surprise(outcomes: Outcomes) -> Floats:
    surprise: Floats = -np.log(np.maximum(_probability(outcomes), 1e-300)) / FAR
    return surprise


OBJECTIVES: Mapping[str, Callable[[Outcomes], Floats]] = {
    "probability": lambda outcomes: 1 - _probability(outcomes),  # necessity: what the first class loses
    "margin": lambda outcomes: (1 - outcomes.margins()) / 2,  # the hinge of counterfactual searches
    "log-loss": _surprise,  # the loss of mask-learning explainers, turned round
}


@final
@dataclass(frozen=True, slots=True)
class Objective(Utility):
    """One of the objectives by name."""

    name: str = "probability"

    def __post_init__(self) -> None:
        if self.name not in OBJECTIVES:
            raise SettingsError(f"objective {self.name!r} is unknown; choose one of {', '.join(OBJECTIVES)}.")

    def grid(self, caps: Caps) -> Grid:  # noqa: ARG002
        return HUNDREDTHS

    def score(self, outcomes: Outcomes) -> Scores:
        reached = OBJECTIVES[self.name](outcomes)
        gained = np.clip(np.floor(100 * (reached - reached[0])), 0, 100).astype(np.int64)
        return Scores(gained, HUNDREDTHS)

    def failed(self, candidates: Candidates) -> Scores:
        """Every candidate scores as if it changed nothing."""
        return Scores(np.zeros(len(candidates), np.int64), HUNDREDTHS)
