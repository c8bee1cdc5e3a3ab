"""A lock whose waiters come first, first served.

Zone: gate
Claim: none about privacy; nobody who waits for a turn is overtaken, so one analyst's many questions hold up another's
    by at most one turn for each that came before.
Why: waiters draw numbers, and the lowest goes next; Python's own locks may give a turn back to whoever had it last.
Check: tests/gate/test_turns.py::test_whoever_came_first_goes_first
"""

from collections import deque
from threading import Condition, get_ident
from types import TracebackType
from typing import final


@final
class Turns:
    """Reentrant, as a lock that a fork takes must be."""

    def __init__(self) -> None:
        self._change = Condition()
        self._waiting: deque[object] = deque()
        self._holder, self._depth = 0, 0

    def acquire(self) -> None:
        """Waits for a turn."""
        me, number = get_ident(), object()
        with self._change:
            if self._holder == me:
                self._depth += 1
                return
            self._waiting.append(number)
            try:
                self._change.wait_for(lambda: not self._depth and self._waiting[0] is number)
            except BaseException:
                self._waiting.remove(number)
                self._change.notify_all()
                raise
            self._waiting.popleft()
            self._holder, self._depth = me, 1

    def release(self) -> None:
        """Gives the turn to whoever has waited longest."""
        with self._change:
            self._depth -= 1
            if not self._depth:
                self._holder = 0
                self._change.notify_all()

    def start_anew(self) -> None:
        """In a child of a fork: nobody waits, and nobody holds a turn."""
        self._change, self._waiting, self._holder, self._depth = Condition(), deque(), 0, 0

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()
