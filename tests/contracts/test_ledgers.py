"""Every ledger: durable, atomic, idempotent, append-only, and never over the limit whatever dies."""

import json
import multiprocessing
import random
import signal
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path

import psycopg
import pytest

from privcfs.errors import (
    BudgetExhausted,
    LedgerCorrupt,
    LedgerRolledBack,
    RequestConflict,
    SettingsError,
)
from privcfs.gate.accounting import Balance, Limit
from privcfs.gate.contracts import contract_from
from privcfs.gate.ledger import open_ledger
from privcfs.gate.ledger.chain import ChainedLedger
from privcfs.gate.ledger.ledger import Ledger, Request
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.public.head import Head

ONE = Fraction(1)


def request(request_id: str, analyst: str = "ann", target: int = 7, epsilon: Fraction = ONE) -> Request:
    return Request(analyst, request_id, target, epsilon, "digest", "mechanism", "adjacency")


Make = Callable[[Limit], Ledger]


def forge(url: str, statement: str) -> None:
    """What an intruder with all rights could do."""
    if url.startswith("sqlite"):
        with sqlite3.connect(url.removeprefix("sqlite:///")) as raw:
            found = raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall()
            raw.executescript("".join(f"DROP TRIGGER {name};" for (name,) in found) + f"{statement};")
        raw.close()
    else:
        with psycopg.connect(url) as connection:
            for table in ("entries", "accounts", "kept_apart"):
                connection.execute(f"DROP TRIGGER no_change ON {table}".encode())
            connection.execute(statement.encode())


def test_a_charge_is_paid_once_and_answered_once(make: Make) -> None:
    ledger = make(Limit.of("3"))
    assert ledger.charge(request("a")) is None
    assert ledger.balance().held == 1
    assert ledger.charge(request("a")) is None, "a held request may be resumed"
    assert ledger.finish(request("a"), "first") == "first"
    assert ledger.finish(request("a"), "second") == "first", "the first answer counts"
    assert ledger.charge(request("a")) == "first"
    balance = ledger.balance()
    assert balance == Balance(Fraction(3), Fraction(1), Fraction(0), 1)
    assert balance.left == 2


def test_what_an_analyst_paid_for_is_found_again_newest_first(make: Make) -> None:
    ledger = make(Limit.of("10"))
    for number in range(5):
        ledger.charge(request(f"{number}", target=number))
        ledger.charge(request(f"{number}", "bob"))
        ledger.finish(request(f"{number}", target=number), "answer")
    found = ledger.charges("ann", 9)
    assert [(one.request_id, one.terms["target"], one.cost) for one in found] == [
        (f"{number}", number, ONE) for number in (4, 3, 2, 1, 0)
    ]
    assert {one.day for one in found} == {datetime.now(UTC).date().isoformat()}
    pages = ledger.charges("ann", 2)
    while page := ledger.charges("ann", 2, pages[-1].position):
        pages += page
    assert pages == found
    assert ledger.charges("nobody", 9) == []
    assert ledger.price_of("ann", "4") == ONE
    assert ledger.price_of("ann", "nothing") is None


def test_an_id_belongs_to_its_analyst(make: Make) -> None:
    ledger = make(Limit.of("3"))
    ledger.charge(request("a", "ann"))
    ledger.finish(request("a", "ann"), "for ann")
    assert ledger.charge(request("a", "bob")) is None
    assert ledger.released("bob", "a") is None
    assert ledger.balance("ann").spent == ledger.balance("bob").spent == 1


@pytest.mark.parametrize("other", [request("a", target=8), request("a", epsilon=ONE / 2)], ids=["target", "epsilon"])
def test_an_id_with_other_parameters_is_a_conflict(make: Make, other: Request) -> None:
    ledger = make(Limit.of("3"))
    ledger.charge(request("a"))
    with pytest.raises(RequestConflict, match="'a' was used before with other parameters; choose a new id"):
        ledger.charge(other)
    assert ledger.balance().spent == 1


def test_a_refusal_changes_nothing_and_blocks_nobody(make: Make) -> None:
    ledger = make(Limit.of("2", "1"))
    ledger.charge(request("a"))
    before = ledger.head()
    with pytest.raises(BudgetExhausted, match="analyst's limit 1"):
        ledger.charge(request("b"))
    with pytest.raises(BudgetExhausted, match="total limit 2"):
        ledger.charge(request("c", "bob", epsilon=Fraction(3)))
    assert ledger.head() == before
    assert ledger.charge(request("d", "bob")) is None


