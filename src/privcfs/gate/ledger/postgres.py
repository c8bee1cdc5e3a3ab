"""The ledger in a PostgreSQL database: for several service processes and machines.

Zone: gate
Claim: as ledger.py; a commit is on the server's disk before `charge` returns.
Why: transactions are SERIALIZABLE, and a writer locks the table before it looks at it, so that it sees what the last
    one wrote; a server that does not sync is refused; triggers refuse updates, deletions and truncation.
Check: tests/contracts/test_ledgers.py::test_processes_that_race_and_die_never_pass_the_limit
"""

import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from threading import Lock
from typing import Any, NamedTuple, NoReturn, final

import sqlalchemy
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from privcfs.errors import (
    LedgerCorrupt,
    LedgerError,
    LedgerLocked,
    LedgerMissing,
    LedgerReadOnly,
    LedgerRolledBack,
    SettingsError,
)
from privcfs.forks import Order, at_fork
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger.chain import ChainedLedger
from privcfs.gate.ledger.claims import Claims, Keys
from privcfs.gate.ledger.heads import HeadFile
from privcfs.gate.ledger.records import MIGRATIONS, TABLE, VERSION, Connection
from privcfs.public.head import Head

APPEND_ONLY = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$;
CREATE TRIGGER no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON entries FOR EACH STATEMENT EXECUTE FUNCTION refuse();
CREATE TABLE ledger_version (version INTEGER NOT NULL);
"""
# Whoever may charge may do so with the new tables too.
SAME_RIGHTS = """
DO $$ DECLARE given record; BEGIN FOR given IN SELECT DISTINCT privilege_type AS what,
 CASE WHEN grantee = 'PUBLIC' THEN 'PUBLIC' ELSE quote_ident(grantee) END AS whom
 FROM information_schema.table_privileges WHERE table_schema = current_schema() AND table_name = 'entries'
 AND privilege_type IN ('SELECT', 'INSERT') LOOP
 EXECUTE 'GRANT ' || given.what || ' ON accounts, kept_apart TO ' || given.whom; END LOOP; END $$;
