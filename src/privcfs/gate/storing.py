"""Stores what was drawn, again and again until it is stored, and never lets it be drawn a second time meanwhile.

Zone: gate
Claim: while a process lives, a request that it has drawn for is not drawn for again, by it or by another process,
    whatever happens to the ledger; unless its user interrupts the very thread that draws, which is like its death.
Why: a draw is kept in memory from the moment it is made until the ledger holds an answer; whoever asks for the same
    request meanwhile has that very draw stored, or gets an error. The claim on the request is given back only then.
    When and how often storing is tried depends on the ledger alone, and every answer has a public length.
Check: tests/gate/test_one_draw.py::test_no_id_is_drawn_twice_while_the_disk_fills_up
"""

import atexit
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock, Thread
from time import monotonic, sleep
from typing import final

from privcfs.errors import LedgerError, PrivcfsError
from privcfs.forks import Order, at_fork
from privcfs.gate.ledger.ledger import Claim, Ledger, Request

Name = tuple[str, str]
PATIENCE = 5.0  # seconds for which whoever asked waits for an answer to be stored
PAUSE = 0.25  # between two attempts
LAST_PATIENCE = 30.0  # of a process that ends


STORING: "weakref.WeakSet[Storing]" = weakref.WeakSet()


def _leave_draws_to_the_parent() -> None:
    for storing in list(STORING):
        storing.forget()


at_fork(Order.STORING, in_child=_leave_draws_to_the_parent)


@final
class Answers:
    """The answers to some paid requests: what the ledger had, and what is drawn now."""

    def __init__(self, ledger: Ledger, requests: Sequence[Request]) -> None:
        self._ledger, self._requests = ledger, requests
        self._kept: dict[Name, str] = {}
        self.drawn: dict[Name, tuple[Request, str]] = {}

    def found(self, texts: Sequence[str | None]) -> None:
        """What the ledger had for each request, in their order."""
        named = zip(self._requests, texts, strict=True)
        self._kept |= {_name(request): text for request, text in named if text is not None}

    def lacks(self, request: Request) -> bool:
        """Whether it is to be drawn for."""
        return _name(request) not in self._kept

    def add(self, request: Request, text: str) -> None:
        """What was drawn."""
        self.drawn[_name(request)] = request, text

    def store(self) -> None:
        """One attempt."""
        names, drawn = list(self.drawn), list(self.drawn.values())
        if drawn:
            self._kept |= zip(names, self._ledger.finish_all(drawn), strict=True)
            self.drawn = {}

    def stored(self) -> list[str]:
        """Every answer as the ledger holds it, after as many attempts as fit into a while."""
        end = monotonic() + PATIENCE
        while self.drawn:
            try:
                self.store()
            except LedgerError:
                if monotonic() > end:
                    raise
                sleep(PAUSE)
        return [self._kept[_name(request)] for request in self._requests]


@final
class Storing:
    """What a process has drawn and not stored yet, for one ledger."""

    def __init__(self, ledger: Ledger) -> None:
        """`ledger` is where answers go."""
        self._ledger, self._turn = ledger, Lock()
        self._unstored: list[tuple[Answers, Claim]] = []
        self._thread: Thread | None = None
        atexit.register(_wait_at_last, weakref.ref(self))
        STORING.add(self)

    def forget(self) -> None:
        """In a child of a fork: the parent keeps its draws and stores them, and its threads are not here."""
        self._turn, self._unstored, self._thread = Lock(), [], None

    @contextmanager
    def claiming(self, requests: Sequence[Request]) -> Iterator[Answers]:
        """Keeps everyone else from answering these requests until this block ends and everything drawn is stored."""
        self._store_earlier(requests)
        answers = Answers(self._ledger, requests)
        claim = self._ledger.claim(requests)
        try:
            yield answers
        finally:
            if answers.drawn:
                self._keep(answers, claim)
            else:
                claim.give_back()

    def _store_earlier(self, requests: Sequence[Request]) -> None:
        """Draws of these requests that could not be stored before: they are stored now, or this is an error."""
        asked = {_name(request) for request in requests}
        with self._turn:
            waiting = [one for one in self._unstored if asked & set(one[0].drawn)]
        for one in waiting:
            self._finish(*one)

    def _keep(self, answers: Answers, claim: Claim) -> None:
        with self._turn:
            self._unstored.append((answers, claim))
            if self._thread is None:
                thread = Thread(target=self._keep_trying, name="storing", daemon=True)
                thread.start()
                self._thread = thread

    def _keep_trying(self) -> None:
        """Until everything is stored."""
        while True:
            with self._turn:
                if not self._unstored:
                    self._thread = None
                    return
                waiting = list(self._unstored)
            for one in waiting:
                try:
                    self._finish(*one)
                except PrivcfsError as error:
                    if not isinstance(error, LedgerError):  # it refuses what it was paid for, and always will
                        self._give_up(*one)
                except Exception:  # the system is in trouble; the draw is kept
                    continue
            sleep(PAUSE)

    def _finish(self, answers: Answers, claim: Claim) -> None:
        """Storing twice changes nothing: the ledger keeps the first."""
        answers.store()
        self._give_up(answers, claim)

    def _give_up(self, answers: Answers, claim: Claim) -> None:
        """Lets others ask again."""
        with self._turn:
            if (answers, claim) not in self._unstored:
                return
            self._unstored.remove((answers, claim))
        claim.give_back()

    def wait(self) -> None:
        """Before a process ends: some more time to store what is drawn."""
        end = monotonic() + LAST_PATIENCE
        while self._unstored and monotonic() < end:
            sleep(PAUSE)


def _name(request: Request) -> Name:
    return request.analyst, request.request_id


def _wait_at_last(kept: "weakref.ref[Storing]") -> None:
    storing = kept()
    if storing is not None:
        storing.wait()
