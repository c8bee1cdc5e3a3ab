"""A public limit on the work of one evaluation, counted in units that depend on sizes alone.

Zone: private
Claim: whether an evaluation is given up is a function of the graph and of public data: not of time, memory, threads, or
    of what else the process does.
Why: evaluators compute units from the sizes of the tables that they are about to build, and spend them before they
    build them. Nothing here reads a clock. A unit is about a nanosecond of one ordinary core (each evaluator says how
    that was measured), so that a public limit can be named in nominal seconds.
Check: tests/private/test_allowance.py::test_the_count_is_the_same_whatever_else_the_process_does
"""

from typing import final

from privcfs.private.sealed import Sealed

UNITS = 10**9  # Counted units of one nominal second.


class Overrun(Exception):
    """An evaluation needs more counted work than it may do. A vault catches this, and draws from public scores."""


@final
class Allowance(Sealed):
    """At most `seconds` nominal seconds of counted work. What is spent depends on private edges, so it is sealed."""

    __slots__ = ("_limit", "spent")

    def __init__(self, seconds: float) -> None:
        self._limit, self.spent = seconds * UNITS, 0

    def spend(self, units: int) -> None:
        """Counts work that is about to be done; raises once all of it together passes the limit."""
        self.spent += int(units)
        if self.spent > self._limit:
            raise Overrun("the counted work passes the public limit")


UNLIMITED = Allowance(float("inf"))  # For evaluations of public graphs, which are part of no answer's law.
