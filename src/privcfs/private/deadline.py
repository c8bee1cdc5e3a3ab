"""A public limit on how long one evaluation may take.

Zone: private
Claim: an evaluation that overruns its limit ends in an exception, which the vault turns into public scores.
Why: evaluators call `check` between chunks and at the end.
Check: tests/gate/test_vault.py::test_an_overrunning_evaluation_is_drawn_from_as_usual
"""

from time import monotonic
from typing import final


class Overrun(Exception):
    """Never leaves the vault."""


@final
class Deadline:
    """`seconds` from now."""

    __slots__ = ("_end",)

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds

    def check(self) -> None:
        """Raises once the time is over."""
        if monotonic() > self._end:
            raise Overrun


UNHURRIED = Deadline(float("inf"))  # For evaluations of public graphs, which are part of no answer's law.
