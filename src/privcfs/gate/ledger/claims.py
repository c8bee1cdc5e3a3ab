"""Who may draw for a request id: one thread of one living process at a time.

Zone: gate
Claim: while a claim is held, nobody else charges, draws or stores for the same request ids, in this process or in
    another that shares the ledger; a claim ends when its holder gives it back, or dies.
Why: threads of a process share one set of held keys; between processes, the operating system (SQLite) or the database
    server (PostgreSQL) keeps the lock of a key and drops it when the process or its connection ends. A lost claim can
    cost a second draw, never a second answer: what is stored first counts.
Check: tests/gate/test_one_draw.py::test_processes_that_ask_for_one_id_at_once_draw_once
"""

import hashlib
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path
from threading import Condition, Lock
from time import monotonic, sleep
from typing import final

from privcfs.errors import LedgerError, LedgerLocked
from privcfs.forks import Order, at_fork

try:
    import fcntl
except ImportError:  # not on every system: there, a ledger in a file is for one process
    fcntl = None  # type: ignore[assignment]

Keys = frozenset[int]
PAUSES = 5  # milliseconds before another process is asked again, at most; random, so that no two keep in step


def keys_of(named: Iterable[tuple[str, str]]) -> Keys:
    """One number of 62 bits for each analyst and request id."""
    return frozenset(
        int.from_bytes(hashlib.sha256(f"{len(analyst)}:{analyst}{name}".encode()).digest()[:8]) >> 2
        for analyst, name in named
    )


class Claims(ABC):
    """The claims of one process on one ledger."""

    def __init__(self) -> None:
        self._change, self._held = Condition(), Keys()

    def take(self, keys: Keys, patience: float) -> None:
        """Waits until all keys are free, then holds all of them."""
        end = monotonic() + patience
        with self._change:
            if not self._change.wait_for(lambda: not self._held & keys, patience):
                raise _taken()
            self._held |= keys
        try:
            while not self._lock(keys):
                if monotonic() > end:
                    raise _taken()
                sleep((1 + secrets.randbelow(PAUSES)) / 1000)
        except BaseException:
            self._forget(keys)
            raise

    def give_back(self, keys: Keys) -> None:
        """Frees these keys for others."""
        try:
            self._unlock(keys)
        finally:
            self._forget(keys)

    def _forget(self, keys: Keys) -> None:
        with self._change:
            self._held -= keys
            self._change.notify_all()

    @abstractmethod
    def _lock(self, keys: Keys) -> bool:
        """Takes all keys from other processes, or none; does not wait."""

    @abstractmethod
    def _unlock(self, keys: Keys) -> None:
        """Gives them back."""


@final
class FileClaims(Claims):
    """Locks on single bytes of an empty file beside the ledger, which the operating system drops with the process."""

    def __init__(self, path: Path) -> None:
        """One object a file in each process (`file_claims`): closing any handle of it would drop all its locks."""
        super().__init__()
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise LedgerError(f"{path.name} cannot be made beside the ledger: {error.strerror}.") from None

    def _lock(self, keys: Keys) -> bool:
        if fcntl is None:
            return True
        taken: set[int] = set()
        try:
            for key in keys:
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, key)
                taken.add(key)
        except BlockingIOError:
            self._unlock(frozenset(taken))
            return False
        except OSError as error:
            self._unlock(frozenset(taken))
            raise LedgerError(f"the ledger's claims cannot be locked ({error.strerror}); use a local disk.") from None
        return True

    def _unlock(self, keys: Keys) -> None:
        for key in keys if fcntl is not None else ():
            fcntl.lockf(self._file, fcntl.LOCK_UN, 1, key)


FILES: dict[tuple[int, str], FileClaims] = {}
MAKING = Lock()  # of whoever adds one; a fork waits for it
at_fork(Order.CLAIMS, before=MAKING.acquire, in_parent=MAKING.release, in_child=MAKING.release)


def file_claims(ledger: Path) -> FileClaims:
    """The one object of this process for a ledger's real file; a child of a fork gets one of its own."""
    place = os.getpid(), str(ledger)
    with MAKING:
        if place not in FILES:
            FILES[place] = FileClaims(ledger.with_name(ledger.name + "-claims"))
        return FILES[place]


def _taken() -> LedgerLocked:
    return LedgerLocked("this request is being answered already; ask again with the same request id: it pays once.")
