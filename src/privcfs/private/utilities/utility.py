"""How good each candidate is, on a public grid.

Zone: private
Claim: every score is a level of the utility's public grid, and one candidate's scores on any two graphs, a graph
    whose evaluation fails among them, differ by at most the grid's span.
Why: `Scores` checks the levels when it is made; each utility proves its span in its own header.
Check: tests/contracts/test_utilities.py::test_no_pair_of_graphs_on_five_nodes_moves_a_score_by_more_than_the_span
"""

from abc import ABC, abstractmethod
from typing import final

import numpy as np
from numpy.typing import NDArray

from privcfs.errors import SettingsError
from privcfs.private.evaluators.outcomes import Outcomes
from privcfs.private.sealed import Sealed
from privcfs.public.candidates.candidates import Candidates, Caps
from privcfs.public.goals import Goal
from privcfs.public.grid import Grid
from privcfs.tables.neighbours import places


@final
class Scores(Sealed):
    """One whole number per candidate, in units of the public grid."""

    __slots__ = ("_values", "grid")

    def __init__(self, values: NDArray[np.int64], grid: Grid) -> None:
        if (places(np.array(grid.levels, np.int64), values) < 0).any():
            raise ArithmeticError("a score lies outside the public grid")
        self._values, self.grid = values, grid

    def unseal(self) -> NDArray[np.int64]:
        """The values: for mechanisms alone."""
        return self._values


class Utility(ABC):
    """Never sees epsilon."""

    @property
    def desired(self) -> Goal:
        """The class or classes that an answer shall lead to; None, the default, for any other than the present one."""
        return None

    @abstractmethod
    def grid(self, caps: Caps) -> Grid:
        """The public grid for candidates within these caps."""

    @abstractmethod
    def score(self, outcomes: Outcomes) -> Scores:
        """The score of every candidate, in public order."""

    def valid(self, outcomes: Outcomes) -> NDArray[np.bool_]:
        """Whether each candidate does what is asked for."""
        return outcomes.flips()

    def towards(self, desired: Goal) -> "Utility":  # noqa: ARG002
        """The same utility where only a change to `desired` counts; one that cannot tell classes refuses."""
        raise SettingsError("vault file: actionable.desired needs the utility gated.")

    @abstractmethod
    def failed(self, candidates: Candidates) -> Scores:
        """The public scores that a failed evaluation is drawn from; they too must respect the span."""
