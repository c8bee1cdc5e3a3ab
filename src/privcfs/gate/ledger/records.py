"""The rows of a ledger: how they are read, checked, appended and replayed, inside a transaction that is given.

Zone: gate
Claim: a row is appended only if the limits in force allow it, and its digest covers the row before it; `newest_head`
    refuses a chain that lacks a known head, digest by digest; an answer that is kept apart leaves no trace in the chain
    besides the fact that it was stored.
Why: every function here takes one open transaction and keeps nothing; the ledger that opened the transaction is the
    only writer meanwhile.
Check: tests/contracts/test_ledgers.py::test_processes_that_race_and_die_never_pass_the_limit
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

from privcfs.errors import LedgerCorrupt, LedgerRolledBack
from privcfs.gate.accounting import Limit
from privcfs.gate.contracts import contract_from
from privcfs.gate.ledger import accounts as node_accounts
from privcfs.gate.ledger.accounts import Accounts, Sums
from privcfs.gate.ledger.ledger import ENTRIES, WIDEST, Request
from privcfs.gate.ledger.rules import Spent, check_limits, check_same_price, check_same_question
from privcfs.public.epsilon import NANO, show
from privcfs.public.head import Head

VERSION = 3
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
KEPT_APART = "kept apart"  # in the place of an answer that is stored beside the chain
MIGRATIONS = {
    2: "CREATE INDEX limits ON entries (position) WHERE kind IN ('OPENED', 'LIMITED');\n",
    3: """
CREATE TABLE accounts (
  position BIGINT NOT NULL, node BIGINT NOT NULL, alone BIGINT NOT NULL, month TEXT NOT NULL,
  in_month BIGINT NOT NULL, in_year BIGINT NOT NULL, in_all BIGINT NOT NULL, paid BIGINT NOT NULL,
  most_in_month BIGINT NOT NULL, most_in_year BIGINT NOT NULL, most_in_all BIGINT NOT NULL,
  PRIMARY KEY (position, node));
CREATE INDEX by_node ON accounts (node, position);
CREATE TABLE kept_apart (
  analyst TEXT NOT NULL, request_id TEXT NOT NULL, body TEXT NOT NULL, PRIMARY KEY (analyst, request_id));
""",
}
ACCOUNT = "node, alone, month, in_month, in_year, in_all, paid, most_in_month, most_in_year, most_in_all"
SUMS = "month, in_month, in_year, in_all"
ACCOUNT_COLUMNS = ACCOUNT.split(", ")
INSERT_ACCOUNT = f"INSERT INTO accounts (position, {ACCOUNT}) VALUES (:position, :{ACCOUNT.replace(', ', ', :')})"
PAGE_OF_NODES = 100  # in one query


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
    graph_id = _graph_id(opening)
    for head, held in zip(known, digests, strict=True):
        if not same_row(head, held):
            if head.graph_id != graph_id:
                raise LedgerRolledBack("ledger belongs to another graph than the known head; open the right ledger.")
            raise rolled_back(head.position)
    return Head(graph_id, position, digest)


@lru_cache(maxsize=64)
def _graph_id(opening: str) -> str:
    """Whose ledger it is, by the body of its first row."""
    return str(json.loads(opening)["graph_id"])


def same_row(head: Head, digest: str | None) -> bool:
    """Whether the row at a head's position is the head's own."""
    return digest == head.digest


def holds(connection: Connection, head: Head) -> bool:
    """Whether the chain holds this very row."""
    row = connection.run("SELECT digest FROM entries WHERE position = :position", position=head.position).fetchone()
    return same_row(head, None if row is None else row[0])


def look_up(connection: Connection, requests: Sequence[Request]) -> list[str | None]:
    """What is stored for each request. Refuses what charging them in turn would refuse, and writes nothing."""
    if len(requests) == 1:
        return [look_up_one(connection, requests[0])]
    found: list[str | None] = []
    nodes = sorted({node for request in requests for node in request.reads})
    now = {analyst: state_of(connection, analyst) for analyst in {request.analyst for request in requests}}
    sums = sums_at(connection, nodes)
    for request in requests:
        held, released = _rows_of(connection, request)
        if held is not None:
            check_same_question(request, terms_of(held))
        else:
            before = now[request.analyst]._replace(nodes=sums)
            _check_limits(connection, request, before)
            after, sums = _after(before, request)
            now = {who: one._replace(total=after.total, accounts=after.accounts) for who, one in now.items()}
            now[request.analyst] = after
        found.append(released)
    return found


def _rows_of(connection: Connection, request: Request) -> tuple[str | None, str | None]:
    """The body of a request's charge, and its answer, as far as they exist."""
    query = f"SELECT kind, body FROM entries r WHERE {INDEXED} AND analyst = :analyst AND request_id = :request_id"
    bodies = dict(iter(connection.run(query, analyst=request.analyst, request_id=request.request_id)))
    if bodies.get(RELEASED) == KEPT_APART:
        return bodies[HELD], state_of(connection, request.analyst, request.request_id).answer
    return bodies.get(HELD), unpadded(bodies.get(RELEASED))


