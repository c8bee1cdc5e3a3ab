"""The ledger in one SQLite file: write-ahead log, full sync, one writer at a time.

Zone: gate
Claim: as ledger.py; a commit is on disk before `charge` returns, also after a power cut.
Why: synchronous=FULL syncs the log at each commit; BEGIN IMMEDIATE makes check and insert one step for all processes;
    a connection is used by one thread at a time under one lock and closed before a fork, which SQLite's locks would not
    survive; a file that was replaced is opened anew; triggers refuse updates and deletions.
Check: tests/contracts/test_ledgers.py::test_processes_that_race_and_die_never_pass_the_limit
"""

import os
import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple, NoReturn, final

from privcfs.errors import (
    LedgerCorrupt,
    LedgerError,
    LedgerFull,
    LedgerLocked,
    LedgerMissing,
    LedgerReadOnly,
    LedgerRolledBack,
    SettingsError,
)
from privcfs.forks import Order, at_fork
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger.chain import ChainedLedger
from privcfs.gate.ledger.claims import Claims, file_claims
from privcfs.gate.ledger.heads import HeadFile, refuse_others
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.ledger.locks import LOCK
from privcfs.gate.ledger.records import MIGRATIONS, TABLE, VERSION, Connection
from privcfs.gate.ledger.reserve import Reserve
from privcfs.public.head import Head

APPLICATION = 0x50434653  # "PCFS"
TRIGGERS = """
CREATE TRIGGER no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""
LATER_TRIGGERS = {
    3: "".join(
        f"CREATE TRIGGER no_{what}_of_{table} BEFORE {what.upper()} ON {table} "
        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;\n"
        for table in ("accounts", "kept_apart")
        for what in ("update", "delete")
    )
}
OPEN: "weakref.WeakSet[SqliteLedger]" = weakref.WeakSet()  # changed under the lock alone


def _close_connections() -> None:
    """Before a fork, under the lock of connections: SQLite's file locks would not survive it."""
    for ledger in list(OPEN):
        ledger.close()


at_fork(Order.CONNECTIONS, before=_close_connections)


class _Sqlite(NamedTuple):
    """A transaction of SQLite."""

    raw: sqlite3.Connection

    def run(self, query: str, **values: Any) -> sqlite3.Cursor:
        return self.raw.execute(query, values)