def test_it_survives_closing_and_remembers_its_limit_and_graph(url: str) -> None:
    first = open_ledger(url, Limit.of("3", "2"))
    first.charge(request("a"))
    again = open_ledger(url)
    assert again.graph_id == first.graph_id
    assert again.limit == Limit.of("3", "2")
    assert again.balance().spent == 1


def test_a_limit_changes_only_on_purpose(url: str) -> None:
    ledger = open_ledger(url, Limit.of("1"))
    ledger.charge(request("a"))
    with pytest.raises(SettingsError, match=r"limit differs from the ledger's \(epsilon 1 in all\)"):
        open_ledger(url, Limit.of("5"))
    ledger.change_limit(Limit.of("2"))
    assert open_ledger(url, Limit.of("2")).charge(request("b")) is None


def test_another_graphs_ledger_is_refused(url: str) -> None:
    open_ledger(url, Limit.of("1"), graph_id="mine")
    with pytest.raises(SettingsError, match="one private graph has one budget"):
        open_ledger(url, Limit.of("1"), graph_id="yours")


REFUNDS = {
    "a refunded cost": "UPDATE entries SET cost = 0 WHERE kind = 'HELD'",
    "a lower running sum": "UPDATE entries SET total = 0",
    "a dropped charge": "DELETE FROM entries WHERE position = 2",
    "another answer": "UPDATE entries SET body = 'other' WHERE kind = 'RELEASED'",
    "a raised limit": "UPDATE entries SET body = replace(body, '\"3\"', '\"9\"') WHERE kind = 'OPENED'",
    "another analyst": "UPDATE entries SET analyst = 'bob' WHERE kind = 'HELD'",
}


def pays_together(ledger: Ledger) -> bool:
    """Whether a batch that is refused in part changes nothing."""
    ledger.charge(request("a"))
    ledger.finish(request("a"), "first")
    before = ledger.head()
    with pytest.raises(BudgetExhausted, match="analyst's limit 2"):
        ledger.charge_all([request("a"), request("b"), request("c")])
    return ledger.head() == before


def test_several_charges_are_paid_together_or_not_at_all(make: Make) -> None:
    ledger = make(Limit.of("3", "2"))
    assert pays_together(ledger)
    assert ledger.charge_all([request("a"), request("b"), request("c", "bob")]) == ["first", None, None]
    assert ledger.balance().spent == 3


def test_threads_share_commits_and_nothing_else(url: str) -> None:
    ledger = open_ledger(url, Limit.of("400", "12"))

    def ask(number: int) -> list[str]:
        """Some that fit, a batch that does not, a conflict; each answered by itself."""
        who, seen = f"analyst {number}", []
        for part in range(4):
            one = request(f"{part}", who)
            ledger.charge(one)
            seen.append(ledger.finish(one, f"{number} {part}"))
            with pytest.raises(BudgetExhausted, match="analyst's limit 12"):
                ledger.charge_all([request(f"batch {part} {place}", who) for place in range(13)])
            with pytest.raises(RequestConflict, match="other parameters"):
                ledger.charge(request(f"{part}", who, target=8))
        return seen

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, range(8)))
    assert found == [[f"{number} {part}" for part in range(4)] for number in range(8)]
    assert ledger.balance().spent == 32
    assert [ledger.balance(f"analyst {number}").spent for number in range(8)] == [4] * 8
    ledger.verify()
    kinds = Counter(row["kind"] for row in ledger.rows())
    assert kinds == {"OPENED": 1, "HELD": 32, "RELEASED": 32}


class PaysOneByOne(MemoryLedger):
    """Keeps what was paid before the refusal."""

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        return [super(PaysOneByOne, self).charge_all([one])[0] for one in requests]


def test_a_ledger_that_pays_one_by_one_is_found_out() -> None:
    assert pays_together(MemoryLedger(Limit.of("3", "2")))
    assert not pays_together(PaysOneByOne(Limit.of("3", "2")))