def look_up_one(connection: Connection, request: Request) -> str | None:
    """What is stored for one request, found in one query, or in two if the request reads several nodes."""
    now = state_of(connection, request.analyst, request.request_id, request.reads)
    if now.held is None:
        _check_limits(connection, request, now)
        return None
    check_same_question(request, terms_of(now.held))
    return now.answer


def charge(connection: Connection, request: Request) -> str | None:
    """Pays for a request, or returns the answer that it has already; refuses an id that was used for something else."""
    now = state_of(connection, request.analyst, request.request_id, request.reads)
    if now.held is None:
        pay(connection, request, now)
        return None
    check_same_question(request, terms_of(now.held))
    if now.released is None:
        check_same_price(request, Fraction(now.paid, NANO))
    return now.answer


def day_and_terms_of(held: str) -> tuple[str, dict[str, Any]]:
    """When something was asked for, and what, from the body of a charge."""
    fields = json.loads(held)
    return str(fields["day"]), fields["terms"]


def charges_of(connection: Connection, analyst: str, most: int, before: int | None) -> Rows:
    """Position, request id, cost and body of one analyst's newest charges."""
    earlier = "" if before is None else "AND position < :before"
    query = f"""SELECT position, request_id, cost, body FROM entries WHERE analyst = :analyst AND kind = 'HELD'
        {earlier} ORDER BY position DESC LIMIT :most"""
    return connection.run(query, analyst=analyst, most=most, **({} if before is None else {"before": before}))


def terms_of(held: str) -> dict[str, Any]:
    """What was asked for, from the body of a charge."""
    terms: dict[str, Any] = json.loads(held)["terms"]
    return terms


def _check_limits(connection: Connection, request: Request, now: "State") -> None:
    """Applies the rulebook to the sums of the rows."""
    limit, month = now.limit, now.accounts.month()
    at_nodes = {node: Fraction(one.within(limit.period, month), NANO) for node, one in now.nodes.items()}
    counted = Fraction(now.total - now.accounts.paid, NANO)
    spent = Spent(counted, Fraction(now.analyst_total, NANO), at_nodes, limit.period_of(month))
    check_limits(request, limit, spent, lambda: sum_of_deltas(connection))


def pay(connection: Connection, request: Request, now: "State") -> None:
    """Appends the price of a request where the limits in force allow it, and what it adds to accounts of nodes."""
    _check_limits(connection, request, now)
    limit = now.limit
    cost, nodes, month = int(request.counted * NANO), request.paid_at(limit), now.accounts.month()
    append_row(connection, now, HELD, request.analyst, request.request_id, cost, held_body(request, limit, month))
    if nodes:
        append_to_accounts(connection, now.position + 1, _rows_at(now, request, nodes, cost, month))


