"""The account as a chain of rows, whatever database keeps them.

Zone: gate
Claim: as ledger.py, for every database that gives one writer at a time and durable commits.
Why: check and insert happen inside one transaction of the only writer, so no two can pass the limit together; several
    charges are one step, so all are paid or none; steps of several threads may share a transaction and its sync, each
    undone by itself where it is refused; rows are only ever appended, each with a digest over the one before; `verify`
    recomputes everything; before anything is read for an answer, charged or written into the head file, the newest row
    that this process has seen and the row that the head file names must be found in the chain, digest by digest.
Check: tests/contracts/test_ledgers.py::test_processes_that_race_and_die_never_pass_the_limit
"""

import hashlib
import json
import os
import secrets
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from threading import Lock, RLock
from typing import Any, NamedTuple, Protocol, final

from privcfs.errors import (
    LedgerCorrupt,
    LedgerError,
    LedgerLocked,
    LedgerRolledBack,
    LedgerTooNew,
    PrivcfsError,
    RequestConflict,
    SettingsError,
)
from privcfs.gate.accounting import Balance, Limit
from privcfs.gate.contracts import contract_from
from privcfs.gate.ledger.claims import Claims, Keys, keys_of
from privcfs.gate.ledger.heads import HeadFile
from privcfs.gate.ledger.ledger import Ledger, Request
from privcfs.public.epsilon import NANO, show
from privcfs.public.head import Head

VERSION = 2
NO_DIGEST = "0" * 64
PAGE = 1000  # rows of an export at a time
OPENED, LIMITED, HELD, RELEASED = "OPENED", "LIMITED", "HELD", "RELEASED"
COLUMNS = "position, kind, analyst, request_id, cost, total, analyst_total, body"
TABLE = """
CREATE TABLE entries (
  position BIGINT PRIMARY KEY, kind TEXT NOT NULL, analyst TEXT NOT NULL, request_id TEXT NOT NULL,
  cost BIGINT NOT NULL CHECK (cost >= 0), total BIGINT NOT NULL, analyst_total BIGINT NOT NULL,
  body TEXT NOT NULL, digest TEXT NOT NULL);
CREATE UNIQUE INDEX one_answer ON entries (analyst, request_id, kind) WHERE kind IN ('HELD', 'RELEASED');
CREATE INDEX by_analyst ON entries (analyst, position);
"""
MOST_STEPS = 64  # that share a transaction
UNKNOWN = "{what now}"  # in an error's words: what whoever waits should do
# A fork waits for both locks. Handlers run in reverse order of registration: a writer takes LOCK, then SEEING.
SEEING = Lock()  # of whoever remembers a row
os.register_at_fork(before=SEEING.acquire, after_in_parent=SEEING.release, after_in_child=SEEING.release)
LOCK = RLock()  # of whoever writes
os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)
INDEXED = "r.kind IN ('HELD', 'RELEASED')"  # in the very words of the index, or SQLite does not use it
MIGRATIONS = {2: "CREATE INDEX limits ON entries (position) WHERE kind IN ('OPENED', 'LIMITED')"}


class Rows(Protocol):
    """What a query found."""

    def fetchone(self) -> Sequence[Any] | None:
        """The next row."""

    def __iter__(self) -> Iterator[Any]:
        """All rows."""


class Connection(Protocol):
    """An open transaction."""

    def run(self, query: str, **values: Any) -> Rows:
        """One statement; `:name` stands for a value."""


@final
@dataclass(slots=True, eq=False)
class _Step:
    """What one thread has waiting; the process that asked for it takes it."""

    work: Callable[[Connection], Any]
    rows: int  # at most; one is refused before it is written, of several the first must be undone
    process: int
    done: bool = False
    result: Any = None
    error: Exception | None = None

    def take(self, connection: Connection) -> None:
        """All of it or, where it is refused, nothing."""
        if self.rows > 1:
            connection.run("SAVEPOINT step")
        try:
            self.result = self.work(connection)
        except PrivcfsError as error:
            if self.rows > 1:
                connection.run("ROLLBACK TO SAVEPOINT step")
            self.error = error


