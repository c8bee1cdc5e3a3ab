"""Every ledger: durable, atomic, idempotent, append-only, and never over the limit whatever dies."""

import json
import multiprocessing
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

from privcfs.errors import (
    BudgetExhausted,
    InputError,
    LedgerCorrupt,
    LedgerError,
    LedgerLocked,
    LedgerRolledBack,
    LedgerTooNew,
    RequestConflict,
    SettingsError,
)
from privcfs.gate.accounting import Balance, Limit
from privcfs.gate.ledger import open_ledger
from privcfs.gate.ledger.ledger import Head, Request
from privcfs.gate.ledger.sqlite import SqliteLedger

ONE = Fraction(1)


def request(request_id: str, analyst: str = "ann", target: int = 7, epsilon: Fraction = ONE) -> Request:
    return Request(analyst, request_id, target, epsilon, "digest", "mechanism", "adjacency")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "budget.db"


def test_a_charge_is_paid_once_and_answered_once(path: Path) -> None:
    ledger = SqliteLedger(path, Limit.of("3"))
    assert ledger.charge(request("a")) is None
    assert ledger.balance().held == 1
    assert ledger.charge(request("a")) is None, "a held request may be resumed"
    assert ledger.finish(request("a"), "first") == "first"
    assert ledger.finish(request("a"), "second") == "first", "the first answer counts"
    assert ledger.charge(request("a")) == "first"
    balance = ledger.balance()
    assert balance == Balance(Fraction(3), Fraction(1), Fraction(0), 1)
    assert balance.left == 2


def test_an_id_belongs_to_its_analyst(path: Path) -> None:
    ledger = SqliteLedger(path, Limit.of("3"))
    ledger.charge(request("a", "ann"))
    ledger.finish(request("a", "ann"), "for ann")
    assert ledger.charge(request("a", "bob")) is None
    assert ledger.released("bob", "a") is None
    assert ledger.balance("ann").spent == ledger.balance("bob").spent == 1


@pytest.mark.parametrize("other", [request("a", target=8), request("a", epsilon=ONE / 2)], ids=["target", "epsilon"])
def test_an_id_with_other_parameters_is_a_conflict(path: Path, other: Request) -> None:
    ledger = SqliteLedger(path, Limit.of("3"))
    ledger.charge(request("a"))
    with pytest.raises(RequestConflict, match="'a' was used before with other parameters; choose a new id"):
        ledger.charge(other)
    assert ledger.balance().spent == 1


def test_a_refusal_changes_nothing_and_blocks_nobody(path: Path) -> None:
    ledger = SqliteLedger(path, Limit.of("2", "1"))
    ledger.charge(request("a"))
    before = ledger.head()
    with pytest.raises(BudgetExhausted, match="analyst's limit 1"):
        ledger.charge(request("b"))
    with pytest.raises(BudgetExhausted, match="total limit 2"):
        ledger.charge(request("c", "bob", epsilon=Fraction(3)))
    assert ledger.head() == before
    assert ledger.charge(request("d", "bob")) is None


def test_it_survives_closing_and_remembers_its_limit_and_graph(path: Path) -> None:
    first = SqliteLedger(path, Limit.of("3", "2"))
    first.charge(request("a"))
    again = SqliteLedger(path)
    assert again.graph_id == first.graph_id
    assert again.limit == Limit.of("3", "2")
    assert again.balance().spent == 1


def test_a_limit_changes_only_on_purpose(path: Path) -> None:
    ledger = SqliteLedger(path, Limit.of("1"))
    ledger.charge(request("a"))
    with pytest.raises(SettingsError, match=r"limit differs from the ledger's \(epsilon 1 in all\)"):
        SqliteLedger(path, Limit.of("5"))
    ledger.change_limit(Limit.of("2"))
    assert SqliteLedger(path, Limit.of("2")).charge(request("b")) is None


def test_another_graphs_ledger_is_refused(path: Path) -> None:
    SqliteLedger(path, Limit.of("1"), graph_id="mine")
    with pytest.raises(SettingsError, match="one private graph has one budget"):
        SqliteLedger(path, Limit.of("1"), graph_id="yours")