def held_body(request: Request, limit: Limit, month: str) -> str:
    """What a charge says of itself: the terms, the day, and the nodes and the month of the accounts that pay for it."""
    day, unit = node_accounts.today().isoformat(), limit.contract.unit
    counted: dict[str, Any] = {"terms": request.terms, "day": day, "unit": unit, "delta": show(request.delta)}
    nodes = request.paid_at(limit)
    return canonical(counted | ({"nodes": nodes, "month": month} if nodes else {}))


def _rows_at(now: "State", request: Request, nodes: Sequence[int], cost: int, month: str) -> list[node_accounts.Row]:
    return node_accounts.charged(now.accounts, now.nodes, nodes, cost, month, request.in_full)


def _after(now: "State", request: Request) -> tuple["State", dict[int, Sums]]:
    """The sums as they would be after a charge, of which nothing is written."""
    cost, nodes, sums = int(request.counted * NANO), request.paid_at(now.limit), dict(now.nodes)
    accounts = now.accounts
    if nodes:
        rows = _rows_at(now, request, nodes, cost, accounts.month())
        sums |= {row.node: row.sums for row in rows}
        accounts = rows[-1].accounts
    return now._replace(total=now.total + cost, analyst_total=now.analyst_total + cost, accounts=accounts), sums


def append_to_accounts(connection: Connection, position: int, rows: Sequence[node_accounts.Row]) -> None:
    """Writes what the charge at this position adds to the accounts of nodes."""
    for row in rows:
        connection.run(INSERT_ACCOUNT, position=position, **dict(zip(ACCOUNT_COLUMNS, row.flat(), strict=True)))


def finish(connection: Connection, request: Request, release: str) -> str:
    """Appends the answer of a request, padded to its public length, and returns the answer that the ledger holds.

    An answer that is kept apart goes beside the chain, whose row says no more than that there is one.
    """
    now = state_of(connection, request.analyst, request.request_id)
    if now.released is None:
        padded = release.ljust(request.room)
        body = KEPT_APART if request.apart else padded
        append_row(connection, now, RELEASED, request.analyst, request.request_id, 0, body)
        if request.apart:
            query = "INSERT INTO kept_apart (analyst, request_id, body) VALUES (:analyst, :request_id, :body)"
            connection.run(query, analyst=request.analyst, request_id=request.request_id, body=padded)
    return now.answer or release


def unpadded(stored: str | None) -> str | None:
    """A stored answer without its padding."""
    return None if stored is None else stored.rstrip(" ")


class State(NamedTuple):
    """The newest row, sums of an analyst and of accounts, the limits in force, and what is known of one request."""

    position: int = 0
    total: int = 0
    digest: str = NO_DIGEST
    analyst_total: int = 0
    limits: str = ""
    held: str | None = None
    paid: int = 0
    released: str | None = None
    apart: str | None = None
    accounts: Accounts = Accounts()
    nodes: Mapping[int, Sums] = {}

    @property
    def limit(self) -> Limit:
        """The limits in force."""
        return limit_from(self.limits)

    @property
    def answer(self) -> str | None:
        """The stored answer without its padding, wherever it is stored."""
        if self.released != KEPT_APART:
            return unpadded(self.released)
        if self.apart is None:
            raise LedgerCorrupt("an answer that was kept apart is missing from the ledger; restore the newest copy.")
        return unpadded(self.apart)