def test_the_owner_can_read_every_row(url: str) -> None:
    ledger = open_ledger(url, Limit.of("3"))
    ledger.charge(request("a"))
    ledger.finish(request("a"), "answer")
    rows = list(ledger.rows())
    assert [row["kind"] for row in rows] == ["OPENED", "HELD", "RELEASED"]
    assert rows[-1]["body"] == "answer"
    assert rows[-1]["digest"] == ledger.head().digest


def test_a_ledger_set_back_while_it_serves_is_refused(url: str) -> None:
    ledger = open_ledger(url, Limit.of("3"))
    for name in "abc":
        ledger.charge(request(name))
    forge(url, "DELETE FROM entries WHERE position > 2")
    with pytest.raises(LedgerRolledBack, match="lacks row 4"):
        ledger.charge(request("d"))
    with pytest.raises(LedgerRolledBack, match="lacks row 4"):
        ledger.head()
    assert open_ledger(url).balance().spent == 1, "who does not know better cannot tell: that is what heads are for"


def test_a_ledger_that_does_not_look_back_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChainedLedger, "_known", lambda *_, **__: [])
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        test_a_ledger_set_back_while_it_serves_is_refused(f"sqlite:///{tmp_path / 'budget.db'}")


def test_a_ledger_that_lost_rows_is_refused_against_the_exported_head(url: str) -> None:
    ledger = open_ledger(url, Limit.of("3"))
    ledger.charge(request("a"))
    ledger.charge(request("b"))
    head = Head.from_json(ledger.head().to_json())
    open_ledger(url, known=head)
    forge(url, "DELETE FROM entries WHERE position = 3")
    open_ledger(url)
    with pytest.raises(LedgerRolledBack, match="lacks row 3 of the known head"):
        open_ledger(url, known=head)


@pytest.mark.parametrize("statement", REFUNDS.values(), ids=REFUNDS.keys())
def test_the_chain_rejects_every_forged_row(url: str, statement: str) -> None:
    ledger = open_ledger(url, Limit.of("3"))
    ledger.charge(request("a"))
    ledger.finish(request("a"), "answer")
    forge(url, statement)
    with pytest.raises(LedgerCorrupt, match="was altered; restore the newest copy"):
        open_ledger(url)


ENDLESS = 10**9  # more requests than anyone lives for


def hammer(url: str, seed: int, requests: int) -> None:
    """Asks for releases until refused, now and then repeating an id or leaving a request held."""
    rng = random.Random(seed)
    ledger = open_ledger(url, patience=60)
    for _ in range(requests):
        number = rng.randrange(400)
        asked = request(str(number), f"analyst {number % 3}", target=number)
        try:
            stored = ledger.charge(asked)
        except BudgetExhausted:
            continue
        if stored is None and rng.random() < 0.9:
            ledger.finish(asked, json.dumps([number, seed, rng.random()]))


def test_processes_that_race_and_die_never_pass_the_limit(url: str) -> None:
    ledger = open_ledger(url, Limit.of("150"))
    context = multiprocessing.get_context("fork")
    answers: dict[tuple[str, str], str] = {}
    rng = random.Random(0)
    for round_ in range(4):
        seeds = [10 * round_ + k for k in range(4)]
        workers = [context.Process(target=hammer, args=(url, seed, 120), daemon=True) for seed in seeds[2:]]
        doomed = [context.Process(target=hammer, args=(url, seed, ENDLESS), daemon=True) for seed in seeds[:2]]
        for worker in doomed + workers:
            worker.start()
        for worker in doomed:
            time.sleep(rng.random() / 4)
            worker.kill()
        for worker in doomed + workers:
            worker.join()
        assert [worker.exitcode for worker in doomed + workers] == [-signal.SIGKILL] * 2 + [0] * 2
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
    assert len(answers) <= paid.answers == 150


def test_a_fork_while_threads_write_finds_the_locks_free(url: str) -> None:
    ledger, over = open_ledger(url, Limit.of("100000")), threading.Event()

    def write(thread: int) -> None:
        for number in range(100_000):
            if over.is_set():
                return
            ledger.charge(request(f"{thread} {number}"))
            ledger.balance()

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(15):
            charge = partial(ledger.charge, request(f"child {number}"))
            child = multiprocessing.get_context("fork").Process(target=charge, daemon=True)
            child.start()
            child.join(timeout=60)
            assert child.exitcode == 0, "the child waits for a lock that no thread of its own holds"
    finally:
        over.set()
        for thread in threads:
            thread.join()
    ledger.verify()
    assert len(ledger.paid("ann", [f"child {number}" for number in range(15)])) == 15


