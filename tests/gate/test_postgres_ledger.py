"""What is particular to PostgreSQL: a server that is away, slow, forgetful or another program's."""

import os
import signal
import sqlite3
from pathlib import Path

import psycopg
import pytest

from privcfs.errors import (
    LedgerCorrupt,
    LedgerError,
    LedgerLocked,
    LedgerMissing,
    LedgerRolledBack,
    LedgerTooNew,
    SettingsError,
)
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger import open_ledger
from privcfs.gate.ledger.postgres import PostgresLedger
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.public.head import Head
from tests.contracts.test_ledgers import request

KILL = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()"""
LIMITS = "SELECT body FROM entries WHERE kind IN ('OPENED', 'LIMITED') ORDER BY position DESC LIMIT 1"

LATER_TABLES = "DROP TABLE accounts; DROP TABLE kept_apart;"  # version 2 did not have them


def run(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


@pytest.mark.parametrize("statement", ["UPDATE entries SET cost = 0", "DELETE FROM entries", "TRUNCATE entries"])
def test_rows_are_append_only(postgres_url: str, statement: str) -> None:
    PostgresLedger(postgres_url, Limit.of("1")).charge(request("a"))
    with pytest.raises(psycopg.errors.RaiseException, match="append-only"):
        run(postgres_url, statement)


def test_a_server_that_does_not_sync_is_refused(postgres_url: str) -> None:
    change = "ALTER SYSTEM SET full_page_writes = {}"
    try:
        run(postgres_url, change.format("off"), "SELECT pg_reload_conf()", "SELECT pg_sleep(0.3)")
        with pytest.raises(SettingsError, match="has full_page_writes off; payments would not be durable"):
            PostgresLedger(postgres_url, Limit.of("1"))
    finally:
        run(postgres_url, change.format("on"), "SELECT pg_reload_conf()", "SELECT pg_sleep(0.3)")
    assert PostgresLedger(postgres_url, Limit.of("1")).balance().spent == 0


def test_a_locked_ledger_says_so_and_charges_nothing(postgres_url: str) -> None:
    ledger = PostgresLedger(postgres_url, Limit.of("3"), patience=0.2)
    with psycopg.connect(postgres_url) as other:
        other.execute("LOCK TABLE entries IN EXCLUSIVE MODE")
        with pytest.raises(LedgerLocked, match="in use by another program; nothing was charged, try again"):
            ledger.charge(request("a"))
        assert ledger.balance().spent == 0, "readers are not kept waiting"
    assert ledger.charge(request("a")) is None


def test_a_lost_connection_is_made_again_and_nothing_is_paid_twice(postgres_url: str) -> None:
    ledger = PostgresLedger(postgres_url, Limit.of("3"))
    ledger.charge(request("a"))
    run(postgres_url, KILL)
    assert ledger.charge(request("a")) is None

    def interrupted() -> None:
        with ledger._writing() as connection:
            run(postgres_url, KILL)
            connection.run("SELECT 1")

    with pytest.raises(LedgerError, match="ask again with the same request id: it pays once"):
        interrupted()
    assert ledger.finish(request("a"), "answer") == "answer"
    assert ledger.balance().spent == 1
    ledger.verify()


def test_a_server_that_is_away_is_named_without_its_password() -> None:
    with pytest.raises(LedgerError, match="ledger cannot be reached") as caught:
        open_ledger("postgresql://ann:secret@127.0.0.1:1/nothing", Limit.of("1"), patience=2)
    assert "secret" not in str(caught.value)
    with pytest.raises(SettingsError, match=r"write postgresql://user@host/database"):
        open_ledger("postgresql://host:port/name", Limit.of("1"))


def test_another_programs_database_is_refused(postgres_url: str) -> None:
    run(postgres_url, "CREATE TABLE entries (title TEXT)")
    with pytest.raises(LedgerCorrupt, match="is a database of another program"):
        PostgresLedger(postgres_url, Limit.of("1"))


def test_an_empty_database_is_made_only_with_a_limit_and_without_a_known_head(postgres_url: str) -> None:
    with pytest.raises(LedgerMissing, match="does not exist in this database; restore it, or give a limit"):
        PostgresLedger(postgres_url)
    with pytest.raises(LedgerRolledBack, match="is missing, but a head of it is known"):
        PostgresLedger(postgres_url, Limit.of("1"), known=Head("graph", 2, "digest"))


def test_a_newer_version_is_refused(postgres_url: str) -> None:
    PostgresLedger(postgres_url, Limit.of("3"))
    run(postgres_url, "INSERT INTO ledger_version VALUES (99)")
    with pytest.raises(LedgerTooNew, match="version 99, this program reads 3; install a newer privcfs"):
        PostgresLedger(postgres_url)


def test_an_older_ledger_is_brought_up_to_date(postgres_url: str, tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    SqliteLedger(path, Limit.of("3")).charge(request("a"))
    with sqlite3.connect(path) as raw:
        raw.executescript(f"DROP INDEX limits; {LATER_TABLES} PRAGMA user_version = 1;")
    raw.close()
    assert SqliteLedger(path).balance().spent == 1
    with sqlite3.connect(path) as raw:
        assert raw.execute("PRAGMA user_version").fetchone() == (3,)
        plan = str(raw.execute(f"EXPLAIN QUERY PLAN {LIMITS}").fetchall())
    raw.close()
    assert "limits" in plan
    PostgresLedger(postgres_url, Limit.of("3")).charge(request("a"))
    run(postgres_url, "DROP INDEX limits", *LATER_TABLES.split("; ")[:2], "DELETE FROM ledger_version")
    run(postgres_url, "INSERT INTO ledger_version VALUES (1)")
    assert PostgresLedger(postgres_url).balance().spent == 1
    run(postgres_url, "DROP INDEX limits")


def test_a_process_killed_between_charge_and_commit_leaves_nothing(postgres_url: str) -> None:
    ledger = PostgresLedger(postgres_url, Limit.of("3"))
    child = os.fork()
    if child == 0:
        with ledger._writing() as connection:
            connection.run("INSERT INTO entries VALUES (2, 'HELD', 'ann', 'a', 1, 1, 1, '', '')")
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert ledger.charge(request("a")) is None
    ledger.verify()
    assert ledger.balance().spent == 1


def test_a_user_with_few_rights_can_charge_and_change_nothing(postgres_url: str) -> None:
    open_ledger(postgres_url, Limit.of("3"))
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE ROLE clerk LOGIN")
        connection.execute("GRANT SELECT, INSERT, UPDATE ON entries TO clerk")
        connection.execute("GRANT SELECT ON ledger_version TO clerk")
        connection.execute("DROP TABLE accounts, kept_apart")
        connection.execute("DELETE FROM ledger_version")
        connection.execute("INSERT INTO ledger_version VALUES (2)")
    open_ledger(postgres_url, Limit.of("3"))  # the new tables have the rights of the old
    as_clerk = postgres_url.replace("//postgres:", "//clerk:")
    assert as_clerk != postgres_url
    ledger = open_ledger(as_clerk)
    ledger.charge(request("a"))
    assert ledger.finish(request("a"), "answer") == "answer"
    with psycopg.connect(as_clerk) as connection, pytest.raises(psycopg.Error, match="append-only"):
        connection.execute("UPDATE entries SET cost = 0")