@final
class SqliteLedger(ChainedLedger):
    """One file, any number of processes on one machine."""

    def __init__(
        self,
        path: str | Path,
        limit: Limit | None = None,
        *,
        graph_id: str | None = None,
        known: Head | None = None,
        head_file: HeadFile | None = None,
        patience: float = 10,
    ) -> None:
        self._path, self._patience = Path(path), patience
        self._raw: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        if str(path) == ":memory:" or "\0" in str(path):
            raise SettingsError("ledger must be a file on disk; write sqlite:///budget.db.")
        there = _identity(self._path) is not None
        if known is not None and not there:
            raise LedgerRolledBack(
                f"ledger {self._path} is missing, but a head of it is known; restore the newest copy."
            )
        if limit is None and not there:
            raise LedgerMissing(f"ledger {self._path} does not exist; restore it, or give a limit to make a new one.")
        self._reserve = Reserve(self._path.resolve())
        if there:
            refuse_others(self._path)
        self._open(limit, graph_id, known, head_file)

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        """Charges as every ledger does, but reserves room on the disk for the answers first."""
        self._reserve.keep(sum(request.room for request in requests))
        return super().charge_all(requests)

    def finish_all(self, answers: Sequence[tuple[Request, str]]) -> list[str]:
        """Stores answers as every ledger does; on a full disk the reserved space is used."""
        try:
            return super().finish_all(answers)
        except LedgerFull:
            with self._reserve.used():
                return super().finish_all(answers)

    def ready(self) -> None:
        """Checks what every ledger checks, and that the reserve on the disk is there."""
        self._reserve.keep(0)
        super().ready()

    def _claims(self) -> Claims:
        return file_claims(self._path.resolve())

    def close(self) -> None:
        """Lets go of the file; the next call opens it again."""
        with LOCK:
            if self._raw is not None:
                self._raw.close()
            self._raw = None

    def __del__(self) -> None:
        if getattr(self, "_raw", None) is not None:
            self.close()

    def _version(self, connection: Connection) -> int:
        """Refuses another program's file before touching it."""
        ((version,),) = connection.run("PRAGMA user_version")
        ((tables,),) = connection.run("SELECT count(*) FROM sqlite_master")
        ((application,),) = connection.run("PRAGMA application_id")
        if tables and application != APPLICATION:
            raise LedgerCorrupt(f"ledger {self._path.name} is a database of another program; name another file.")
        return int(version)

    def _schema(self, connection: Connection) -> None:
        for statement in _statements(TABLE + TRIGGERS):
            connection.run(statement)
        connection.run(f"PRAGMA application_id = {APPLICATION}")

    def _statements(self, version: int) -> list[str]:
        return _statements(MIGRATIONS[version] + LATER_TRIGGERS.get(version, ""))

    def _migrated(self, connection: Connection) -> None:
        connection.run(f"PRAGMA user_version = {VERSION}")

    def _reading(self, when_locked: str = "try again") -> AbstractContextManager[Connection]:
        return self._transaction("BEGIN", when_locked)

    def _writing(self, when_locked: str = "nothing was charged, try again") -> AbstractContextManager[Connection]:
        return self._transaction("BEGIN IMMEDIATE", when_locked)

    @contextmanager
    def _transaction(self, begin: str, when_locked: str) -> Iterator[Connection]:
        with LOCK:
            try:
                raw = self._connected()
                try:
                    raw.execute(begin)
                    yield _Sqlite(raw)
                    raw.execute("COMMIT")
                finally:
                    if raw.in_transaction:
                        raw.execute("ROLLBACK")
            except sqlite3.Error as error:
                self.close()
                self._explain(error, when_locked)

    def _connected(self) -> sqlite3.Connection:
        """The connection of this process; a new one where there is none, or where the file was replaced."""
        there = _identity(self._path)
        if self._file is not None and there is None:
            raise LedgerMissing(f"ledger {self._path.name} is gone; restore the newest copy.")
        if self._raw is not None and self._file != there:
            self.close()
        if self._raw is None:
            _make_for_one_user(self._path)
            raw = sqlite3.connect(self._path, timeout=self._patience, isolation_level=None, check_same_thread=False)
            try:
                self._version(_Sqlite(raw))
                _use_write_ahead_log(raw, self._patience)
                raw.execute("PRAGMA synchronous = FULL")
            except BaseException:
                raw.close()
                raise
            self._raw, self._file = raw, _identity(self._path)
            OPEN.add(self)
        return self._raw

    def _explain(self, error: sqlite3.Error, when_locked: str) -> NoReturn:
        text, name = str(error), self._path.name
        if "locked" in text or "busy" in text:
            raise LedgerLocked(f"ledger {name} is in use by another program; {when_locked}.") from None
        if "readonly" in text:
            raise LedgerReadOnly(f"ledger {name} cannot be written; check permissions and free space.") from None
        if "full" in text or "I/O" in text:
            raise LedgerFull(
                f"ledger {name} cannot use the disk ({text}); mend that, and restore no old copy."
            ) from None
        if "unable to open" in text:
            raise self._unopened() from None
        raise LedgerCorrupt(f"ledger {name} is damaged ({text}); restore the newest copy.") from None

    def _unopened(self) -> LedgerError:
        """Why SQLite could not open the file, as far as path and permissions tell."""
        path, folder = self._path, self._path.parent
        if path.is_dir():
            return LedgerError(f"ledger {path} is a directory; name a file.")
        if not folder.is_dir():
            return LedgerError(f"ledger {path} cannot be opened: its folder does not exist; make it first.")
        if path.exists() and not _may(path, os.R_OK | os.W_OK):
            return LedgerReadOnly(
                f"ledger {path} cannot be opened: permission denied; let this user read and write it."
            )
        if not _may(folder, os.W_OK | os.X_OK):
            what = "opened" if path.exists() else "made"
            return LedgerReadOnly(
                f"ledger {path} cannot be {what}: its folder cannot be written, where SQLite keeps files beside the "
                "ledger; let this user write there."
            )
        return LedgerError(f"ledger {path} cannot be opened; check that the path is one of a plain file.")


def _statements(script: str) -> list[str]:
    """One by one. Accounts are kept in the order of their key, without a second tree of row numbers."""
    clustered = script.replace("BIGINT", "INTEGER").replace("(position, node));", "(position, node)) WITHOUT ROWID;")
    return [one.strip() for one in clustered.split(";\n") if one.strip()]


def _may(path: Path, mode: int) -> bool:
    """Whether the process, as the user that it acts for, may do this."""
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file is there now, if there is one."""
    try:
        found = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise LedgerError(
            f"ledger {str(path)[:80]!r} cannot be looked up ({error.strerror}); choose another path."
        ) from None
    return found.st_dev, found.st_ino


def _make_for_one_user(path: Path) -> None:
    """An empty file that only its user may read, where there is none; SQLite's other files get the same rights."""
    with suppress(OSError):  # SQLite itself will say what is wrong
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def _use_write_ahead_log(connection: sqlite3.Connection, patience: float) -> None:
    """Switches the file over; SQLite does not wait by itself while another process does the same."""
    end = monotonic() + patience
    while True:
        try:
            ((mode,),) = connection.execute("PRAGMA journal_mode = WAL")
            if mode != "wal":
                raise LedgerError("ledger's disk cannot keep a write-ahead log; choose a local disk.")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or monotonic() > end:
                raise
            sleep(0.01)