@pytest.mark.parametrize(
    "statement", ["UPDATE entries SET cost = 0", "DELETE FROM entries WHERE kind = 'HELD'"], ids=["update", "delete"]
)
def test_rows_are_append_only(path: Path, statement: str) -> None:
    SqliteLedger(path, Limit.of("1")).charge(request("a"))
    with sqlite3.connect(path) as raw, pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(statement)
    raw.close()


REFUNDS = {
    "a refunded cost": "UPDATE entries SET cost = 0 WHERE kind = 'HELD'",
    "a lower running sum": "UPDATE entries SET total = 0",
    "a dropped charge": "DELETE FROM entries WHERE position = 2",
    "another answer": "UPDATE entries SET body = 'other' WHERE kind = 'RELEASED'",
    "a raised limit": "UPDATE entries SET body = replace(body, '\"3\"', '\"9\"') WHERE kind = 'OPENED'",
    "another analyst": "UPDATE entries SET analyst = 'bob' WHERE kind = 'HELD'",
}


@pytest.mark.parametrize("statement", REFUNDS.values(), ids=REFUNDS.keys())
def test_the_chain_rejects_every_forged_row(path: Path, statement: str) -> None:
    ledger = SqliteLedger(path, Limit.of("3"))
    ledger.charge(request("a"))
    ledger.finish(request("a"), "answer")
    with sqlite3.connect(path) as raw:
        raw.executescript(f"DROP TRIGGER no_update; DROP TRIGGER no_delete; {statement};")
    raw.close()
    with pytest.raises(LedgerCorrupt, match="was altered; restore the newest copy"):
        SqliteLedger(path)


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


def test_a_newer_version_is_refused(path: Path) -> None:
    SqliteLedger(path, Limit.of("3"))
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version = 99")
    raw.close()
    with pytest.raises(LedgerTooNew, match="version 99, this program reads 1; install a newer privcfs"):
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
    with pytest.raises(LedgerError, match="cannot be opened; does its folder exist"):
        SqliteLedger(tmp_path / "nowhere" / "budget.db", Limit.of("1"))
    with pytest.raises(SettingsError, match=r"write sqlite:///budget\.db"):
        open_ledger("budget.db")


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


def hammer(path: Path, seed: int, requests: int) -> None:
    """Asks for releases until refused, now and then repeating an id or leaving a request held."""
    rng = random.Random(seed)
    ledger = SqliteLedger(path, patience=60)
    for _ in range(requests):
        number = rng.randrange(400)
        asked = request(str(number), f"analyst {number % 3}", target=number)
        try:
            stored = ledger.charge(asked)
        except BudgetExhausted:
            continue
        if stored is None and rng.random() < 0.9:
            ledger.finish(asked, json.dumps([number, seed, rng.random()]))


def test_processes_that_race_and_die_never_pass_the_limit(path: Path) -> None:
    ledger = SqliteLedger(path, Limit.of("150"))
    context = multiprocessing.get_context("fork")
    answers: dict[tuple[str, str], str] = {}
    rng = random.Random(0)
    for round_ in range(4):
        workers = [context.Process(target=hammer, args=(path, 10 * round_ + k, 120)) for k in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers[:2]:
            time.sleep(rng.random() / 4)
            os.kill(worker.pid or 0, signal.SIGKILL)
        for worker in workers:
            worker.join()
        ledger.verify()
        assert ledger.balance().spent <= 150
        for number in range(400):
            key = f"analyst {number % 3}", str(number)
            stored = ledger.released(*key)
            assert key not in answers or stored == answers[key], "no id ever changes its answer"
            if stored is not None:
                answers[key] = stored
    assert ledger.balance().spent == 150
    paid = ledger.balance()
    assert len(answers) <= paid.releases == 150


def test_a_connection_is_not_shared_across_a_fork(path: Path) -> None:
    ledger = SqliteLedger(path, Limit.of("9"))
    ledger.charge(request("parent"))
    child = multiprocessing.get_context("fork").Process(target=lambda: ledger.charge(request("child")))
    child.start()
    child.join()
    assert child.exitcode == 0
    ledger.charge(request("parent again"))
    ledger.verify()
    assert ledger.balance().releases == 3


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
        assert connection.execute("PRAGMA synchronous").fetchone()[0] == 2
        assert connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"


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
