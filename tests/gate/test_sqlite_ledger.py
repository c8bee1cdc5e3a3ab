"""What is particular to SQLite: files, locks, forks, syncing."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from privcfs.errors import (
    InputError,
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
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.public.head import Head
from tests.contracts.test_ledgers import request


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


@pytest.mark.parametrize(
    "statement", ["UPDATE entries SET cost = 0", "DELETE FROM entries WHERE kind = 'HELD'"], ids=["update", "delete"]
)
def test_rows_are_append_only(path: Path, statement: str) -> None:
    SqliteLedger(path, Limit.of("1")).charge(request("a"))
    with sqlite3.connect(path) as raw, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(statement)
    raw.close()


def test_a_newer_version_is_refused(path: Path) -> None:
    SqliteLedger(path, Limit.of("3"))
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version = 99")
    raw.close()
    with pytest.raises(LedgerTooNew, match="version 99, this program reads 3; install a newer privcfs"):
        SqliteLedger(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"not a database at all, but long enough to be read as one" * 9, "is damaged"), (b"", "is empty; restore it")],
    ids=["garbage", "empty"],
)
def test_a_damaged_file_is_refused(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(LedgerCorrupt, match=message):
        SqliteLedger(path)


def test_a_truncated_file_is_refused(path: Path) -> None:
    ledger = SqliteLedger(path, Limit.of("500"))
    for number in range(60):
        ledger.charge(request(str(number)))
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw.close()
    del ledger
    path.write_bytes(path.read_bytes()[:8192])
    with pytest.raises(LedgerError, match="restore"):
        SqliteLedger(path)


def test_another_programs_database_is_refused(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE music (title)")
    raw.close()
    with pytest.raises(LedgerCorrupt, match="is a database of another program"):
        SqliteLedger(path, Limit.of("3"))


def test_a_missing_ledger_or_folder_is_named(path: Path, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="does not exist; restore it, or give a limit"):
        SqliteLedger(path)
    with pytest.raises(LedgerError, match="cannot be opened: its folder does not exist; make it first"):
        SqliteLedger(tmp_path / "nowhere" / "budget.db", Limit.of("1"))
    with pytest.raises(SettingsError, match=r"write sqlite:///budget\.db"):
        open_ledger("budget.db")
    with pytest.raises(LedgerError, match="is a directory; name a file"):
        SqliteLedger(tmp_path, Limit.of("1"))


def test_a_file_that_was_replaced_is_opened_anew_and_an_older_one_refused(path: Path, tmp_path: Path) -> None:
    ledger = SqliteLedger(path, Limit.of("9"))
    ledger.charge(request("a"))
    ledger.close()
    copies = [tmp_path / "one.db", tmp_path / "two.db"]
    for copy in copies:
        copy.write_bytes(path.read_bytes())
    copies[0].replace(path)
    ledger.charge(request("b"))
    assert SqliteLedger(path).balance().answers == 2, "nothing is written to a file that is gone"
    ledger.close()
    copies[1].replace(path)
    for attempt in (lambda: ledger.charge(request("c")), ledger.head, ledger.verify):
        with pytest.raises(LedgerRolledBack, match="Restore the newest copy; until then nothing is released"):
            attempt()
    path.unlink()
    with pytest.raises(LedgerMissing, match="is gone; restore the newest copy"):
        ledger.charge(request("c"))
    assert not path.exists()


def test_an_account_that_is_long_is_not_slow(path: Path) -> None:
    ledger, seen = SqliteLedger(path, Limit.of("9")), list[str]()
    ledger.charge(request("a"))
    raw = ledger._connected()
    raw.set_trace_callback(seen.append)
    ledger.balance("ann")
    ledger.charge(request("a"))
    ledger.released("ann", "a")
    ledger.sums("ann")
    raw.set_trace_callback(None)
    queries = [one for one in seen if one.lstrip().startswith("SELECT") and "count(*)" not in one]
    assert len(queries) >= 6
    for query in seen:
        plan = [row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {query}")] if "SELECT" in query else []
        for step in plan:
            looked_up = "r" in step.split()[1:2] or ("request_id=" in step)
            indexed = "one_answer" in step or "kept_apart USING INDEX" in step
            assert not looked_up or indexed, (query, plan)
            assert "SCAN accounts" not in step or "ORDER BY position DESC" in query, (query, plan)


def test_a_locked_ledger_says_so_and_charges_nothing(path: Path) -> None:
    ledger = SqliteLedger(path, Limit.of("3"), patience=0.1)
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerLocked, match="in use by another program; nothing was charged, try again"):
        ledger.charge(request("a"))
    raw.execute("ROLLBACK")
    raw.close()
    assert ledger.balance().spent == 0


def test_a_read_only_ledger_says_so() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "budget.db"
        SqliteLedger(path, Limit.of("3"))
        path.chmod(0o444)
        Path(folder).chmod(0o555)
        assert raised_without_rights(lambda: SqliteLedger(path).charge(request("a"))) == "LedgerReadOnly"
        Path(folder).chmod(0o755)


def raised_without_rights(attempt: Callable[[], object]) -> str:
    """Root may write anything, so a child process gives up its rights first."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        name = "nothing"
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            attempt()
        except BaseException as error:
            name = type(error).__name__
        finally:
            os.write(writer, name.encode())
            os._exit(0)
    os.waitpid(child, 0)
    return os.read(reader, 100).decode()


