"""What went wrong behind the answers of one vault in this process, for its owner alone.

Zone: gate
Claim: none of it is part of an answer, an error or a public endpoint.
Why: whether an evaluation fails can depend on private edges, so counts and messages leave through `Vault.failures`
    alone, which the owner's commands and endpoints read.
Check: tests/service/test_failures.py::test_the_owner_sees_failures_and_no_analyst_does
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any, final

from privcfs.forks import Order, at_fork
from privcfs.private.allowance import Overrun

MOST_MESSAGES = 20
NOTING = Lock()
at_fork(Order.FAILURES, before=NOTING.acquire, in_parent=NOTING.release, in_child=NOTING.release)


@final
@dataclass(frozen=True, slots=True)
class Failures:
    """Counts of one vault in this process. For the owner's eyes: each may depend on private edges.

    Attributes:
        given_up: Evaluations whose counted work passed the public limit; their answers were drawn from public scores.
        failed: Evaluations that failed otherwise; their answers were drawn from public scores too.
        late: Answers that left after the public answering time. Their law is that of any other answer.
        latest: Messages about the latest of them, the oldest first.
    """

    given_up: int = 0
    failed: int = 0
    late: int = 0
    latest: tuple[str, ...] = ()

    @property
    def evaluations(self) -> int:
        """Evaluations whose answers were drawn from public scores, for either reason."""
        return self.given_up + self.failed

    def to_dict(self) -> dict[str, Any]:
        """As JSON."""
        return {"given_up": self.given_up, "failed": self.failed, "late": self.late, "latest": list(self.latest)}

    def __str__(self) -> str:
        parts = list(self._parts())
        if not parts:
            return ""
        return f"{'; '.join(parts)}. This depends on private edges: keep it to yourself. Latest: {self.latest[-1]}."

    def _parts(self) -> Iterator[str]:
        """One clause for each count that is not 0."""
        if self.given_up:
            yield f"{_times(self.given_up, 'evaluation')} given up for work, and drawn from public scores"
        if self.failed:
            yield f"{_times(self.failed, 'evaluation')} failed, and drawn from public scores"
        if self.late:
            yield f"{_times(self.late, 'answer')} later than answer_seconds"


@final
class FailureLog:
    """Counts failures of one vault, from any thread."""

    __slots__ = ("_counts", "_latest")

    def __init__(self) -> None:
        self._counts = {"given_up": 0, "failed": 0, "late": 0}
        self._latest: deque[str] = deque(maxlen=MOST_MESSAGES)

    def add_evaluation(self, target: str, error: BaseException) -> None:
        """An evaluation whose answer is drawn from public scores."""
        self._add("given_up" if isinstance(error, Overrun) else "failed", f"target {target}: {_named(error)}")

    def add_late(self, seconds: float) -> None:
        """An answer that leaves so many seconds after its public time."""
        self._add("late", f"an answer left {seconds:.3g} seconds late")

    def read(self) -> Failures:
        """The counts so far."""
        with NOTING:
            return Failures(**self._counts, latest=tuple(self._latest))

    def _add(self, count: str, message: str) -> None:
        with NOTING:
            self._counts[count] += 1
            self._latest.append(message)


def _named(error: BaseException) -> str:
    """Class and words of an error, on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def _times(count: int, noun: str) -> str:
    """Such as "1 evaluation was" and "2 evaluations were"."""
    return f"{count} {noun} was" if count == 1 else f"{count} {noun}s were"