def state_of(connection: Connection, analyst: str = "", request_id: str = "", nodes: Sequence[int] = ()) -> State:
    """In one query, or two for several nodes: a database across a network is asked as seldom as possible."""
    asked = f"{INDEXED} AND analyst = :analyst AND request_id = :request_id"
    query = f"""SELECT position, total, digest, coalesce((SELECT analyst_total FROM entries WHERE analyst = :analyst
        ORDER BY position DESC LIMIT 1), 0), (SELECT body FROM entries WHERE kind IN ('OPENED', 'LIMITED')
        ORDER BY position DESC LIMIT 1), (SELECT body FROM entries r WHERE kind = 'HELD' AND {asked}),
        coalesce((SELECT cost FROM entries r WHERE kind = 'HELD' AND {asked}), 0),
        (SELECT body FROM entries r WHERE kind = 'RELEASED' AND {asked}),
        (SELECT body FROM kept_apart WHERE analyst = :analyst AND request_id = :request_id),
        a.paid, a.month, a.most_in_month, a.most_in_year, a.most_in_all, n.month, n.in_month, n.in_year, n.in_all
        FROM (SELECT position, total, digest FROM entries ORDER BY position DESC LIMIT 1) e
        LEFT JOIN (SELECT paid, month, most_in_month, most_in_year, most_in_all FROM accounts
            ORDER BY position DESC LIMIT 1) a ON 1 = 1
        LEFT JOIN (SELECT {SUMS} FROM accounts WHERE node = :node ORDER BY position DESC LIMIT 1) n ON 1 = 1"""
    only = nodes[0] if len(nodes) == 1 else -1
    row = connection.run(query, analyst=analyst, request_id=request_id, node=only).fetchone()
    if row is None:
        return State()
    paid, dearest, at_node = row[9], row[10:14], row[14:]
    found = {only: Sums(*at_node)} if at_node[0] is not None else {}
    accounts = Accounts() if paid is None else Accounts(paid, Sums(*dearest))
    return State(*row[:9])._replace(accounts=accounts, nodes=sums_at(connection, nodes) if len(nodes) > 1 else found)


def sums_at(connection: Connection, nodes: Sequence[int]) -> dict[int, Sums]:
    """The newest sums at each of these nodes, as far as something was paid there."""
    found: dict[int, Sums] = {}
    for first in range(0, len(nodes), PAGE_OF_NODES):
        page = {f"node{number}": node for number, node in enumerate(nodes[first : first + PAGE_OF_NODES])}
        query = f"""SELECT node, {SUMS} FROM accounts a WHERE node IN ({", ".join(f":{name}" for name in page)})
            AND position = (SELECT max(position) FROM accounts b WHERE b.node = a.node)"""
        found |= {node: Sums(*sums) for node, *sums in connection.run(query, **page)}
    return found


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


def held_bodies(connection: Connection, after: int = 0) -> Rows:
    """The bodies of all charges after a position."""
    return connection.run("SELECT body FROM entries WHERE kind = 'HELD' AND position > :after", after=after)


def charges_and_answers(connection: Connection, after: int) -> Rows:
    """Every charge and answer after a position, in their order; the last column is above 0 where nodes alone paid."""
    query = """SELECT e.position, kind, analyst, request_id, cost, a.alone FROM entries e
        LEFT JOIN accounts a ON a.position = e.position AND a.alone > 0
        WHERE e.position > :after AND kind IN ('HELD', 'RELEASED') ORDER BY e.position"""
    return connection.run(query, after=after)


def sum_of_deltas(connection: Connection) -> Fraction:
    """The sum of all rows' deltas; rows of earlier versions have none."""
    return sum((Fraction(json.loads(body).get("delta") or 0) for (body,) in held_bodies(connection)), Fraction(0))


def edge_level_sum(connection: Connection) -> int:
    """The costs of the owner's entries that hold for graphs that differ in one edge, and not for any two."""
    query = "SELECT cost, body FROM entries WHERE analyst = :owner AND kind = 'HELD'"
    rows = connection.run(query, owner=ENTRIES)
    return sum(int(cost) for cost, body in rows if not terms_of(body)["adjacency"].startswith(WIDEST))


def opening_of(connection: Connection) -> dict[str, Any]:
    """What was written down when the ledger was made."""
    (row,) = connection.run("SELECT body FROM entries WHERE position = 1")
    opening: dict[str, Any] = json.loads(row[0])
    return opening


def limit_fields(limit: Limit) -> dict[str, Any]:
    """Limits as they are stored."""
    each = None if limit.per_analyst is None else show(limit.per_analyst)
    fields = {"total": show(limit.total), "per_analyst": each, "contract": limit.contract.to_dict()}
    return fields if limit.per_node is None else {**fields, "per_node": show(limit.per_node), "period": limit.period}


