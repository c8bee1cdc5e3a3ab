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

import os
import secrets
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple

from privcfs.errors import (
    LedgerCorrupt,
    LedgerError,
    LedgerTooNew,
    SettingsError,
)
from privcfs.gate.accounting import Balance, Limit
from privcfs.gate.ledger import records
from privcfs.gate.ledger.accounts import Sums
from privcfs.gate.ledger.claims import Claims, Keys, keys_of
from privcfs.gate.ledger.group_commit import ADVICE, GroupCommit
from privcfs.gate.ledger.heads import HeadFile
from privcfs.gate.ledger.ledger import Charge, Ledger, Request, Standing
from privcfs.gate.ledger.locks import SEEING
from privcfs.gate.ledger.records import Connection
from privcfs.gate.ledger.rules import check_new_limit, standing_of
from privcfs.gate.ledger.tally import Tally
from privcfs.public.epsilon import NANO
from privcfs.public.head import Head

PAGE = 1000  # rows of an export at a time
ANSWERED = f"""EXISTS (SELECT 1 FROM entries r WHERE r.kind = 'RELEASED' AND {records.INDEXED} AND r.analyst = e.analyst
    AND r.request_id = e.request_id)"""


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
        self._group = GroupCommit()
        self._seen: Head | None = None  # the newest row that this process knows of
        self._tally = Tally()
        self._adjacencies: tuple[int, frozenset[str]] = 0, frozenset()  # up to a position
        self._head_file = head_file
        self._head_is_kept = False  # from the first head that was read or written on
        with self._making() as connection:
            version = self._version(connection)
            if version > records.VERSION:
                raise LedgerTooNew(
                    f"ledger has version {version}, this program reads {records.VERSION}; install a newer privcfs."
                )
            if version == 0:
                self._create(connection, limit, graph_id)
            elif version < records.VERSION:
                self._migrate(connection, version)
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
        """The version of the ledger's tables; 0 where there are none."""

    @abstractmethod
    def _schema(self, connection: Connection) -> None:
        """Makes the tables, append-only, of the first version."""

    def _migrate(self, connection: Connection, version: int) -> None:
        """Brings tables of this version up to the newest."""
        for number in range(version + 1, records.VERSION + 1):
            for statement in self._statements(number):
                connection.run(statement)
        self._migrated(connection)

    @abstractmethod
    def _statements(self, version: int) -> list[str]:
        """What makes tables of the version before into those of this one, in the words of this database."""

    @abstractmethod
    def _migrated(self, connection: Connection) -> None:
        """Writes down that the tables have the newest version."""

    @contextmanager
    def _looking(self) -> Iterator[Connection]:
        """A reading transaction on a chain that holds everything that is known of it."""
        known = self._known()  # before the transaction sees anything, or it would miss what was written meanwhile
        with self._reading() as connection:
            newest = records.newest_head(connection, known)
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
            return str(records.opening_of(connection)["graph_id"])

    @property
    def limit(self) -> Limit:
        with self._looking() as connection:
            return records.state_of(connection).limit

    def look_up(self, requests: Sequence[Request]) -> list[str | None]:
        known = self._known()
        with self._glancing() as connection:
            newest = records.newest_head(connection, known)
            found = records.look_up(connection, requests)
        self._see(newest)
        return found

    def _glancing(self) -> AbstractContextManager[Connection]:
        """A transaction for a look-up whose result the charge checks again; rows may be added between its queries."""
        return self._reading()

    def claim(self, requests: Sequence[Request]) -> "_Held":
        keys = keys_of((request.analyst, request.request_id) for request in requests)
        claims = self._claims()
        claims.take(keys, self._patience)
        return _Held(claims, keys, os.getpid())

    @abstractmethod
    def _claims(self) -> Claims:
        """The claims of this process on this ledger."""

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        def work(connection: Connection) -> list[str | None]:
            return [records.charge(connection, request) for request in requests]

        advice = "nothing was charged, try again"
        found: list[str | None] = self._group.run(work, len(requests), advice, self._commit, self._patience)
        return found

    def finish_all(self, answers: Sequence[tuple[Request, str]]) -> list[str]:
        def work(connection: Connection) -> list[str]:
            return [records.finish(connection, request, release) for request, release in answers]

        ids = ", ".join(request.request_id for request, _ in answers)
        advice = f"it is paid: ask again with request id {ids}"
        found: list[str] = self._group.run(work, len(answers), advice, self._commit, self._patience)
        return found

    def _commit(self, take_steps: Callable[[Connection], None]) -> None:
        """Runs some steps in the only writing transaction, on a chain that holds everything that is known of it."""
        known = self._known(to_write=True)
        with self._writing(ADVICE) as connection:
            records.newest_head(connection, known)
            take_steps(connection)
            newest = records.newest_head(connection)
        self._see(newest)
        self._follow(newest, known)

    def balance(self, analyst: str | None = None) -> Balance:
        with self._looking() as connection:
            limit = records.state_of(connection).limit
            rows = iter(records.charges_and_answers(connection, self._tally.position))
            while page := list(islice(rows, PAGE)):
                with SEEING:
                    self._tally.follow(page)
        with SEEING:
            found = self._tally.of(analyst)
        return _balance(found, limit.total if analyst is None else limit.per_analyst, limit)

    def node_balance(self, node: int) -> Balance:
        query = f"""SELECT coalesce(sum(cost), 0), count(*), coalesce(sum(CASE WHEN {ANSWERED} THEN 0 ELSE cost END), 0)
            FROM accounts a JOIN entries e ON e.position = a.position WHERE a.node = :node AND a.month >= :since"""
        with self._looking() as connection:
            now = records.state_of(connection)
            since = now.limit.period_of(now.accounts.month())  # "2026" comes before "2026-01"
            (found,) = connection.run(query, node=node, since=since)
        return _balance(found, now.limit.per_node, now.limit)

    def spent_at(self, nodes: Sequence[int]) -> dict[int, Fraction]:
        with self._looking() as connection:
            now, sums = records.state_of(connection), records.sums_at(connection, nodes)
        period, month = now.limit.period, now.accounts.month()
        return {node: Fraction(sums.get(node, Sums()).within(period, month), NANO) for node in nodes}

    def standing(self) -> Standing:
        with self._looking() as connection:
            now, edge_level = records.state_of(connection), records.edge_level_sum(connection)
        return standing_of(now.total, now.accounts, edge_level, now.limit)

    def sums(self, analyst: str) -> tuple[Fraction, Fraction]:
        with self._looking() as connection:
            now = records.state_of(connection, analyst)
        return Fraction(now.total - now.accounts.paid, NANO), Fraction(now.analyst_total, NANO)

    def change_limit(self, limit: Limit) -> None:
        known = self._known(to_write=True)
        with self._writing() as connection:
            records.newest_head(connection, known)
            now = records.state_of(connection)
            check_new_limit(limit, now.limit, Fraction(now.total - now.accounts.paid, NANO), now.accounts)
            records.append_row(
                connection, now, records.LIMITED, "", "", 0, records.canonical(records.limit_fields(limit))
            )
        self.keep_head()

    def paid(self, analyst: str, request_ids: Sequence[str]) -> set[str]:
        query = f"""SELECT 1 FROM entries r WHERE kind = 'HELD' AND {records.INDEXED} AND analyst = :analyst
            AND request_id = :request_id"""
        with self._looking() as connection:
            return {
                name
                for name in request_ids
                if connection.run(query, analyst=analyst, request_id=name).fetchone() is not None
            }

    def charges(self, analyst: str, most: int, before: int | None = None) -> list[Charge]:
        with self._looking() as connection:
            return [
                Charge(position, name, Fraction(cost, NANO), *records.day_and_terms_of(body))
                for position, name, cost, body in records.charges_of(connection, analyst, most, before)
            ]

    def price_of(self, analyst: str, request_id: str) -> Fraction | None:
        with self._looking() as connection:
            now = records.state_of(connection, analyst, request_id)
        return None if now.held is None else Fraction(now.paid, NANO)

    def released(self, analyst: str, request_id: str) -> str | None:
        with self._looking() as connection:
            return records.state_of(connection, analyst, request_id).answer

    def adjacencies(self) -> set[str]:
        """Reads the rows since the last call: a chain that lost or changed earlier ones is refused before."""
        last, known = self._adjacencies
        with self._looking() as connection:
            newest = records.newest_head(connection).position
            bodies = records.held_bodies(connection, after=last)
            found = known | {str(records.terms_of(body)["adjacency"]) for (body,) in bodies}
        self._adjacencies = newest, found
        return set(found)

    def rows(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """All rows after a position, read in pages, so that a slow reader holds no transaction open."""
        names, last = [*records.COLUMNS.split(", "), "digest"], after
        query = f"SELECT {records.COLUMNS}, digest FROM entries WHERE position > :last ORDER BY position LIMIT {PAGE}"
        while True:
            with self._looking() as connection:
                page = [dict(zip(names, row, strict=True)) for row in connection.run(query, last=last)]
            yield from page
            if len(page) < PAGE:
                return
            last = page[-1]["position"]

    def head(self) -> Head:
        with self._looking() as connection:
            return records.newest_head(connection)

    def keep_head(self, file: HeadFile | None = None, *, sync: bool = True) -> Head:
        place = file or self._head_file
        with self._looking() as connection:
            newest = records.newest_head(connection)
            if place is not None and not place.advance(newest, lambda head: records.holds(connection, head)):
                raise records.rolled_back(newest.position)
            self._head_is_kept = self._head_is_kept or (place is not None and place is self._head_file)
        if place is not None and sync:
            place.sync()
        return newest

    def verify(self, known: Head | None = None) -> None:
        heads = [*self._known(), *([] if known is None else [known])]
        with self._reading() as connection:
            try:
                records.replay(connection)
                newest = records.newest_head(connection, heads)
            except (TypeError, ValueError, KeyError):
                raise LedgerCorrupt("a ledger row was altered; restore the newest copy.") from None
        self._see(newest)

    def _create(self, connection: Connection, limit: Limit | None, graph_id: str | None) -> None:
        if limit is None:
            raise LedgerCorrupt("ledger is empty; restore it, or give a limit to begin a new one.")
        self._schema(connection)
        self._migrate(connection, 1)
        unique = secrets.token_hex(16)  # no two ledgers begin alike
        opening = {"graph_id": graph_id or unique, "ledger": unique, **records.limit_fields(limit)}
        records.append_row(connection, records.State(), records.OPENED, "", "", 0, records.canonical(opening))

    def _check_owner(self, limit: Limit | None, graph_id: str | None) -> None:
        if graph_id is not None and graph_id != self.graph_id:
            raise SettingsError("graph_id differs from the ledger's; one private graph has one budget: use its ledger.")
        if limit is not None and limit != self.limit:
            raise SettingsError(
                f"limit differs from the ledger's ({records.describe(self.limit)}); give that limit, or change the "
                "ledger's on purpose: privcfs budget --set-limit or --set-analyst-limit."
            )


def _balance(found: Sequence[Any], most: Fraction | None, limit: Limit) -> Balance:
    """From what is spent, the number of answers and what is held, in billionths."""
    spent, answers, held = (int(one) for one in found)
    return Balance(most, Fraction(spent, NANO), Fraction(held, NANO), answers, limit.contract.unit)
