"""A ledger that was set back is refused by everyone who has seen more of it, or whose head file has."""

import multiprocessing
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import psycopg
import pytest

from privcfs.errors import LedgerError, LedgerRolledBack, SettingsError
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger import open_ledger, records
from privcfs.gate.ledger.heads import HeadFile
from privcfs.gate.ledger.ledger import Ledger, Request
from privcfs.public.head import Head

LIMIT = Limit.of("50")


def request(name: str) -> Request:
    return Request("ann", name, 7, Fraction(1), "digest", "mechanism", "adjacency")


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{request.getfixturevalue('tmp_path') / 'budget.db'}"
    return str(request.getfixturevalue("postgres_url"))


def backed_up(url: str) -> Callable[[], None]:
    """Keeps a copy of the ledger; what is returned puts it back, as an owner would who restores a backup."""
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite:///"))
        copy = path.with_suffix(".copy")
        with sqlite3.connect(path) as live, sqlite3.connect(copy) as kept:
            live.backup(kept)

        def restore() -> None:
            for ending in ("-wal", "-shm"):
                path.with_name(path.name + ending).unlink(missing_ok=True)
            fresh = path.with_suffix(".fresh")
            shutil.copy(copy, fresh)
            fresh.replace(path)

        return restore
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE backup AS SELECT * FROM entries")

    def put_back() -> None:
        with psycopg.connect(url) as connection:
            connection.execute("DROP TRIGGER no_change ON entries")
            connection.execute("DELETE FROM entries")
            connection.execute("INSERT INTO entries SELECT * FROM backup")

    return put_back


def spend(ledger: Ledger, *names: str) -> None:
    for name in names:
        ledger.charge(request(name))


SEEN: dict[str, Callable[[Ledger], object]] = {
    "head": lambda ledger: ledger.head(),
    "balance": lambda ledger: ledger.balance(),
    "rows": lambda ledger: list(ledger.rows()),
    "released": lambda ledger: ledger.released("ann", "x"),
    "limit": lambda ledger: ledger.limit,
    "verify": lambda ledger: ledger.verify(),
}


@pytest.mark.parametrize("look", SEEN.values(), ids=SEEN)
def test_whatever_was_read_must_still_be_there_before_anything_is_charged(
    url: str, look: Callable[[Ledger], object]
) -> None:
    idle, busy = open_ledger(url, LIMIT), open_ledger(url)
    restore = backed_up(url)
    spend(busy, "a", "b")
    look(idle)
    restore()
    spend(open_ledger(url), "another a", "another b", "another c")
    with pytest.raises(LedgerRolledBack, match="lacks row 3"):
        spend(idle, "c")
    for ask in SEEN.values():
        with pytest.raises(LedgerRolledBack, match="lacks row 3"):
            ask(idle)
    with pytest.raises(LedgerRolledBack, match="lacks row 3"):
        idle.change_limit(Limit.of("60"))


def test_what_others_saw_is_in_the_head_file_before_they_answer(url: str, tmp_path: Path) -> None:
    """An idle worker has seen nothing of what another paid; the head file has, from the moment of the charge."""
    file = HeadFile(tmp_path / "head.json")
    idle, busy = open_ledger(url, LIMIT, head_file=file), open_ledger(url, head_file=file)
    restore = backed_up(url)
    spend(busy, "a", "b")
    assert file.read() == busy.head()
    restore()
    with pytest.raises(LedgerRolledBack, match="lacks row 3"):
        spend(idle, "c")
    with pytest.raises(LedgerRolledBack, match="lacks row 3"):
        open_ledger(url, head_file=file)
    kept = file.read()
    assert kept is not None
    assert kept.position == 3


def test_the_head_file_never_moves_to_another_chain(url: str, tmp_path: Path) -> None:
    file = HeadFile(tmp_path / "head.json")
    restore = backed_up(url) if open_ledger(url, LIMIT) else None
    spend(open_ledger(url, head_file=file), "a", "b")
    kept = file.read()
    assert restore is not None
    restore()
    fork = open_ledger(url)
    for number in range(3):  # below, at and beyond the position that is kept
        spend(fork, f"another {number}")
        with pytest.raises(LedgerRolledBack, match="lacks row"):
            open_ledger(url, head_file=file)
        if number:
            with pytest.raises(LedgerRolledBack, match="lacks row"):
                fork.keep_head(file)
        assert file.read() == kept


