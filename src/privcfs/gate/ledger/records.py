"""The rows of a ledger: how they are read, checked, appended and replayed, inside a transaction that is given.

Zone: gate
Claim: a row is appended only if the limits in force allow it, and its digest covers the row before it; `newest_head`
    refuses a chain that lacks a known head, digest by digest.
Why: every function here takes one open transaction and keeps nothing; the ledger that opened the transaction is the
    only writer meanwhile.
Check: tests/contracts/test_ledgers.py::test_processes_that_race_and_die_never_pass_the_limit
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, NamedTuple, Protocol

from privcfs.errors import LedgerCorrupt, LedgerRolledBack
from privcfs.gate.accounting import Limit
from privcfs.gate.contracts import contract_from
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.ledger.rules import NOTHING, Spent, check_limits, check_same_price, check_same_question
from privcfs.public.epsilon import NANO, show
from privcfs.public.head import Head

VERSION = 2
NO_DIGEST = "0" * 64
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


def rolled_back(position: int) -> LedgerRolledBack:
    """The error about a chain that lacks a known head."""
    return LedgerRolledBack(
        f"ledger lacks row {position} of the known head: it was rolled back or replaced. "
        "Restore the newest copy; until then nothing is released."
    )


def newest_head(connection: Connection, known: Sequence[Head] = ()) -> Head:
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
            raise rolled_back(head.position)
    return Head(graph_id, position, digest)


def same_row(head: Head, digest: str | None) -> bool:
    """Whether the row at a head's position is the head's own."""
    return digest == head.digest


def holds(connection: Connection, head: Head) -> bool:
    """Whether the chain holds this very row."""
    row = connection.run("SELECT digest FROM entries WHERE position = :position", position=head.position).fetchone()
    return same_row(head, None if row is None else row[0])


def look_up(connection: Connection, requests: Sequence[Request]) -> list[str | None]:
    """As if all of them were charged, one after another."""
    if len(requests) == 1:
        return [look_up_one(connection, requests[0])]
    found: list[str | None] = []
    more: dict[str, Fraction] = {}
    now = {analyst: state_of(connection, analyst) for analyst in {request.analyst for request in requests}}
    query = f"SELECT kind, body FROM entries r WHERE {INDEXED} AND analyst = :analyst AND request_id = :request_id"
    for request in requests:
        rows = connection.run(query, analyst=request.analyst, request_id=request.request_id)
        bodies = dict(iter(rows))
        if HELD in bodies:
            check_same_question(request, terms_of(bodies[HELD]))
        else:
            mine = more.get(request.analyst, Fraction(0))
            _check_limits(connection, request, now[request.analyst], Spent(sum(more.values(), Fraction(0)), mine))
            more[request.analyst] = mine + request.price
        found.append(unpadded(bodies.get(RELEASED)))
    return found


def look_up_one(connection: Connection, request: Request) -> str | None:
    """In one query."""
    now = state_of(connection, request.analyst, request.request_id)
    if now.held is None:
        _check_limits(connection, request, now)
        return None
    check_same_question(request, terms_of(now.held))
    return unpadded(now.released)


def charge(connection: Connection, request: Request) -> str | None:
    """Pays for a request, or returns the answer that it has already; refuses an id that was used for something else."""
    now = state_of(connection, request.analyst, request.request_id)
    if now.held is None:
        pay(connection, request, now)
        return None
    check_same_question(request, terms_of(now.held))
    if now.released is None:
        check_same_price(request, Fraction(now.paid, NANO))
    return unpadded(now.released)


def terms_of(held: str) -> dict[str, Any]:
    """What was asked for, from the body of a charge."""
    terms: dict[str, Any] = json.loads(held)["terms"]
    return terms


def _check_limits(connection: Connection, request: Request, now: "State", more: Spent = NOTHING) -> None:
    """Applies the rulebook to the sums of the rows and `more`, which is spent by requests not yet appended."""
    spent = Spent(Fraction(now.total, NANO) + more.total, Fraction(now.analyst_total, NANO) + more.by_analyst)
    check_limits(request, now.limit, spent, lambda: sum_of_deltas(connection))


def pay(connection: Connection, request: Request, now: "State") -> None:
    """Appends the price of a request where the limits in force allow it."""
    _check_limits(connection, request, now)
    day = datetime.now(UTC).date().isoformat()
    counted = {"day": day, "unit": now.limit.contract.unit, "delta": show(request.delta)}
    body = canonical({"terms": request.terms, **counted})
    append_row(connection, now, HELD, request.analyst, request.request_id, int(request.price * NANO), body)


def finish(connection: Connection, request: Request, release: str) -> str:
    """Appends the answer of a request, padded to its public length, and returns the answer that the ledger holds."""
    now = state_of(connection, request.analyst, request.request_id)
    if now.released is None:
        append_row(connection, now, RELEASED, request.analyst, request.request_id, 0, release.ljust(request.room))
    return unpadded(now.released) or release


def unpadded(stored: str | None) -> str | None:
    """A stored answer without its padding."""
    return None if stored is None else stored.rstrip(" ")


class State(NamedTuple):
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


def state_of(connection: Connection, analyst: str = "", request_id: str = "") -> State:
    """In one query: a database across a network is asked as seldom as possible."""
    asked = f"{INDEXED} AND analyst = :analyst AND request_id = :request_id"
    query = f"""SELECT position, total, digest, coalesce((SELECT analyst_total FROM entries WHERE analyst = :analyst
        ORDER BY position DESC LIMIT 1), 0), (SELECT body FROM entries WHERE kind IN ('OPENED', 'LIMITED')
        ORDER BY position DESC LIMIT 1), (SELECT body FROM entries r WHERE kind = 'HELD' AND {asked}),
        coalesce((SELECT cost FROM entries r WHERE kind = 'HELD' AND {asked}), 0),
        (SELECT body FROM entries r WHERE kind = 'RELEASED' AND {asked}) FROM entries ORDER BY position DESC LIMIT 1"""
    row = connection.run(query, analyst=analyst, request_id=request_id).fetchone()
    return State() if row is None else State(*row)


def append_row(
    connection: Connection, now: State, kind: str, analyst: str, request_id: str, cost: int, body: str
) -> None:
    """Appends one row, with the running sums and a digest that covers the newest row."""
    row = (now.position + 1, kind, analyst, request_id, cost, now.total + cost, now.analyst_total + cost, body)
    names = COLUMNS.split(", ")
    marks = ", ".join(f":{name}" for name in names)
    values = dict(zip(names, row, strict=True))
    query = f"INSERT INTO entries ({COLUMNS}, digest) VALUES ({marks}, :digest)"
    connection.run(query, **values, digest=digest_of(now.digest, row))


def held_bodies(connection: Connection) -> Rows:
    """The bodies of all charges."""
    return connection.run("SELECT body FROM entries WHERE kind = 'HELD'")


def sum_of_deltas(connection: Connection) -> Fraction:
    """The sum of all rows' deltas; rows of earlier versions have none."""
    return sum((Fraction(json.loads(body).get("delta") or 0) for (body,) in held_bodies(connection)), Fraction(0))