def test_forks_beside_busy_threads_neither_hang_nor_miscount(tmp_path: Path) -> None:
    charges, errors = 60, []

    def busy(number: int) -> None:
        try:
            for step in range(charges):
                ledger = SqliteLedger(tmp_path / f"{number}.db", Limit.of("1000"), patience=60)
                ledger.charge(request(str(step)))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=busy, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    children = []
    while any(thread.is_alive() for thread in threads):
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if SqliteLedger(tmp_path / "child.db", Limit.of("1000"), patience=60).graph_id else 1)
            finally:
                os._exit(2)
        children.append(os.waitpid(child, 0)[1])
        time.sleep(0.02)
    for thread in threads:
        thread.join()
    assert errors == []
    assert set(children) == {0}
    assert [SqliteLedger(tmp_path / f"{number}.db").balance().spent for number in range(3)] == [charges] * 3


@pytest.mark.parametrize("text", ["database or disk is full", "disk I/O error"])
def test_a_full_disk_is_no_reason_to_restore_an_old_copy(path: Path, text: str) -> None:
    ledger = SqliteLedger(path, Limit.of("3"))
    with pytest.raises(LedgerError, match=r"cannot use the disk .* restore no old copy"), ledger._writing():
        raise sqlite3.OperationalError(text)


def test_another_programs_file_is_not_touched(path: Path) -> None:
    with sqlite3.connect(path) as raw:
        raw.execute("CREATE TABLE music (title)")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(LedgerCorrupt, match="another program"):
        SqliteLedger(path, Limit.of("3"))
    assert path.read_bytes() == before


def test_a_commit_is_synced_before_it_returns(path: Path) -> None:
    ledger = SqliteLedger(path, Limit.of("9"))
    with ledger._writing() as connection:
        assert list(connection.run("PRAGMA synchronous")) == [(2,)]
        assert list(connection.run("PRAGMA journal_mode")) == [("wal",)]


DAEMON = """
import os, subprocess, sys
from fractions import Fraction
from privcfs.errors import BudgetExhausted
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.ledger.sqlite import SqliteLedger

path = sys.argv[1]
ledger = SqliteLedger(path, Limit.of("10"))
if os.fork():
    sys.exit(0)
for number in range(30):
    if number == 5:
        look = "import sys; from privcfs.gate.ledger.sqlite import SqliteLedger as L; "
        look += "print(L(sys.argv[1]).balance().spent)"
        other = subprocess.run([sys.executable, "-c", look, path], capture_output=True, text=True).stdout
        assert other.strip() == "5", other
    try:
        ledger.charge(Request("ann", str(number), 0, Fraction(1), "", "", ""))
    except BudgetExhausted:
        pass
open(path + ".done", "w").write("done")
"""


def test_a_daemon_keeps_its_locks_when_its_parent_ends(path: Path) -> None:
    subprocess.run([sys.executable, "-c", DAEMON, str(path)], check=True, timeout=60)
    deadline = time.monotonic() + 60
    while not Path(f"{path}.done").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert SqliteLedger(path).balance().spent == 10


def test_a_lock_after_payment_does_not_claim_that_nothing_was_charged(path: Path) -> None:
    ledger = SqliteLedger(path, Limit.of("3"), patience=0.1)
    ledger.charge(request("a"))
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerLocked, match="it is paid: ask again with request id a"):
        ledger.finish(request("a"), "answer")
    raw.execute("ROLLBACK")
    raw.close()


def test_a_ledger_in_memory_is_refused() -> None:
    with pytest.raises(SettingsError, match="ledger must be a file on disk"):
        open_ledger("sqlite:///:memory:", Limit.of("1"))


def test_a_rolled_back_ledger_is_refused_against_the_exported_head(path: Path, tmp_path: Path) -> None:
    ledger = SqliteLedger(path, Limit.of("3"))
    ledger.charge(request("a"))
    backup = tmp_path / "backup.db"
    with sqlite3.connect(path) as source, sqlite3.connect(backup) as copy:
        source.backup(copy)
    source.close()
    copy.close()
    ledger.charge(request("b"))
    head = Head.from_json(ledger.head().to_json())
    SqliteLedger(path, known=head)
    with pytest.raises(LedgerRolledBack, match="lacks row 3 of the known head"):
        SqliteLedger(backup, known=head)
    other = SqliteLedger(backup)
    other.charge(request("c"))
    with pytest.raises(LedgerRolledBack, match="lacks row 3"):
        SqliteLedger(backup, known=head)
    with pytest.raises(LedgerRolledBack, match="is missing, but a head of it is known"):
        SqliteLedger(tmp_path / "new.db", Limit.of("3"), known=head)
    SqliteLedger(tmp_path / "new.db", Limit.of("3"))
    with pytest.raises(LedgerRolledBack, match="belongs to another graph"):
        SqliteLedger(tmp_path / "new.db", known=head)
    with pytest.raises(InputError, match="head is not an exported ledger head"):
        Head.from_json("{}")
