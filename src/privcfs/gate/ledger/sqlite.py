"""The ledger in one SQLite file: write-ahead log, full sync, one writer at a time.

Zone: gate
Claim: as ledger.py; a commit is on disk before `charge` returns, also after a power cut.
Why: synchronous=FULL syncs the log at each commit; BEGIN IMMEDIATE makes check and insert one step for all processes;
    a connection lives for one call under one lock, so a fork, which SQLite's locks would not survive, waits until none
    is open; triggers refuse updates and deletions; `verify` recomputes everything when the file is opened.
Check: tests/contracts/test_ledgers.py::test_processes_that_race_and_die_never_pass_the_limit
"""

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from threading import RLock
from time import monotonic, sleep
from typing import Any, NoReturn, final

from privcfs.errors import (
    LedgerCorrupt,
    LedgerError,
    LedgerLocked,
    LedgerReadOnly,
    LedgerRolledBack,
    LedgerTooNew,
    RequestConflict,
    SettingsError,
)
from privcfs.gate.accounting import Balance, Limit
from privcfs.gate.contracts import contract_from
from privcfs.gate.ledger.ledger import ENTRIES, Head, Ledger, Request
from privcfs.public.epsilon import NANO, show

VERSION = 1
APPLICATION = 0x50434653  # "PCFS"
NO_DIGEST = "0" * 64
OPENED, LIMITED, HELD, RELEASED = "OPENED", "LIMITED", "HELD", "RELEASED"
SCHEMA = """
CREATE TABLE entries (
  position INTEGER PRIMARY KEY, kind TEXT NOT NULL, analyst TEXT NOT NULL, request_id TEXT NOT NULL,
  cost INTEGER NOT NULL CHECK (cost >= 0), total INTEGER NOT NULL, analyst_total INTEGER NOT NULL,
  body TEXT NOT NULL, digest TEXT NOT NULL);
CREATE UNIQUE INDEX one_answer ON entries (analyst, request_id, kind) WHERE kind IN ('HELD', 'RELEASED');
CREATE INDEX by_analyst ON entries (analyst, position);
CREATE TRIGGER no_update BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER no_delete BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
"""
LOCK = RLock()
os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)
COLUMNS = "position, kind, analyst, request_id, cost, total, analyst_total, body"