def opening_of(connection: Connection) -> dict[str, Any]:
    """What was written down when the ledger was made."""
    (row,) = connection.run("SELECT body FROM entries WHERE position = 1")
    opening: dict[str, Any] = json.loads(row[0])
    return opening


def limit_fields(limit: Limit) -> dict[str, Any]:
    """Limits as they are stored."""
    each = None if limit.per_analyst is None else show(limit.per_analyst)
    return {"total": show(limit.total), "per_analyst": each, "contract": limit.contract.to_dict()}


def describe(limit: Limit) -> str:
    """Limits in words."""
    each = "" if limit.per_analyst is None else f", {show(limit.per_analyst)} per analyst"
    return f"{limit.contract.unit} {show(limit.total)} in all{each}"


def replay(connection: Connection) -> None:
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
        if not good or digest != digest_of(previous, tuple(columns)):
            raise LedgerCorrupt(f"ledger row {position} was altered; restore the newest copy.")
        previous = digest
    if not count:
        raise LedgerCorrupt("ledger has no rows; restore the newest copy.")


def digest_of(previous: str, row: tuple[Any, ...]) -> str:
    """The digest of a row and of all rows before it."""
    return hashlib.sha256(f"{previous}\n{canonical(row)}".encode()).hexdigest()


def canonical(value: Any) -> str:
    """JSON in one form only, so that equal values have equal digests."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
