"""The log of requests: who did what with which key, and with what status. It holds public facts alone."""

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any, final

import sqlalchemy as sql

from privcfs.errors import LedgerError
from privcfs.service.database import LOG, time_to_text
from privcfs.service.keys import Key

# Entries are kept in memory while the database does not answer; this bounds that memory.
MOST_UNWRITTEN = 10_000
LOG_DAYS = 90
# A million entries take about 150 MB on disk.
MOST_LINES = 1_000_000
# One deletion is short, so that nobody waits long for the database. There are two deletions a second.
PRUNED_AT_ONCE = 1000


@final
class Log:
    """Entries are noted in memory while a request is answered, and a background thread writes them to the database."""

    def __init__(self, database: sql.Engine, days: int = LOG_DAYS) -> None:
        self._engine, self._days = database, days
        self._unwritten: deque[dict[str, Any]] = deque()
        self._writing = Lock()

    def note(self, key: Key, action: str, status: int) -> None:
        """Notes one request in memory; `flush` writes it to the database. The action must hold public facts alone."""
        printable = "".join(letter if letter.isprintable() else "?" for letter in action[:200])
        if len(self._unwritten) >= MOST_UNWRITTEN:
            with suppress(IndexError):  # Another thread may have written all entries in the meantime.
                self._unwritten.popleft()
        row = {"time": time_to_text(datetime.now(UTC)), "key": key.name, "analyst": key.analyst}
        self._unwritten.append({**row, "action": printable, "status": status})

    def flush(self) -> None:
        """Writes the noted entries to the database; entries that cannot be written are kept for the next attempt."""
        with self._writing:
            rows = [self._unwritten.popleft() for _ in range(len(self._unwritten))]
            if not rows:
                return
            try:
                with self._engine.begin() as connection:
                    connection.execute(LOG.insert(), rows)
            except sql.exc.SQLAlchemyError:
                self._unwritten.extendleft(reversed(rows[-MOST_UNWRITTEN:]))
                raise LedgerError("the log of requests cannot be written; check the service's database.") from None

    def prune(self) -> int:
        """Deletes entries that are too old or beyond MOST_LINES, oldest first, at most PRUNED_AT_ONCE of them.

        Returns how many entries were deleted.
        """
        before = time_to_text(datetime.now(UTC) - timedelta(days=self._days))
        oldest = sql.select(LOG.c.position, LOG.c.time).order_by(LOG.c.position).limit(PRUNED_AT_ONCE).subquery()
        beyond = sql.select(sql.func.max(LOG.c.position) - MOST_LINES).scalar_subquery()
        over = sql.or_(oldest.c.time < before, oldest.c.position <= beyond)
        try:
            with self._engine.connect() as connection:
                last = connection.execute(sql.select(sql.func.max(oldest.c.position)).where(over)).scalar()
            if last is None:
                return 0
            with self._engine.begin() as connection:
                return connection.execute(LOG.delete().where(LOG.c.position <= last)).rowcount
        except sql.exc.SQLAlchemyError:
            raise LedgerError("the log of requests cannot be shortened; check the service's database.") from None

    def history(self, most: int = 1000) -> Iterator[dict[str, Any]]:
        """The newest entries, newest first, including those that were only noted so far."""
        self.flush()
        with self._engine.connect() as connection:
            for row in connection.execute(LOG.select().order_by(LOG.c.position.desc()).limit(most)).mappings():
                yield dict(row)
