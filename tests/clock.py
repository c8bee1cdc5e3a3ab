"""The broken twin of an allowance: a clock, as version 0.1 had, gives evaluations up by the load of other questions."""

from time import monotonic

from privcfs.private.allowance import Overrun


class Clock:
    """Ends an evaluation after `seconds` of real time, whatever was counted."""

    def __init__(self, seconds: float) -> None:
        self._end = monotonic() + seconds

    def spend(self, _units: int) -> None:
        if monotonic() > self._end:
            raise Overrun