class _Held(NamedTuple):
    """Some keys that this process holds."""

    claims: Claims
    keys: Keys
    process: int

    def give_back(self) -> None:
        if self.process == os.getpid():  # a child of a fork has no claims of its parent's
            self.claims.give_back(self.keys)


class ChainedLedger(Ledger):
    """Opens the account of one graph, or makes it where there is none and a limit is given."""

    _patience: float

    def _open(self, limit: Limit | None, graph_id: str | None, known: Head | None, head_file: HeadFile | None) -> None:
        self._waiting: deque[_Step] = deque()
        self._seen: Head | None = None  # the newest row that this process knows of
        self._head_file = head_file
        self._head_is_kept = False  # from the first head that was read or written on
        with self._making() as connection:
            version = self._version(connection)
            if version > VERSION:
                raise LedgerTooNew(
                    f"ledger has version {version}, this program reads {VERSION}; install a newer privcfs."
                )
            if version == 0:
                self._create(connection, limit, graph_id)
            elif version < VERSION:
                for number in range(version + 1, VERSION + 1):
                    connection.run(MIGRATIONS[number])
                self._migrated(connection)
        self.verify(known)
        self._check_owner(limit, graph_id)
        self.keep_head()

    @abstractmethod
    def _reading(self, when_locked: str = "try again") -> AbstractContextManager[Connection]:
        """A transaction that sees one state of the account."""

    @abstractmethod
    def _writing(self, when_locked: str = "nothing was charged, try again") -> AbstractContextManager[Connection]:
        """The only transaction that may append; durable when it ends."""

    def _making(self) -> AbstractContextManager[Connection]:
        """The only transaction that may make or change tables."""
        return self._writing()

    @abstractmethod
    def _version(self, connection: Connection) -> int:
        """Of the tables; 0 where there are none."""

    @abstractmethod
    def _schema(self, connection: Connection) -> None:
        """Makes the tables, append-only, of the first version."""

    @abstractmethod
    def _migrated(self, connection: Connection) -> None:
        """Writes down that the tables have the newest version."""

    @contextmanager
    def _looking(self) -> Iterator[Connection]:
        """A reading transaction on a chain that holds everything that is known of it."""
        known = self._known()  # before the transaction sees anything, or it would miss what was written meanwhile
        with self._reading() as connection:
            newest = _newest(connection, known)
            yield connection
        self._see(newest)

    def _known(self, *, to_write: bool = False) -> list[Head]:
        """What must be found in the chain: what this process has seen, and what the head file keeps.

        Before something is written, a head file that could not follow refuses it.
        """
        seen = self._seen
        if self._head_file is None:
            return [] if seen is None else [seen]
        try:
            kept = self._head_file.read(to_write=to_write)
        except SettingsError as error:
            raise LedgerError(str(error)) from None
        if kept is None and self._head_is_kept:
            raise LedgerError(f"head file {self._head_file.path.name} is gone; restore it, or export the head again.")
        self._head_is_kept = kept is not None
        return list(dict.fromkeys(one for one in (seen, kept) if one is not None))

    def _follow(self, newest: Head, held: Sequence[Head]) -> None:
        """Brings the head file up to `newest`, whose chain holds `held`; looks the chain up only for another head."""
        file = self._head_file
        if file is None or (self._head_is_kept and file.advance(newest, held.__contains__)):
            return
        self.keep_head(sync=False)

    def _see(self, newest: Head) -> None:
        """Remembers a row. Threads may come here in any order, so an older row never replaces a newer one."""
        with SEEING:
            if self._seen is None or newest.position > self._seen.position:
                self._seen = newest

    @property
    def graph_id(self) -> str:
        with self._looking() as connection:
            return str(_opening(connection)["graph_id"])

    @property
    def limit(self) -> Limit:
        with self._looking() as connection:
            return _state(connection).limit

    def look_up(self, requests: Sequence[Request]) -> list[str | None]:
        known = self._known()
        with self._glancing() as connection:
            newest = _newest(connection, known)
            found = _looked_up(connection, requests)
        self._see(newest)
        return found

    def _glancing(self) -> AbstractContextManager[Connection]:
        """For a look that decides nothing for good: the charge looks again. Rows may be added meanwhile."""
        return self._reading()

    def alone(self, requests: Sequence[Request]) -> "_Held":
        keys = keys_of((request.analyst, request.request_id) for request in requests)
        claims = self._claims()
        claims.take(keys, self._patience)
        return _Held(claims, keys, os.getpid())

    @abstractmethod
    def _claims(self) -> Claims:
        """The claims of this process on this ledger."""

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        def work(connection: Connection) -> list[str | None]:
            return [_charge(connection, request) for request in requests]

        found: list[str | None] = self._together(work, len(requests), "nothing was charged, try again")
        return found

    def finish_all(self, answers: Sequence[tuple[Request, str]]) -> list[str]:
        def work(connection: Connection) -> list[str]:
            return [_finish(connection, request, release) for request, release in answers]

        ids = ", ".join(request.request_id for request, _ in answers)
        found: list[str] = self._together(work, len(answers), f"it is paid: ask again with request id {ids}")
        return found

    def _together(self, work: Callable[[Connection], Any], rows: int, otherwise: str) -> Any:
        """The result of a step, durable; the first thread to get the lock takes the steps of all that wait."""
        step = _Step(work, rows, os.getpid())
        self._waiting.append(step)
        if not LOCK.acquire(timeout=6 * self._patience):
            try:
                self._waiting.remove(step)
            except ValueError:
                raise LedgerError("ledger does not answer; ask again with the same request id: it pays once.") from None
            raise LedgerLocked(f"ledger does not answer; {otherwise}.")
        try:
            while not step.done:
                self._take_steps()
        finally:
            LOCK.release()
        if isinstance(step.error, LedgerError):
            raise type(step.error)(str(step.error).replace(UNKNOWN, otherwise)) from None
        if step.error is not None:
            raise step.error
        return step.result

    def _take_steps(self) -> None:
        mine: list[_Step] = []
        failed: Exception | None = LedgerError("ledger was interrupted; ask again with the same request id.")
        try:
            while self._waiting and len(mine) < MOST_STEPS:
                mine += [step for step in (self._waiting.popleft(),) if step.process == os.getpid()]
            known = self._known(to_write=True)
            with self._writing(UNKNOWN) as connection:
                _newest(connection, known)
                for step in mine:
                    step.take(connection)
                newest = _newest(connection)
            self._see(newest)
            self._follow(newest, known)
            failed = None
        except LedgerError as error:
            failed = error
        except SettingsError as error:  # a disk that failed just now: what was charged stays charged
            failed = LedgerError(f"{error} Ask again with the same request id: it pays once.")
        finally:
            for step in mine:
                step.error, step.done = failed or step.error, True

    def balance(self, analyst: str | None = None) -> Balance:
        mine = "" if analyst is None else "AND e.analyst = :analyst"
        query = f"""SELECT coalesce(sum(cost), 0), count(*), coalesce(sum(CASE WHEN EXISTS (
            SELECT 1 FROM entries r WHERE r.kind = 'RELEASED' AND {INDEXED} AND r.analyst = e.analyst
            AND r.request_id = e.request_id) THEN 0 ELSE cost END), 0) FROM entries e WHERE kind = 'HELD' {mine}"""
        with self._looking() as connection:
            values = {} if analyst is None else {"analyst": analyst}
            (found,) = connection.run(query, **values)
            limit = _state(connection).limit
        spent, releases, held = (int(one) for one in found)
        cap = limit.total if analyst is None else limit.per_analyst
        return Balance(cap, Fraction(spent, NANO), Fraction(held, NANO), releases, limit.contract.unit)

    def sums(self, analyst: str) -> tuple[Fraction, Fraction]:
        with self._looking() as connection:
            now = _state(connection, analyst)
        return Fraction(now.total, NANO), Fraction(now.analyst_total, NANO)

    def change_limit(self, limit: Limit) -> None:
        if limit.contract != self.limit.contract:
            raise SettingsError("a ledger keeps its contract: what was counted in one unit cannot go on in another.")
        known = self._known(to_write=True)
        with self._writing() as connection:
            _newest(connection, known)
            now = _state(connection)
            if limit.total * NANO < now.total:
                raise SettingsError(
                    f"limit {show(limit.total)} is below the {show(Fraction(now.total, NANO))} that is spent already, "
                    "so it would promise what no longer holds; choose a higher one."
                )
            _append(connection, now, LIMITED, "", "", 0, _canonical(_limit_fields(limit)))
        self.keep_head()

    def paid(self, analyst: str, request_ids: Sequence[str]) -> set[str]:
        query = f"""SELECT 1 FROM entries r WHERE kind = 'HELD' AND {INDEXED} AND analyst = :analyst
            AND request_id = :request_id"""
        with self._looking() as connection:
            return {
                name
                for name in request_ids
                if connection.run(query, analyst=analyst, request_id=name).fetchone() is not None
            }

    def released(self, analyst: str, request_id: str) -> str | None:
        with self._looking() as connection:
            return _unpadded(_state(connection, analyst, request_id).released)

    def adjacencies(self) -> set[str]:
        with self._looking() as connection:
            return {str(json.loads(body)["terms"]["adjacency"]) for (body,) in _held(connection)}

    def rows(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """In pages: a slow reader keeps nobody waiting."""
        names, last = [*COLUMNS.split(", "), "digest"], after
        query = f"SELECT {COLUMNS}, digest FROM entries WHERE position > :last ORDER BY position LIMIT {PAGE}"
        while True:
            with self._looking() as connection:
                page = [dict(zip(names, row, strict=True)) for row in connection.run(query, last=last)]
            yield from page
            if len(page) < PAGE:
                return
            last = page[-1]["position"]

    def head(self) -> Head:
        with self._looking() as connection:
            return _newest(connection)

    def keep_head(self, file: HeadFile | None = None, *, sync: bool = True) -> Head:
        place = file or self._head_file
        with self._looking() as connection:
            newest = _newest(connection)
            if place is not None and not place.advance(newest, lambda head: _holds(connection, head)):
                raise _rolled_back(newest.position)
            self._head_is_kept = self._head_is_kept or (place is not None and place is self._head_file)
        if place is not None and sync:
            place.sync()
        return newest

    def verify(self, known: Head | None = None) -> None:
        heads = [*self._known(), *([] if known is None else [known])]
        with self._reading() as connection:
            try:
                _replay(connection)
                newest = _newest(connection, heads)
            except (TypeError, ValueError, KeyError):
                raise LedgerCorrupt("a ledger row was altered; restore the newest copy.") from None
        self._see(newest)

    def _create(self, connection: Connection, limit: Limit | None, graph_id: str | None) -> None:
        if limit is None:
            raise LedgerCorrupt("ledger is empty; restore it, or give a limit to begin a new one.")
        self._schema(connection)
        for statement in MIGRATIONS.values():
            connection.run(statement)
        self._migrated(connection)
        unique = secrets.token_hex(16)  # no two ledgers begin alike
        opening = {"graph_id": graph_id or unique, "ledger": unique, **_limit_fields(limit)}
        _append(connection, _State(), OPENED, "", "", 0, _canonical(opening))

    def _check_owner(self, limit: Limit | None, graph_id: str | None) -> None:
        if graph_id is not None and graph_id != self.graph_id:
            raise SettingsError("graph_id differs from the ledger's; one private graph has one budget: use its ledger.")
        if limit is not None and limit != self.limit:
            raise SettingsError(
                f"limit differs from the ledger's ({describe(self.limit)}); give that limit, or change the ledger's on "
                "purpose: privcfs budget --set-limit or --set-analyst-limit."
            )


def _rolled_back(position: int) -> LedgerRolledBack:
    return LedgerRolledBack(
        f"ledger lacks row {position} of the known head: it was rolled back or replaced. "
        "Restore the newest copy; until then nothing is released."
    )


def _newest(connection: Connection, known: Sequence[Head] = ()) -> Head:
    """The newest row, in a chain that must hold every known head: a position alone could be another chain's."""
    found = "".join(f", (SELECT digest FROM entries WHERE position = :known{n})" for n in range(len(known)))
    query = f"""SELECT position, digest, (SELECT body FROM entries WHERE position = 1){found} FROM entries
        ORDER BY position DESC LIMIT 1"""
    values = {f"known{number}": head.position for number, head in enumerate(known)}
    ((position, digest, opening, *digests),) = connection.run(query, **values)
    graph_id = str(json.loads(opening)["graph_id"])
    for head, held in zip(known, digests, strict=True):
        if not same_row(head, held):
            if head.graph_id != graph_id:
                raise LedgerRolledBack("ledger belongs to another graph than the known head; open the right ledger.")
            raise _rolled_back(head.position)
    return Head(graph_id, position, digest)


def same_row(head: Head, digest: str | None) -> bool:
    """Whether the row at a head's position is the head's own."""
    return digest == head.digest


def _holds(connection: Connection, head: Head) -> bool:
    row = connection.run("SELECT digest FROM entries WHERE position = :position", position=head.position).fetchone()
    return same_row(head, None if row is None else row[0])


def _looked_up(connection: Connection, requests: Sequence[Request]) -> list[str | None]:
    """As if all of them were charged, one after another."""
    if len(requests) == 1:
        return [_looked_up_one(connection, requests[0])]
    found: list[str | None] = []
    more: dict[str, Fraction] = {}
    now = {analyst: _state(connection, analyst) for analyst in {request.analyst for request in requests}}
    query = f"SELECT kind, body FROM entries r WHERE {INDEXED} AND analyst = :analyst AND request_id = :request_id"
    for request in requests:
        rows = connection.run(query, analyst=request.analyst, request_id=request.request_id)
        bodies = dict(iter(rows))
        if HELD in bodies:
            _refuse_conflict(request, bodies[HELD])
        else:
            mine = more.get(request.analyst, Fraction(0))
            _check(connection, request, now[request.analyst], (sum(more.values(), Fraction(0)), mine))
            more[request.analyst] = mine + request.price
        found.append(_unpadded(bodies.get(RELEASED)))
    return found


def _looked_up_one(connection: Connection, request: Request) -> str | None:
    """In one query."""
    now = _state(connection, request.analyst, request.request_id)
    if now.held is None:
        _check(connection, request, now, (Fraction(0), Fraction(0)))
        return None
    _refuse_conflict(request, now.held)
    return _unpadded(now.released)


def _charge(connection: Connection, request: Request) -> str | None:
    now = _state(connection, request.analyst, request.request_id)
    if now.held is None:
        _pay(connection, request, now)
        return None
    _refuse_conflict(request, now.held)
    if now.released is None and request.price * NANO > now.paid:
        raise RequestConflict(
            f"request id {request.request_id!r} was paid when it cost less; choose a new id, the old is spent."
        )
    return _unpadded(now.released)


def _refuse_conflict(request: Request, held: str) -> None:
    if json.loads(held)["terms"] != request.terms:
        raise RequestConflict(
            f"request id {request.request_id!r} was used before with other parameters; choose a new id."
        )


def _check(connection: Connection, request: Request, now: "_State", more: tuple[Fraction, Fraction]) -> None:
    """Refuses what passes a limit, with `more` spent beyond the rows: in all, and by the analyst."""
    limit = request.within(now.limit)
    limit.check(request.price, Fraction(now.total, NANO) + more[0], Fraction(now.analyst_total, NANO) + more[1])
    if request.delta:
        limit.check_delta(request.delta, _deltas(connection))


def _pay(connection: Connection, request: Request, now: "_State") -> None:
    _check(connection, request, now, (Fraction(0), Fraction(0)))
    day = datetime.now(UTC).date().isoformat()
    counted = {"day": day, "unit": now.limit.contract.unit, "delta": show(request.delta)}
    body = _canonical({"terms": request.terms, **counted})
    _append(connection, now, HELD, request.analyst, request.request_id, int(request.price * NANO), body)


def _finish(connection: Connection, request: Request, release: str) -> str:
    now = _state(connection, request.analyst, request.request_id)
    if now.released is None:
        _append(connection, now, RELEASED, request.analyst, request.request_id, 0, release.ljust(request.room))
    return _unpadded(now.released) or release


def _unpadded(stored: str | None) -> str | None:
    return None if stored is None else stored.rstrip(" ")


class _State(NamedTuple):
    """The newest row, what the analyst has spent, the limits in force, and what is known of one request."""

    position: int = 0
    total: int = 0
    digest: str = NO_DIGEST
    analyst_total: int = 0
    limits: str = ""
    held: str | None = None
    paid: int = 0
    released: str | None = None

    @property
    def limit(self) -> Limit:
        """The limits in force."""
        fields = json.loads(self.limits)
        return Limit.of(fields["total"], fields["per_analyst"], contract_from(fields.get("contract", {})))


def _state(connection: Connection, analyst: str = "", request_id: str = "") -> _State:
    """In one query: a database across a network is asked as seldom as possible."""
    asked = f"{INDEXED} AND analyst = :analyst AND request_id = :request_id"
    query = f"""SELECT position, total, digest, coalesce((SELECT analyst_total FROM entries WHERE analyst = :analyst
        ORDER BY position DESC LIMIT 1), 0), (SELECT body FROM entries WHERE kind IN ('OPENED', 'LIMITED')
        ORDER BY position DESC LIMIT 1), (SELECT body FROM entries r WHERE kind = 'HELD' AND {asked}),
        coalesce((SELECT cost FROM entries r WHERE kind = 'HELD' AND {asked}), 0),
        (SELECT body FROM entries r WHERE kind = 'RELEASED' AND {asked}) FROM entries ORDER BY position DESC LIMIT 1"""
    row = connection.run(query, analyst=analyst, request_id=request_id).fetchone()
    return _State() if row is None else _State(*row)


def _append(
    connection: Connection, now: _State, kind: str, analyst: str, request_id: str, cost: int, body: str
) -> None:
    row = (now.position + 1, kind, analyst, request_id, cost, now.total + cost, now.analyst_total + cost, body)
    names = COLUMNS.split(", ")
    marks = ", ".join(f":{name}" for name in names)
    values = dict(zip(names, row, strict=True))
    query = f"INSERT INTO entries ({COLUMNS}, digest) VALUES ({marks}, :digest)"
    connection.run(query, **values, digest=_digest(now.digest, row))


def _held(connection: Connection) -> Rows:
    return connection.run("SELECT body FROM entries WHERE kind = 'HELD'")


def _deltas(connection: Connection) -> Fraction:
    """The sum of all rows' deltas; rows of earlier versions have none."""
    return sum((Fraction(json.loads(body).get("delta") or 0) for (body,) in _held(connection)), Fraction(0))


def _opening(connection: Connection) -> dict[str, Any]:
    (row,) = connection.run("SELECT body FROM entries WHERE position = 1")
    opening: dict[str, Any] = json.loads(row[0])
    return opening


def _limit_fields(limit: Limit) -> dict[str, Any]:
    each = None if limit.per_analyst is None else show(limit.per_analyst)
    return {"total": show(limit.total), "per_analyst": each, "contract": limit.contract.to_dict()}


def describe(limit: Limit) -> str:
    """Limits in words."""
    each = "" if limit.per_analyst is None else f", {show(limit.per_analyst)} per analyst"
    return f"{limit.contract.unit} {show(limit.total)} in all{each}"


def _replay(connection: Connection) -> None:
    """Checks every row: its digest over the row before, its position, the running sums."""
    count = 0
    total, by_analyst = 0, {"": 0}
    previous = NO_DIGEST
    for *columns, digest in connection.run(f"SELECT {COLUMNS}, digest FROM entries ORDER BY position"):
        position, kind, analyst, _, cost, *sums, _ = columns
        total += cost
        by_analyst[analyst] = by_analyst.get(analyst, 0) + cost
        count += 1
        good = position == count and sums == [total, by_analyst[analyst]] and (kind == HELD or cost == 0)
        if not good or digest != _digest(previous, tuple(columns)):
            raise LedgerCorrupt(f"ledger row {position} was altered; restore the newest copy.")
        previous = digest
    if not count:
        raise LedgerCorrupt("ledger has no rows; restore the newest copy.")


def _digest(previous: str, row: tuple[Any, ...]) -> str:
    return hashlib.sha256(f"{previous}\n{_canonical(row)}".encode()).hexdigest()


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