@final
class SqliteLedger(Ledger):
    """Opens the account of one graph, or makes it where there is none and a limit is given."""

    def __init__(
        self,
        path: str | Path,
        limit: Limit | None = None,
        *,
        graph_id: str | None = None,
        known: Head | None = None,
        patience: float = 10,
    ) -> None:
        self._path, self._patience = Path(path), patience
        if str(path) == ":memory:" or "\0" in str(path):
            raise SettingsError("ledger must be a file on disk; write sqlite:///budget.db.")
        there = _exists(self._path)
        if known is not None and not there:
            raise LedgerRolledBack(
                f"ledger {self._path} is missing, but a head of it is known; restore the newest copy."
            )
        if limit is None and not there:
            raise LedgerError(f"ledger {self._path} does not exist; restore it, or give a limit to make a new one.")
        with self._writing() as connection:
            self._create(connection, limit, graph_id)
        self.verify(known)
        self._check_owner(limit, graph_id)

    @property
    def graph_id(self) -> str:
        with self._reading() as connection:
            return str(_opening(connection)["graph_id"])

    @property
    def limit(self) -> Limit:
        with self._reading() as connection:
            return _limit(connection)

    def charge(self, request: Request) -> str | None:
        with self._writing() as connection:
            paid = _body(connection, HELD, request.analyst, request.request_id)
            if paid is None:
                self._pay(connection, request)
                return None
            if json.loads(paid)["terms"] != _terms(request):
                raise RequestConflict(
                    f"request id {request.request_id!r} was used before with other parameters; choose a new id."
                )
            stored = _body(connection, RELEASED, request.analyst, request.request_id)
            if stored is None and request.price * NANO > _paid(connection, request):
                raise RequestConflict(
                    f"request id {request.request_id!r} was paid when it cost less; choose a new id, the old is spent."
                )
            return stored

    def finish(self, request: Request, release: str) -> str:
        with self._writing(f"it is paid: ask again with request id {request.request_id}") as connection:
            stored = _body(connection, RELEASED, request.analyst, request.request_id)
            if stored is None:
                _append(connection, RELEASED, request.analyst, request.request_id, 0, release)
            return stored or release

    def balance(self, analyst: str | None = None) -> Balance:
        query = """SELECT coalesce(sum(cost), 0), count(*), coalesce(sum(cost * (NOT EXISTS (
            SELECT 1 FROM entries r WHERE r.kind = 'RELEASED' AND r.analyst = e.analyst
            AND r.request_id = e.request_id))), 0)
            FROM entries e WHERE kind = 'HELD' AND (?1 IS NULL OR analyst = ?1)"""
        with self._reading() as connection:
            spent, releases, held = connection.execute(query, (analyst,)).fetchone()
            limit = _limit(connection)
        cap = limit.total if analyst is None else limit.per_analyst
        return Balance(cap, Fraction(spent, NANO), Fraction(held, NANO), releases, limit.contract.unit)

    def change_limit(self, limit: Limit) -> None:
        if limit.contract != self.limit.contract:
            raise SettingsError("a ledger keeps its contract: what was counted in one unit cannot go on in another.")
        with self._writing() as connection:
            _append(connection, LIMITED, "", "", 0, _canonical(_limit_fields(limit)))

    def released(self, analyst: str, request_id: str) -> str | None:
        with self._reading() as connection:
            return _body(connection, RELEASED, analyst, request_id)

    def adjacencies(self) -> set[str]:
        query = "SELECT DISTINCT json_extract(body, '$.terms.adjacency') FROM entries WHERE kind = 'HELD'"
        with self._reading() as connection:
            return {str(row[0]) for row in connection.execute(query)}

    def head(self) -> Head:
        with self._reading() as connection:
            position, _, _, digest = _last(connection)
            return Head(str(_opening(connection)["graph_id"]), position, digest)

    def verify(self, known: Head | None = None) -> None:
        with self._reading() as connection:
            try:
                digests = _replay(connection)
                graph_id = str(_opening(connection)["graph_id"])
            except (TypeError, ValueError, KeyError):
                raise LedgerCorrupt("a ledger row was altered; restore the newest copy.") from None
        if known is None:
            return
        if known.graph_id != graph_id:
            raise LedgerRolledBack("ledger belongs to another graph than the known head; open the right ledger.")
        if known.position > len(digests) or digests[known.position - 1] != known.digest:
            raise LedgerRolledBack(
                f"ledger lacks row {known.position} of the known head: it was rolled back or replaced. "
                "Restore the newest copy; until then nothing is released."
            )

    def _pay(self, connection: sqlite3.Connection, request: Request) -> None:
        _, total, _, _ = _last(connection)
        spent = Fraction(total, NANO), Fraction(_analyst_total(connection, request.analyst), NANO)
        limit = _limit(connection)
        if request.analyst == ENTRIES:
            limit = replace(limit, per_analyst=None)
        limit.check(request.price, *spent)
        if request.delta:
            limit.check_delta(request.delta, _deltas(connection))
        day = datetime.now(UTC).date().isoformat()
        counted = {"day": day, "unit": limit.contract.unit, "delta": show(request.delta)}
        body = _canonical({"terms": _terms(request), **counted})
        _append(connection, HELD, request.analyst, request.request_id, int(request.price * NANO), body)

    def _create(self, connection: sqlite3.Connection, limit: Limit | None, graph_id: str | None) -> None:
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            return
        if limit is None:
            raise LedgerCorrupt(f"ledger {self._path.name} is empty; restore it, or give a limit to begin a new one.")
        for statement in SCHEMA.split(";\n"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION}")
        connection.execute(f"PRAGMA user_version = {VERSION}")
        opening = {"graph_id": graph_id or secrets.token_hex(16), **_limit_fields(limit)}
        _append(connection, OPENED, "", "", 0, _canonical(opening))

    def _check_owner(self, limit: Limit | None, graph_id: str | None) -> None:
        if graph_id is not None and graph_id != self.graph_id:
            raise SettingsError("graph_id differs from the ledger's; one private graph has one budget: use its ledger.")
        if limit is not None and limit != self.limit:
            raise SettingsError(
                f"limit differs from the ledger's ({_show(self.limit)}); give that limit, or change the ledger's on "
                "purpose: privcfs budget --set-limit or --set-analyst-limit."
            )

    @contextmanager
    def _reading(self, when_locked: str = "try again") -> Iterator[sqlite3.Connection]:
        """A connection for one call: none is open between calls, so none crosses a fork."""
        with LOCK:
            try:
                connection = sqlite3.connect(self._path, timeout=self._patience, isolation_level=None)
                try:
                    self._check_program(connection)
                    _use_write_ahead_log(connection, self._patience)
                    connection.execute("PRAGMA synchronous = FULL")
                    yield connection
                finally:
                    connection.close()
            except sqlite3.Error as error:
                self._explain(error, when_locked)

    @contextmanager
    def _writing(self, when_locked: str = "nothing was charged, try again") -> Iterator[sqlite3.Connection]:
        with self._reading(when_locked) as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _check_program(self, connection: sqlite3.Connection) -> None:
        """Refuses another program's file before touching it."""
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if tables and connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
            raise LedgerCorrupt(f"ledger {self._path.name} is a database of another program; name another file.")
        if version > VERSION:
            raise LedgerTooNew(f"ledger has version {version}, this program reads {VERSION}; install a newer privcfs.")

    def _explain(self, error: sqlite3.Error, when_locked: str) -> NoReturn:
        text, name = str(error), self._path.name
        if "locked" in text or "busy" in text:
            raise LedgerLocked(f"ledger {name} is in use by another program; {when_locked}.") from None
        if "readonly" in text:
            raise LedgerReadOnly(f"ledger {name} cannot be written; check permissions and free space.") from None
        if "full" in text or "I/O" in text:
            raise LedgerError(
                f"ledger {name} cannot use the disk ({text}); mend that, and restore no old copy."
            ) from None
        if "unable to open" in text:
            raise LedgerError(f"ledger {self._path} cannot be opened; does its folder exist?") from None
        raise LedgerCorrupt(f"ledger {name} is damaged ({text}); restore the newest copy.") from None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        raise LedgerError(f"ledger {str(path)[:80]!r} cannot be looked up; choose another path.") from None