@lru_cache(maxsize=64)
def limit_from(body: str) -> Limit:
    """The inverse of `limit_fields`, from the body of a row."""
    fields = json.loads(body)
    contract, period = contract_from(fields.get("contract", {})), fields.get("period", "")
    return Limit.of(fields["total"], fields["per_analyst"], contract, per_node=fields.get("per_node"), period=period)


def describe(limit: Limit) -> str:
    """Limits in words."""
    each = "" if limit.per_analyst is None else f", {show(limit.per_analyst)} per analyst"
    node = "" if limit.per_node is None else f", {show(limit.per_node)} per node"
    return (
        f"{limit.contract.unit} {show(limit.total)} in all{each}{node}{f' and {limit.period}' if limit.period else ''}"
    )


def replay(connection: Connection) -> None:
    """Checks every row: its digest over the row before, its position, the running sums, the accounts of nodes."""
    count = 0
    total, by_analyst = 0, {"": 0}
    previous = NO_DIGEST
    beside = Beside(connection)
    for *columns, digest in connection.run(f"SELECT {COLUMNS}, digest FROM entries ORDER BY position"):
        position, kind, analyst, _, cost, *sums, _ = columns
        total += cost
        by_analyst[analyst] = by_analyst.get(analyst, 0) + cost
        count += 1
        good = position == count and sums == [total, by_analyst[analyst]] and (kind == HELD or cost == 0)
        if not good or digest != digest_of(previous, tuple(columns)):
            raise LedgerCorrupt(f"ledger row {position} was altered; restore the newest copy.")
        beside.follow(*columns)
        previous = digest
    if not count:
        raise LedgerCorrupt("ledger has no rows; restore the newest copy.")
    beside.end()


class Beside:
    """Compares the tables beside the chain with what follows from its rows, as these are replayed in order."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._rows = iter(connection.run(f"SELECT position, {ACCOUNT} FROM accounts ORDER BY position, node"))
        self._accounts, self._nodes = Accounts(), dict[int, Sums]()
        self._apart = 0

    def follow(self, position: int, kind: str, analyst: str, request_id: str, cost: int, *rest: Any) -> None:
        """The next row of the chain, which is as it was written."""
        body = rest[-1]
        if kind == RELEASED and body == KEPT_APART:
            self._apart += 1
            self._find(analyst, request_id)
        elif kind == HELD and '"nodes":' in body:  # text of a question cannot contain this: its quotes are escaped
            self._compare(position, cost, json.loads(body))

    def _compare(self, position: int, cost: int, body: dict[str, Any]) -> None:
        nodes, month, in_full = body["nodes"], body["month"], bool(body["terms"].get("in_full"))
        for row in node_accounts.charged(self._accounts, self._nodes, nodes, cost, month, in_full):
            if next(self._rows, None) != (position, *row.flat()):
                raise LedgerCorrupt(f"the account of node {row.node} was altered; restore the newest copy.")
            self._nodes[row.node], self._accounts = row.sums, row.accounts

    def _find(self, analyst: str, request_id: str) -> None:
        query = "SELECT 1 FROM kept_apart WHERE analyst = :analyst AND request_id = :request_id"
        if self._connection.run(query, analyst=analyst, request_id=request_id).fetchone() is None:
            raise LedgerCorrupt("an answer that was kept apart is missing from the ledger; restore the newest copy.")

    def end(self) -> None:
        """After the last row of the chain nothing else may lie beside it."""
        ((apart,),) = self._connection.run("SELECT count(*) FROM kept_apart")
        if next(self._rows, None) is not None or apart != self._apart:
            raise LedgerCorrupt("rows were added beside the ledger's chain; restore the newest copy.")


def digest_of(previous: str, row: tuple[Any, ...]) -> str:
    """The digest of a row and of all rows before it."""
    return hashlib.sha256(f"{previous}\n{canonical(row)}".encode()).hexdigest()


def canonical(value: Any) -> str:
    """JSON in one form only, so that equal values have equal digests."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
