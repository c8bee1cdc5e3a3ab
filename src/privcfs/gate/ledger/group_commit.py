"""Steps of several threads that share one transaction and its sync.

Zone: gate
Claim: a step is durable when `run` returns; a step that is refused changes nothing, and no other step with it.
Why: `run` returns when the transaction that took the step has ended. A step of several rows has a savepoint, so that
    a refusal undoes its first rows; a step of one row is refused before it writes. A failed transaction fails all of
    its steps.
Check: tests/contracts/test_ledgers.py::test_processes_that_race_and_die_never_pass_the_limit
"""

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from privcfs.errors import LedgerError, LedgerLocked, PrivcfsError, SettingsError
from privcfs.gate.ledger.locks import LOCK
from privcfs.gate.ledger.records import Connection

MOST_STEPS = 64  # in one transaction
ADVICE = "{advice}"  # in an error's words: stands for what the thread that waits should do
Work = Callable[[Connection], Any]
Commit = Callable[[Callable[[Connection], None]], None]


@final
@dataclass(slots=True, eq=False)
class Step:
    """What one thread wants written."""

    work: Work
    rows: int  # upper bound; more than one row needs a savepoint, so that a refusal undoes the first
    advice: str
    process: int  # a child of a fork inherits the queue, but must not take its parent's steps
    done: bool = False
    result: Any = None
    error: Exception | None = None

    def take(self, connection: Connection) -> None:
        """Does all of the work or, where it is refused, nothing."""
        if self.rows > 1:
            connection.run("SAVEPOINT step")
        try:
            self.result = self.work(connection)
        except PrivcfsError as error:
            if self.rows > 1:
                connection.run("ROLLBACK TO SAVEPOINT step")
            self.error = error

    def outcome(self) -> Any:
        """The result of the work; raises where it failed."""
        if isinstance(self.error, LedgerError):
            raise type(self.error)(str(self.error).replace(ADVICE, self.advice)) from None
        if self.error is not None:
            raise self.error
        return self.result


@final
class GroupCommit:
    """The steps of one ledger in one process: the first thread to get the lock takes the steps of all that wait."""

    def __init__(self) -> None:
        self._waiting: deque[Step] = deque()

    def run(self, work: Work, rows: int, advice: str, commit: Commit, patience: float) -> Any:
        """The result of `work`, durable.

        `rows` is an upper bound on the rows that it writes. `commit` runs what it is given in the ledger's only writing
        transaction. `advice` ends the error of a thread that waits for the lock six times `patience` seconds.
        """
        step = Step(work, rows, advice, os.getpid())
        self._waiting.append(step)
        if not LOCK.acquire(timeout=6 * patience):
            try:
                self._waiting.remove(step)
            except ValueError:  # another thread has taken it
                raise LedgerError("ledger does not answer; ask again with the same request id: it pays once.") from None
            raise LedgerLocked(f"ledger does not answer; {advice}.")
        try:
            while not step.done:
                self._take_steps(commit)
        finally:
            LOCK.release()
        return step.outcome()

    def _take_steps(self, commit: Commit) -> None:
        """Takes the oldest steps in one transaction, and marks them as done whatever happens."""
        mine: list[Step] = []
        failed: Exception | None = LedgerError("ledger was interrupted; ask again with the same request id.")

        def take_all(connection: Connection) -> None:
            for step in mine:
                step.take(connection)

        try:
            while self._waiting and len(mine) < MOST_STEPS:
                mine += [step for step in (self._waiting.popleft(),) if step.process == os.getpid()]
            commit(take_all)
            failed = None
        except LedgerError as error:
            failed = error
        except SettingsError as error:  # a disk that failed just now: what was charged stays charged
            failed = LedgerError(f"{error} Ask again with the same request id: it pays once.")
        finally:
            for step in mine:
                step.error, step.done = failed or step.error, True