def _use_write_ahead_log(connection: sqlite3.Connection, patience: float) -> None:
    """Switches the file over; SQLite does not wait by itself while another process does the same."""
    end = monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or monotonic() > end:
                raise
            sleep(0.01)


def _append(connection: sqlite3.Connection, kind: str, analyst: str, request_id: str, cost: int, body: str) -> None:
    position, total, _, previous = _last(connection)
    mine = _analyst_total(connection, analyst) + cost
    row = (position + 1, kind, analyst, request_id, cost, total + cost, mine, body)
    marks = ",".join("?" * 9)
    connection.execute(f"INSERT INTO entries ({COLUMNS}, digest) VALUES ({marks})", (*row, _digest(previous, row)))


def _last(connection: sqlite3.Connection) -> tuple[int, int, int, str]:
    query = "SELECT position, total, analyst_total, digest FROM entries ORDER BY position DESC LIMIT 1"
    row: tuple[int, int, int, str] | None = connection.execute(query).fetchone()
    return row or (0, 0, 0, NO_DIGEST)


def _analyst_total(connection: sqlite3.Connection, analyst: str) -> int:
    query = "SELECT analyst_total FROM entries WHERE analyst = ? ORDER BY position DESC LIMIT 1"
    row: tuple[int] | None = connection.execute(query, (analyst,)).fetchone()
    return row[0] if row else 0