def by_position(head: Head, digest: str | None) -> bool:  # noqa: ARG001
    """The broken twin: any row at that position will do."""
    return digest is not None


def test_a_ledger_that_compares_positions_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "same_row", by_position)
    for number, check in enumerate((test_the_head_file_never_moves_to_another_chain,)):
        folder = tmp_path / str(number)
        folder.mkdir()
        with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
            check(f"sqlite:///{folder / 'budget.db'}", folder)
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_whatever_was_read_must_still_be_there_before_anything_is_charged(
            f"sqlite:///{tmp_path / 'budget.db'}", SEEN["head"]
        )


def test_a_head_file_that_vanishes_while_a_process_works_is_noticed(url: str, tmp_path: Path) -> None:
    file = HeadFile(tmp_path / "head.json")
    ledger = open_ledger(url, LIMIT, head_file=file)
    spend(ledger, "a")
    file.path.unlink()
    with pytest.raises(LedgerError, match=r"head file .*head\.json is gone; restore it"):
        spend(ledger, "b")
    file.path.write_text("nonsense")
    with pytest.raises(LedgerError, match=r"head file .* cannot be read: head is not an exported ledger head"):
        spend(ledger, "b")


def test_a_head_file_behind_a_symbolic_link_stays_behind_it(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    for name in ("there", "dangling"):
        real, link = tmp_path / "far" / name, tmp_path / name
        link.symlink_to(real)
        if name == "there":
            real.write_text(Head("g", 1, "x").to_json())
        newest = Head("g", 2, "y")
        assert HeadFile(link).advance(newest, lambda head: head.digest == "x")
        assert link.is_symlink()
        assert HeadFile(real).read() == newest


def test_a_head_is_whole_private_and_never_older(tmp_path: Path) -> None:
    file = HeadFile(tmp_path / "head.json")
    newer, older = Head("g", 1000, "d" * 64), Head("g", 999, "c" * 64)
    everything = lambda _: True  # noqa: E731
    assert file.advance(newer, everything)
    assert file.advance(older, everything)
    assert file.read() == newer
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.path.stat().st_size == 512
    assert not file.advance(Head("another graph", 2000, "e" * 64), everything)
    assert [one.name for one in tmp_path.iterdir()] == ["head.json"]
    with pytest.raises(SettingsError, match=r"head file .* cannot be written"):
        HeadFile(tmp_path / "nowhere" / "head.json").advance(newer, everything)


def test_a_head_file_that_cannot_be_written_refuses_before_anything_is_charged(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = HeadFile(tmp_path / "head.json")
    ledger = open_ledger(url, LIMIT, head_file=file)
    spend(ledger, "a")
    opened = os.open

    def refused(path: object, how: int, *more: int) -> int:
        if str(path).endswith("head.json") and how & os.O_RDWR:
            raise PermissionError(1, "Operation not permitted")
        return opened(path, how, *more)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", refused)
        with pytest.raises(
            LedgerError, match=r"head file head\.json cannot be written: Operation not permitted\."
        ) as error:
            spend(ledger, "b")
        assert str(tmp_path) not in str(error.value), "the words may reach an analyst"
    assert ledger.balance().spent == 1
    spend(ledger, "b")


def test_a_fork_does_not_keep_the_locks_of_files(url: str, tmp_path: Path) -> None:
    file = HeadFile(tmp_path / "head.json")
    ledger = open_ledger(url, LIMIT, head_file=file)
    over = threading.Event()

    def busy() -> None:
        while not over.is_set():
            file.read()

    reader = threading.Thread(target=busy)
    reader.start()
    children = [multiprocessing.get_context("fork").Process(target=time.sleep, args=(3,)) for _ in range(40)]
    try:
        for child in children:
            child.start()
        before = time.monotonic()
        spend(ledger, *(f"{number}" for number in range(5)))
        assert time.monotonic() - before < 2.5, "a child holds the lock of a head file"
    finally:
        over.set()
        reader.join()
        for child in children:
            child.kill()
            child.join()