def test_a_connection_is_not_shared_across_a_fork(url: str) -> None:
    ledger = open_ledger(url, Limit.of("9"))
    ledger.charge(request("parent"))
    child = multiprocessing.get_context("fork").Process(target=lambda: ledger.charge(request("child")))
    child.start()
    child.join()
    assert child.exitcode == 0
    ledger.charge(request("parent again"))
    ledger.verify()
    assert ledger.balance().answers == 3


def test_several_answers_are_kept_in_one_step_and_the_first_of_each_counts(make: Make) -> None:
    ledger = make(Limit.of("3"))
    ledger.charge_all([request("a"), request("b")])
    ledger.finish(request("b"), "first")
    assert ledger.finish_all([(request("a"), "one"), (request("b"), "two")]) == ["one", "first"]
    assert [ledger.released("ann", name) for name in ("a", "b")] == ["one", "first"]
    assert ledger.finish_all([(request("a"), "late")]) == ["one"]
    ledger.verify()


def test_looking_up_says_what_a_charge_would_say_and_changes_nothing(make: Make) -> None:
    ledger = make(Limit.of("3", "2"))
    ledger.charge_all([request("a"), request("b")])
    ledger.finish(request("a"), "first")
    before = ledger.head()
    assert ledger.look_up([request("a"), request("b")]) == ["first", None]
    with pytest.raises(BudgetExhausted, match="analyst's limit 2"):
        ledger.look_up([request("a"), request("c")])
    with pytest.raises(BudgetExhausted, match="total limit 3"):
        ledger.look_up([request("d", "bob"), request("e", "carl")])
    with pytest.raises(RequestConflict, match="'a' was used before with other parameters"):
        ledger.look_up([request("a", target=8)])
    assert ledger.look_up([request("d", "bob")]) == [None]
    assert ledger.paid("ann", ["a", "b", "c"]) == {"a", "b"}
    assert ledger.head() == before


@pytest.mark.parametrize("cap", ["1", "3", "5"])
def test_a_cap_is_the_least_of_all_limits_in_every_ledger(make: Make, cap: str) -> None:
    """Limit 5, analyst's limit 1: a cap of 3 does not raise it."""
    one = replace(request("a", epsilon=Fraction(2)), cap=Fraction(cap))
    ledger = make(Limit.of("5", "1"))
    for ask in (ledger.charge, lambda asked: ledger.look_up([asked])):
        with pytest.raises(BudgetExhausted, match="analyst's limit 1"):
            ask(one)


def test_a_paid_id_is_not_drawn_for_at_a_higher_price(make: Make) -> None:
    ledger = make(Limit.of("5"))
    ledger.charge(replace(request("a"), cost=Fraction(1, 2)))
    with pytest.raises(RequestConflict, match="'a' was paid when it cost less"):
        ledger.charge(request("a"))
    assert ledger.balance().spent == Fraction(1, 2)


def test_a_limit_is_never_lowered_below_what_is_spent(make: Make) -> None:
    ledger = make(Limit.of("5"))
    ledger.charge(request("a", epsilon=Fraction(3)))
    with pytest.raises(SettingsError, match="limit 2 is below the 3 that is spent already"):
        ledger.change_limit(Limit.of("2"))
    with pytest.raises(SettingsError, match="a ledger keeps its contract"):
        ledger.change_limit(Limit.of("5", contract=contract_from({"kind": "zcdp", "delta": "0.000001"})))
    ledger.change_limit(Limit.of("3"))
    assert ledger.limit == Limit.of("3")
    assert ledger.balance().left == 0


def test_an_answer_is_stored_at_its_public_length_and_returned_without_the_padding(url: str) -> None:
    ledger = open_ledger(url, Limit.of("3"))
    asked = replace(request("a"), room=100)
    ledger.charge(asked)
    assert ledger.finish(asked, "short") == "short"
    assert ledger.charge(asked) == ledger.released("ann", "a") == "short"
    assert [len(row["body"]) for row in ledger.rows() if row["kind"] == "RELEASED"] == [100]