def _body(connection: sqlite3.Connection, kind: str, analyst: str, request_id: str) -> str | None:
    query = "SELECT body FROM entries WHERE kind = ? AND analyst = ? AND request_id = ?"
    row: tuple[str] | None = connection.execute(query, (kind, analyst, request_id)).fetchone()
    return row[0] if row else None


def _paid(connection: sqlite3.Connection, request: Request) -> int:
    """What was charged for a request, in the smallest unit."""
    query = "SELECT cost FROM entries WHERE kind = 'HELD' AND analyst = ? AND request_id = ?"
    return int(connection.execute(query, (request.analyst, request.request_id)).fetchone()[0])


def _deltas(connection: sqlite3.Connection) -> Fraction:
    """The sum of all rows' deltas; rows of earlier versions have none."""
    query = "SELECT json_extract(body, '$.delta') FROM entries WHERE kind = 'HELD'"
    return sum((Fraction(row[0]) for row in connection.execute(query) if row[0]), Fraction(0))


def _opening(connection: sqlite3.Connection) -> dict[str, Any]:
    row = connection.execute("SELECT body FROM entries WHERE position = 1").fetchone()
    opening: dict[str, Any] = json.loads(row[0])
    return opening


def _limit(connection: sqlite3.Connection) -> Limit:
    query = "SELECT body FROM entries WHERE kind IN ('OPENED', 'LIMITED') ORDER BY position DESC LIMIT 1"
    fields = json.loads(connection.execute(query).fetchone()[0])
    contract = contract_from(fields.get("contract", {}))
    return Limit.of(fields["total"], fields["per_analyst"], contract)


def _limit_fields(limit: Limit) -> dict[str, Any]:
    each = None if limit.per_analyst is None else show(limit.per_analyst)
    return {"total": show(limit.total), "per_analyst": each, "contract": limit.contract.to_dict()}


def _show(limit: Limit) -> str:
    each = "" if limit.per_analyst is None else f", {show(limit.per_analyst)} per analyst"
    return f"{limit.contract.unit} {show(limit.total)} in all{each}"


def _terms(request: Request) -> dict[str, str | int]:
    asked: dict[str, str | int] = {"question": request.question} if request.question else {}
    if request.delta:
        asked["delta"] = show(request.delta)
    return asked | {
        "target": request.target,
        "epsilon": show(request.epsilon),
        "context_digest": request.context_digest,
        "mechanism": request.mechanism,
        "adjacency": request.adjacency,
    }


def _replay(connection: sqlite3.Connection) -> list[str]:
    """Every row's digest, after checking chain, positions and running sums."""
    digests: list[str] = []
    total, by_analyst = 0, {"": 0}
    previous = NO_DIGEST
    for *columns, digest in connection.execute(f"SELECT {COLUMNS}, digest FROM entries ORDER BY position"):
        position, kind, analyst, _, cost, *sums, _ = columns
        total += cost
        by_analyst[analyst] = by_analyst.get(analyst, 0) + cost
        good = position == len(digests) + 1 and sums == [total, by_analyst[analyst]] and (kind == HELD or cost == 0)
        if not good or digest != _digest(previous, tuple(columns)):
            raise LedgerCorrupt(f"ledger row {position} was altered; restore the newest copy.")
        digests.append(digest)
        previous = digest
    if not digests:
        raise LedgerCorrupt("ledger has no rows; restore the newest copy.")
    return digests


def _digest(previous: str, row: tuple[Any, ...]) -> str:
    return hashlib.sha256(f"{previous}\n{_canonical(row)}".encode()).hexdigest()


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