"""
LATER = {
    3: SAME_RIGHTS
    + "".join(
        f"CREATE TRIGGER no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} FOR EACH STATEMENT "
        "EXECUTE FUNCTION refuse();\n"
        for table in ("accounts", "kept_apart")
    )
}
POOL = 24  # connections that are kept; as many more for a rush
MAKING = 0x50434653  # the lock of whoever makes or migrates the tables
BUSY = {"40001", "40P01", "55P03", "57014"}  # serialization, deadlock, lock and statement time-outs
UNREACHED = "ledger cannot be reached; ask again with the same request id: it pays once."
READ_ONLY = {"25006", "42501"}
ABANDONED: "list[SessionClaims]" = []
OPEN: "weakref.WeakSet[PostgresLedger]" = weakref.WeakSet()


def _leave_connections_to_the_parent() -> None:
    for ledger in OPEN:
        ledger.engine.dispose(close=False)
        ABANDONED.append(ledger.sessions)  # kept, because closing it would speak on the parent's connection
        ledger.sessions = SessionClaims(ledger.engine)


at_fork(Order.CONNECTIONS, in_child=_leave_connections_to_the_parent)


class _Postgres(NamedTuple):
    """A transaction of PostgreSQL."""

    raw: sqlalchemy.Connection

    def run(self, query: str, **values: Any) -> Any:
        return self.raw.execute(_statement(query), values)


@lru_cache(maxsize=64)
def _statement(query: str) -> sqlalchemy.TextClause:
    return sqlalchemy.text(query)


def _statements(script: str) -> list[str]:
    """The statements of a script, one by one."""
    return [one.strip() for one in script.split(";\n") if one.strip()]


@final
class SessionClaims(Claims):
    """Advisory locks of one session of the server, which drops them when the session ends."""

    def __init__(self, engine: sqlalchemy.Engine) -> None:
        super().__init__()
        self._engine, self._turn = engine.execution_options(isolation_level="AUTOCOMMIT"), Lock()
        self._session: sqlalchemy.Connection | None = None

    def _lock(self, keys: Keys) -> bool:
        found = self._ask("SELECT pg_try_advisory_lock(key) FROM unnest(:keys) AS key", keys)
        if all(found):
            return True
        self._unlock(frozenset(key for key, taken in zip(sorted(keys), found, strict=True) if taken))
        return False

    def _unlock(self, keys: Keys) -> None:
        """A session that was lost has no locks left to give back."""
        with suppress(LedgerError):
            self._ask("SELECT pg_advisory_unlock(key) FROM unnest(:keys) AS key", keys)

    def _ask(self, query: str, keys: Keys) -> list[bool]:
        """One list of answers, in the order of the keys; a session that was lost meanwhile is opened anew, once."""
        with self._turn:
            for _ in range(2):
                try:
                    self._session = self._session or self._engine.connect()
                    return [bool(row[0]) for row in self._session.execute(_statement(query), {"keys": sorted(keys)})]
                except SQLAlchemyError:
                    self._leave()
        raise LedgerError(UNREACHED)

    def _leave(self) -> None:
        """Ends the session, and with it all its locks."""
        session, self._session = self._session, None
        if session is not None:
            session.invalidate()
            session.close()

    def __del__(self) -> None:
        try:  # noqa: SIM105, when the interpreter ends, `suppress` may be gone already
            self._leave()
        except Exception:
            pass


@final
class PostgresLedger(ChainedLedger):
    """One database (or schema) for one graph; any number of processes and machines."""

    def __init__(
        self,
        url: str,
        limit: Limit | None = None,
        *,
        graph_id: str | None = None,
        known: Head | None = None,
        head_file: HeadFile | None = None,
        patience: float = 10,
    ) -> None:
        self._patience, milliseconds = patience, int(patience * 1000)
        options = f"-c synchronous_commit=on -c lock_timeout={milliseconds} -c statement_timeout={4 * milliseconds}"
        try:
            address = sqlalchemy.make_url(url).set(drivername="postgresql+psycopg")
            given = address.query.get("options", "")
            self.engine = sqlalchemy.create_engine(
                address.difference_update_query(["options"]),
                isolation_level="SERIALIZABLE",
                pool_pre_ping=True,
                pool_size=POOL,
                max_overflow=POOL,
                pool_timeout=patience,
                connect_args={
                    "connect_timeout": max(int(patience), 2),
                    "tcp_user_timeout": 4 * milliseconds,
                    "options": f"{given} {options}".strip(),
                },
            )
        except (ArgumentError, ValueError):
            raise SettingsError("ledger is not a PostgreSQL address; write postgresql://user@host/database.") from None
        self._glances = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        self.sessions = SessionClaims(self.engine)
        OPEN.add(self)
        weakref.finalize(self, self.engine.dispose)
        self._refuse_forgetful()
        with self._reading() as connection:
            there = self._version(connection) > 0
        if known is not None and not there:
            raise LedgerRolledBack("ledger is missing, but a head of it is known; restore the newest copy.")
        if limit is None and not there:
            raise LedgerMissing(
                "ledger does not exist in this database; restore it, or give a limit to make a new one."
            )
        self._open(limit, graph_id, known, head_file)

    def _claims(self) -> Claims:
        return self.sessions

    def _refuse_forgetful(self) -> None:
        """A server that does not sync could lose what was paid."""
        with self._reading() as connection:
            for setting in ("fsync", "full_page_writes", "synchronous_commit"):
                if connection.run(f"SHOW {setting}").fetchone()[0] != "on":  # type: ignore[index]
                    raise SettingsError(f"the ledger's server has {setting} off; payments would not be durable.")

    def _version(self, connection: Connection) -> int:
        (row,) = connection.run("SELECT to_regclass('entries'), to_regclass('ledger_version')")
        if row[0] is None and row[1] is None:
            return 0
        if row[1] is None:
            raise LedgerCorrupt("ledger is a database of another program; name another one.")
        ((version,),) = connection.run("SELECT max(version) FROM ledger_version")
        return int(version)

    def _schema(self, connection: Connection) -> None:
        for statement in _statements(TABLE + APPEND_ONLY):
            connection.run(statement)

    def _statements(self, version: int) -> list[str]:
        return _statements(MIGRATIONS[version] + LATER.get(version, ""))

    def _migrated(self, connection: Connection) -> None:
        connection.run("INSERT INTO ledger_version VALUES (:version)", version=VERSION)

    @contextmanager
    def _making(self) -> Iterator[Connection]:
        try:
            with self.engine.execution_options(isolation_level="READ COMMITTED").begin() as raw:
                connection = _Postgres(raw)
                connection.run("SELECT pg_advisory_xact_lock(:key)", key=MAKING)
                yield connection
        except SQLAlchemyError as error:
            self._explain(error, "try again")

    @contextmanager
    def _reading(self, when_locked: str = "try again") -> Iterator[Connection]:
        try:
            with self.engine.begin() as raw:
                yield _Postgres(raw)
        except SQLAlchemyError as error:
            self._explain(error, when_locked)

    @contextmanager
    def _glancing(self) -> Iterator[Connection]:
        """The connection without a transaction, which saves two messages to the server."""
        try:
            with self._glances.connect() as raw:
                yield _Postgres(raw)
        except SQLAlchemyError as error:
            self._explain(error, "try again")

    @contextmanager
    def _writing(self, when_locked: str = "nothing was charged, try again") -> Iterator[Connection]:
        with self._reading(when_locked) as connection:
            # A lock takes no snapshot: the first query after it sees what the last writer wrote.
            connection.run("LOCK TABLE entries IN EXCLUSIVE MODE")
            yield connection

    def _explain(self, error: SQLAlchemyError, when_locked: str) -> NoReturn:
        state = getattr(getattr(error, "orig", None), "sqlstate", None)
        if state in BUSY or isinstance(error, sqlalchemy.exc.TimeoutError):
            raise LedgerLocked(f"ledger is in use by another program; {when_locked}.") from None
        if state in READ_ONLY:
            raise LedgerReadOnly("ledger cannot be written; check the rights of its user.") from None
        if isinstance(error, DBAPIError) and (
            error.connection_invalidated or state is None or state[:2] in ("08", "53", "57", "58")
        ):
            raise LedgerError(UNREACHED) from None
        raise LedgerCorrupt(f"ledger is damaged ({type(error).__name__}); restore the newest copy.") from None
