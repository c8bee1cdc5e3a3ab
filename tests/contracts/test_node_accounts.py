"""Accounts of nodes, and answers that are kept apart: the same rules in every ledger."""

import json
import multiprocessing
import random
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, final

import psycopg
import pytest

from privcfs.errors import BudgetExhausted, LedgerCorrupt, RequestConflict, SettingsError
from privcfs.gate.accounting import Balance, Limit, Period
from privcfs.gate.contracts import contract_from
from privcfs.gate.entries import enter
from privcfs.gate.ledger import accounts, open_ledger
from privcfs.gate.ledger.ledger import WIDEST, Ledger, Request
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.public.epsilon import NANO
from tests.contracts.test_ledgers import forge

Make = Callable[[Limit], Ledger]
ONE = Fraction(1)
LIMIT = Limit.of("3", per_node="2")
YEARLY = Limit.of("3", per_node="2", period="year")


def about(
    request_id: str, *nodes: int, analyst: str = "ann", epsilon: Fraction = ONE, in_full: bool = False
) -> Request:
    """A question that reads the own edges of these nodes, or of the whole graph where there are none."""
    asked = Request(analyst, request_id, 7, epsilon, "digest", "mechanism", WIDEST)
    return replace(asked, nodes=nodes, in_full=in_full)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Sets the date."""

    def set_date(day: str) -> None:
        monkeypatch.setattr(accounts, "today", lambda: date.fromisoformat(day))

    set_date("2026-11-05")
    return set_date


def spent_at(ledger: Ledger, *nodes: int) -> list[Fraction]:
    return [ledger.node_balance(node).spent for node in nodes]


def test_a_question_is_paid_from_the_account_of_its_node_and_not_from_the_total(make: Make) -> None:
    ledger = make(LIMIT)
    for number in range(20):
        assert ledger.charge(about(f"{number}", number)) is None
    assert ledger.balance() == Balance(Fraction(3), Fraction(0), Fraction(0), 0)
    assert ledger.balance("ann").spent == 20
    assert ledger.node_balance(7) == Balance(Fraction(2), ONE, ONE, 1)
    ledger.finish(about("7", 7), "answer")
    assert ledger.node_balance(7) == Balance(Fraction(2), ONE, Fraction(0), 1)
    ledger.charge(about("7 again", 7))
    with pytest.raises(
        BudgetExhausted,
        match=r"^epsilon 1 does not fit: 2 of node 7's limit 2 is spent, 0 is left\. Nothing was charged; ask for less",
    ):
        ledger.charge(about("once more", 7))
    ledger.charge(about("whole graph", epsilon=Fraction(3)))
    with pytest.raises(BudgetExhausted, match="3 of the total limit 3 is spent"):
        ledger.charge(about("whole graph again"))
    assert ledger.charge(about("still", 8)) is None, "a total that is spent does not stop questions paid at nodes"
    ledger.verify()


def charges_every_node(ledger: Ledger) -> bool:
    """Whether a question about several nodes counts at each, and once in the sum of all prices."""
    ledger.charge(about("a", 4, 2, 4))
    if spent_at(ledger, 2, 4, 3) != [1, 1, 0]:
        return False
    ledger.charge(about("b", 2))
    before = ledger.head()
    with pytest.raises(BudgetExhausted, match="node 2's limit 2 is spent"):
        ledger.charge(about("c", 2, 3))
    assert ledger.head() == before
    losses = ledger.losses()
    assert [losses.everything, losses.whole, losses.dearest_node] == [2, 0, 2]
    return spent_at(ledger, 2, 4, 3) == [2, 1, 0]


def test_a_question_about_several_nodes_is_charged_at_each_of_them(make: Make) -> None:
    assert charges_every_node(make(LIMIT))


class ChargesFirstNode(MemoryLedger):
    """Charges only the first of several nodes."""

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        return super().charge_all([replace(one, nodes=one.nodes[:1]) for one in requests])


def test_a_ledger_that_charges_only_the_first_node_is_found_out() -> None:
    assert charges_every_node(MemoryLedger(LIMIT))
    assert not charges_every_node(ChargesFirstNode(LIMIT))


def keeps_what_is_left(ledger: Ledger) -> bool:
    """Whether a question that asks for more than is left changes nothing."""
    ledger.charge(about("a", 5))
    before = ledger.head(), spent_at(ledger, 5), ledger.losses()
    for asked in ([about("b", 5, epsilon=Fraction(3, 2))], [about("c", 5), about("d", 5)]):
        for ask in (ledger.charge_all, ledger.look_up):
            with pytest.raises(BudgetExhausted, match="of node 5's limit 2 is spent"):
                ask(asked)
    if (ledger.head(), spent_at(ledger, 5), ledger.losses()) != before:
        return False
    return ledger.look_up([about("c", 5)]) == ledger.charge_all([about("c", 5)]) == [None]


def test_a_question_that_asks_for_too_much_neither_empties_nor_changes_an_account(make: Make) -> None:
    assert keeps_what_is_left(make(LIMIT))


class EmptiesAccounts(MemoryLedger):
    """Takes what is left where a price does not fit."""

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        try:
            return super().charge_all(requests)
        except BudgetExhausted:
            left, _ = self.left_for(requests[0].analyst, nodes=requests[0].nodes)
            super().charge_all([replace(requests[0], epsilon=left, request_id=f"taken, {len(self._paid)}")])
            raise


def test_a_ledger_whose_refusal_empties_an_account_is_found_out() -> None:
    assert keeps_what_is_left(MemoryLedger(LIMIT))
    assert not keeps_what_is_left(EmptiesAccounts(LIMIT))


def test_limits_of_analysts_and_caps_hold_wherever_it_is_paid(make: Make) -> None:
    ledger = make(Limit.of("1", "4", per_node="2"))
    ledger.charge_all([about(f"{node}", node) for node in range(4)])
    with pytest.raises(BudgetExhausted, match="4 of the analyst's limit 4"):
        ledger.charge(about("another", 9))
    capped = replace(about("capped", 9, analyst="bob"), cap=Fraction(3))
    ledger.charge_all([replace(capped, request_id=f"{node}", nodes=(node,)) for node in range(3)])
    with pytest.raises(BudgetExhausted, match="3 of the analyst's limit 3 is spent"):
        ledger.charge(capped)
    assert ledger.account_of("bob", Fraction(3)).limit == 3
    assert ledger.left_for("bob", Fraction(3), (9,)) == (Fraction(0), "you")
    assert ledger.left_for("carl", None, (9,)) == (Fraction(2), "node")
    assert ledger.left_for("carl", None, (9, 1)) == (Fraction(0), "node")
    assert ledger.left_for("carl", None, (9,), in_full=True) == (Fraction(1), "everyone")
    assert ledger.left_for("carl") == (Fraction(1), "everyone")


def test_a_question_that_counts_in_full_is_paid_at_its_node_and_from_the_total(make: Make) -> None:
    ledger = make(LIMIT)
    ledger.charge_all([about("a", 1, in_full=True), about("b", 2)])
    assert ledger.balance() == Balance(Fraction(3), ONE, ONE, 1)
    assert spent_at(ledger, 1, 2) == [1, 1]
    with pytest.raises(BudgetExhausted, match="1 of node 1's limit 2 is spent"):
        ledger.charge(about("c", 1, epsilon=Fraction(3, 2), in_full=True))
    ledger.charge_all([about(f"{node}", node, in_full=True) for node in (3, 4)])
    with pytest.raises(BudgetExhausted, match="3 of the total limit 3 is spent"):
        ledger.charge(about("d", 5, in_full=True))
    losses = ledger.losses()
    assert [losses.whole, losses.everything, losses.dearest_node] == [3, 4, 1]
    ledger.verify()


def test_without_a_limit_per_node_every_question_counts_against_the_total(make: Make) -> None:
    ledger = make(Limit.of("2"))
    ledger.charge_all([about("a", 1), about("b", 2)])
    with pytest.raises(BudgetExhausted, match="2 of the total limit 2"):
        ledger.charge(about("c", 3))
    assert ledger.node_balance(1) == Balance(None, Fraction(0), Fraction(0), 0)
    ledger.change_limit(Limit.of("2", per_node="1"))
    ledger.charge(about("c", 3))
    assert ledger.balance().spent == 2, "what was paid before there were accounts stays in the total"
    assert ledger.losses().everything == 3
    ledger.verify()


def test_the_same_id_is_for_the_same_nodes(make: Make) -> None:
    ledger = make(LIMIT)
    ledger.charge(about("a", 1, 2))
    assert ledger.charge(about("a", 2, 1)) is None, "the order of nodes is no other question"
    for other in (about("a", 1), about("a"), about("a", 1, 2, in_full=True)):
        with pytest.raises(RequestConflict, match="'a' was used before with other parameters"):
            ledger.charge(other)
    assert ledger.losses().everything == 1


def test_old_questions_keep_their_terms() -> None:
    assert set(about("a").terms) == {"target", "epsilon", "context_digest", "mechanism", "adjacency"}
    assert about("a", 3, 1).terms["reads"] == [1, 3]


@pytest.mark.parametrize(
    ("period", "same", "later"), [("year", "2026-12-31", "2027-01-01"), ("month", "2026-11-30", "2026-12-01")]
)
def test_accounts_are_renewed_by_period_and_the_total_never(
    make: Make, clock: Callable[[str], None], period: Period, same: str, later: str
) -> None:
    ledger = make(Limit.of("3", per_node="2", period=period))
    name = same[: 4 if period == "year" else 7]
    ledger.charge_all(
        [about("a", 1, epsilon=Fraction(2)), about("whole", epsilon=Fraction(2)), about("full", 2, in_full=True)]
    )
    clock(same)
    with pytest.raises(BudgetExhausted, match=rf"2 of node 1's limit 2 in {name} is spent, 0 is left"):
        ledger.charge(about("b", 1))
    clock(later)
    assert spent_at(ledger, 1, 2) == [0, 0]
    assert ledger.left_for("ann", None, (1,)) == (Fraction(2), "node")
    ledger.charge(about("b", 1))
    with pytest.raises(BudgetExhausted, match="3 of the total limit 3 is spent"):
        ledger.charge(about("c"))
    losses = ledger.losses()
    assert [losses.dearest_node, losses.dearest_node_in_period, losses.whole, losses.everything] == [3, 1, 3, 6]
    assert losses.period == later[: len(name)]
    clock("2026-11-05")
    assert spent_at(ledger, 1) == [1], "a clock that is set back does not bring an old period back"
    ledger.charge(about("d", 1))
    with pytest.raises(BudgetExhausted, match=f"2 of node 1's limit 2 in {later[: len(name)]}"):
        ledger.charge(about("e", 1))
    ledger.verify()


def test_a_period_can_be_changed_and_counts_exactly(make: Make, clock: Callable[[str], None]) -> None:
    ledger = make(LIMIT)
    for day, name in (("2025-12-31", "a"), ("2026-01-01", "b")):
        clock(day)
        ledger.charge(about(name, 1))
    clock("2026-02-01")
    with pytest.raises(BudgetExhausted, match="2 of node 1's limit 2 is spent"):
        ledger.charge(about("c", 1))
    ledger.change_limit(YEARLY)
    assert spent_at(ledger, 1) == [1]
    ledger.charge(about("c", 1))
    ledger.change_limit(Limit.of("3", per_node="1", period="month"))
    assert spent_at(ledger, 1) == [1]
    with pytest.raises(
        SettingsError, match="limit per node 1 is below the 2 that is spent at one node already in 2026"
    ):
        ledger.change_limit(Limit.of("3", per_node="1", period="year"))
    with pytest.raises(SettingsError, match="limit per node 2 is below the 3 that is spent at one node already, so"):
        ledger.change_limit(LIMIT)
    assert ledger.limit == Limit.of("3", per_node="1", period="month")
    ledger.verify()


def test_accounts_that_were_used_cannot_be_switched_off(make: Make) -> None:
    ledger = make(LIMIT)
    ledger.change_limit(Limit.of("3"))
    ledger.change_limit(LIMIT)
    ledger.charge(about("a", 1))
    with pytest.raises(SettingsError, match="1 was paid at nodes and does not count against the total limit"):
        ledger.change_limit(Limit.of("9"))
    with pytest.raises(SettingsError, match=r"limit per node 0\.5 is below the 1 that is spent at one node already"):
        ledger.change_limit(Limit.of("9", per_node="0.5"))


@pytest.mark.parametrize("kind", ["zcdp", "approximate", "fixed"])
def test_accounts_need_the_contract_pure(kind: str) -> None:
    contract = contract_from({"kind": kind} | ({"epsilon": "1"} if kind == "fixed" else {}))
    with pytest.raises(SettingsError, match=f"a limit per node needs the contract pure: .* not for {kind}"):
        Limit.of("5", contract=contract, per_node="1")
    with pytest.raises(SettingsError, match="are for the contract pure"):
        MemoryLedger(Limit.of("5", contract=contract)).losses()


def test_a_period_is_for_accounts_and_has_a_known_length() -> None:
    with pytest.raises(SettingsError, match="a period is for accounts of nodes; give a limit per node too"):
        Limit.of("5", period="year")
    with pytest.raises(SettingsError, match="period is 'week'; choose year or month"):
        Limit.of("5", per_node="1", period="week")  # type: ignore[arg-type]
    with pytest.raises(SettingsError, match="limit per node is 'much'"):
        Limit.of("5", per_node="much")


@final
@dataclass
class Replayed:
    """An independent account of everything, from the rows of a ledger alone."""

    total: Fraction = Fraction(0)
    in_full: Fraction = Fraction(0)
    at_node: dict[tuple[int, str], Fraction] = field(default_factory=dict)

    def add(self, row: dict[str, Any]) -> None:
        if row["kind"] != "HELD":
            return
        body, cost = json.loads(row["body"]), Fraction(row["cost"], NANO)
        self.total += cost
        if "nodes" not in body or "in_full" in body["terms"]:
            self.in_full += cost
        for node in body.get("nodes", ()):
            for period in ("", body["month"][:4], body["month"]):
                self.at_node[node, period] = self.at_node.get((node, period), Fraction(0)) + cost

    def dearest(self, period: str) -> Fraction:
        return max((spent for (_, when), spent in self.at_node.items() if when == period), default=Fraction(0))


def said(attempt: Callable[[], object]) -> str:
    """What is returned, or the text of a refusal."""
    try:
        return str(attempt())
    except BudgetExhausted as error:
        return str(error)


@pytest.mark.parametrize("seed", range(4))
def test_sums_at_nodes_equal_an_independent_replay_of_the_rows(
    make: Make, clock: Callable[[str], None], seed: int
) -> None:
    rng = random.Random(seed)
    limit = Limit.of("8", "30", per_node="2.5", period=rng.choice(["", "year", "month"]))
    ledger, refused = make(limit), 0
    for number in range(150):
        clock(f"20{26 + number // 60}-{1 + number // 12 % 12:02d}-0{1 + rng.randrange(9)}")
        asked = [
            about(
                f"{number} {part}",
                *rng.sample(range(6), rng.choice([0, 1, 1, 1, 2, 3]) if rng.random() < 0.8 else 0),
                analyst=rng.choice(["ann", "bob", "carl"]),
                epsilon=Fraction(rng.randrange(1, 90), 100),
                in_full=rng.random() < 0.1,
            )
            for part in range(rng.choice([1, 1, 3]))
        ]
        looked_up, charged = said(partial(ledger.look_up, asked)), said(partial(ledger.charge_all, asked))
        assert looked_up == charged, "looking up says what a charge says"
        refused += charged.startswith("epsilon")
    found, losses = Replayed(), ledger.losses()
    for row in ledger.rows():
        found.add(row)
    assert refused > 10
    assert [losses.everything, losses.whole] == [found.total, found.in_full]
    assert ledger.balance().spent == found.in_full <= 8
    assert losses.dearest_node == found.dearest("")
    assert losses.dearest_node_in_period == found.dearest(losses.period)
    assert spent_at(ledger, *range(6)) == [found.at_node.get((node, losses.period), 0) for node in range(6)]
    assert list(ledger.spent_at(range(6)).values()) == spent_at(ledger, *range(6))
    width = {"": 0, "year": 4, "month": 7}[limit.period]
    assert all(spent <= Fraction("2.5") for (_, period), spent in found.at_node.items() if len(period) == width)
    ledger.verify()


def test_balances_follow_the_rows_that_others_write(url: str) -> None:
    ledger, other = open_ledger(url, LIMIT), open_ledger(url)
    other.charge_all([about("a", 1), about("b"), about("c", 2, analyst="bob", in_full=True)])
    assert [one.balance() for one in (ledger, other)] == [Balance(Fraction(3), Fraction(2), Fraction(2), 2)] * 2
    ledger.finish_all([(about("a", 1), "one"), (about("b"), "two")])
    for one in (other, ledger, open_ledger(url)):
        assert one.balance() == Balance(Fraction(3), Fraction(2), ONE, 2)
        assert one.balance("ann") == Balance(None, Fraction(2), Fraction(0), 2)
        assert one.balance("bob") == Balance(None, ONE, ONE, 1)
        assert one.balance("carl") == Balance(None, Fraction(0), Fraction(0), 0)
        assert one.adjacencies() == {WIDEST}


FORGED = {
    "a refund at a node": "UPDATE accounts SET in_all = 0, in_year = 0, in_month = 0 WHERE node = 1",
    "a lower maximum": "UPDATE accounts SET most_in_all = 0",
    "more paid at nodes than was": "UPDATE accounts SET paid = paid + 1000000000",
    "another month": "UPDATE accounts SET month = '2020-01'",
    "another node": "UPDATE accounts SET node = 5 WHERE node = 1",
    "a dropped row": "DELETE FROM accounts WHERE node = 2",
    "one more row": "INSERT INTO accounts VALUES (9, 1, 0, '2026-11', 0, 0, 0, 0, 0, 0, 0)",
    "an answer too many": "INSERT INTO kept_apart VALUES ('ann', 'a', 'forged')",
    "an answer too few": "DELETE FROM kept_apart",
}


@pytest.mark.parametrize("statement", FORGED.values(), ids=FORGED)
def test_an_altered_account_is_found(url: str, statement: str) -> None:
    ledger = open_ledger(url, LIMIT)
    ledger.charge_all([about("a", 1), about("b", 1, 2), about("c")])
    apart = replace(about("d", 4), apart=True)
    ledger.charge(apart)
    ledger.finish(apart, "for one person")
    ledger.verify()
    forge(url, statement)
    for look in (ledger.verify, lambda: open_ledger(url)):
        with pytest.raises(LedgerCorrupt, match="restore the newest copy"):
            look()


@pytest.mark.parametrize("table", ["accounts", "kept_apart"])
def test_tables_beside_the_chain_are_append_only(url: str, table: str) -> None:
    ledger, asked = open_ledger(url, LIMIT), replace(about("a", 1), apart=True)
    ledger.charge(asked)
    ledger.finish(asked, "answer")
    for statement in (
        f"DELETE FROM {table}",
        f"UPDATE {table} SET {'node = 2' if table == 'accounts' else 'body = 1'}",
    ):
        if url.startswith("sqlite"):
            raw = sqlite3.connect(url.removeprefix("sqlite:///"))
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                raw.execute(statement)
            raw.close()
        else:
            with psycopg.connect(url) as connection, pytest.raises(psycopg.Error, match="append-only"):
                connection.execute(statement.encode())


def race(url: str, seed: int) -> None:
    """Asks about a few nodes until all are refused."""
    rng, ledger = random.Random(seed), open_ledger(url, patience=60)
    for number in range(60):
        nodes = rng.sample(range(4), rng.choice([1, 1, 2]))
        try:
            ledger.charge(about(f"{seed} {number}", *nodes, epsilon=Fraction(rng.randrange(1, 5), 10)))
        except BudgetExhausted:
            continue


def test_processes_that_race_for_one_account_never_pass_its_limit(url: str) -> None:
    ledger = open_ledger(url, LIMIT)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=race, args=(url, seed), daemon=True) for seed in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    ledger.verify()
    assert all(Fraction(19, 10) <= spent <= 2 for spent in spent_at(ledger, *range(4)))
    found = Replayed()
    for row in ledger.rows():
        found.add(row)
    assert [found.at_node[node, ""] for node in range(4)] == spent_at(ledger, *range(4))


def test_a_ledger_of_version_0_1_gets_accounts(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    shutil.copy(Path(__file__).parent.parent / "version_0_1" / "budget.db", path)
    with sqlite3.connect(path) as raw:
        assert raw.execute("PRAGMA user_version").fetchone()[0] < 3
    raw.close()
    ledger = SqliteLedger(path)
    before, rows = ledger.balance(), list(ledger.rows())
    assert before.spent > 0
    ledger.change_limit(Limit.of(ledger.limit.total, per_node="1"))
    ledger.charge(about("new", 3))
    assert ledger.balance().spent == before.spent
    assert list(ledger.rows())[: len(rows)] == rows
    again = SqliteLedger(path)
    assert spent_at(again, 3) == [1]
    assert again.losses().everything == before.spent + 1


def test_a_ledger_of_version_2_gets_accounts(url: str) -> None:
    ledger = open_ledger(url, Limit.of("5"))
    ledger.charge(about("old"))
    drop = "DROP TABLE accounts; DROP TABLE kept_apart; "
    if url.startswith("sqlite"):
        raw = sqlite3.connect(url.removeprefix("sqlite:///"))
        raw.executescript(f"{drop} PRAGMA user_version = 2;")
        raw.close()
    else:
        with psycopg.connect(url) as connection:
            for one in (*drop.split("; ")[:2], "DELETE FROM ledger_version", "INSERT INTO ledger_version VALUES (2)"):
                connection.execute(one.encode())
    again = open_ledger(url)
    again.change_limit(Limit.of("5", per_node="1"))
    again.charge(about("new", 3))
    assert [again.balance().spent, *spent_at(again, 3)] == [1, 1]
    again.verify()


def test_losses_for_one_edge_a_person_and_any_two_graphs(make: Make) -> None:
    ledger = make(Limit.of("10", per_node="4"))
    ledger.charge_all([about(f"{node}", node) for node in range(50)])
    ledger.charge_all([about("0 again", 0), about("whole")])
    losses = ledger.losses()
    assert losses.one_edge() == 2 * 2 + 1
    assert losses.person(3) == 4 * 2 + 1
    assert losses.any_two_graphs() == 52
    assert losses.person(1000) == 52, "no more than for any two graphs"
    assert losses.most_for_one_edge() == 2 * 4 + 10
    assert losses.most_for_any_two_graphs() is None
    assert losses.to_dict()["one_edge"] == "5"
    enter(ledger, "a sketch", "2", adjacency="one edge more or less")
    losses = ledger.losses()
    assert [losses.whole, losses.edge_level] == [1, 2]
    assert losses.one_edge() == 2 * 2 + 1 + 2
    assert losses.person(3) == 4 * 2 + 1 + 3 * 2
    assert losses.any_two_graphs() is None
    assert losses.most_for_one_edge() == 18
    assert losses.most_for_person(3) == 4 * 4 + 1 + 3 * 9
    assert ledger.balance().spent == 3
    enter(ledger, "a model", "1", adjacency=f"{WIDEST} over the same public context")
    assert [ledger.losses().whole, ledger.losses().edge_level] == [2, 2]


def test_the_numbers_are_said_in_words(make: Make, clock: Callable[[str], None]) -> None:
    ledger = make(Limit.of("10", per_node="4"))
    ledger.charge_all([about(f"{node}", node) for node in range(9)])
    ledger.charge(about("whole"))
    assert ledger.losses().in_words() == (
        "All answers so far, taken together, have told at most epsilon 3 about one edge. About a person with m edges "
        "they have told (m + 1) times 1 plus 1, and at most 10. About any two graphs they have told at most 10. The "
        "limits allow at most 18 about one edge, and 4 at each node."
    )
    assert "pure 18-differential privacy for one edge, which is twice the limit per node 4" in ledger.meaning()
    assert "for any two graphs, 10 so far" in ledger.meaning()
    ledger.change_limit(Limit.of("10", per_node="4", period="year"))
    clock("2027-01-01")
    assert "In 2027 they have told at most 1 about one edge." in ledger.losses().in_words()
    assert "18 about one edge in one year" in ledger.losses().in_words()
    assert "for one edge in one year" in ledger.meaning()
    enter(ledger, "a sketch", "2", adjacency="one edge more or less")
    assert "no finite number holds" in ledger.losses().in_words()
    assert "for any two graphs, no finite number" in ledger.meaning()
    whole = MemoryLedger(Limit.of("10"))
    whole.charge(about("whole"))
    assert whole.losses().in_words() == (
        "All answers so far, taken together, have told at most epsilon 1 about one edge. About a person with m edges "
        "they have told at most 1. About any two graphs they have told at most 1."
    )
    assert "pure 10-differential privacy" in whole.meaning()


def test_an_answer_kept_apart_leaves_nothing_in_the_chain(url: str) -> None:
    ledger = open_ledger(url, LIMIT)
    for name, text in (("a", "short"), ("b", "a much longer answer")):
        asked = replace(about(name, 1), apart=True, room=64)
        assert ledger.charge(asked) is None
        assert ledger.finish(asked, text) == text
        assert ledger.finish(asked, "another") == text, "the first answer counts"
        assert ledger.charge(asked) == ledger.released("ann", name) == text
        assert ledger.look_up([asked]) == [text]
        with pytest.raises(RequestConflict, match="other parameters"):
            ledger.charge(replace(asked, apart=False))
    assert ledger.look_up([replace(about(name, 1), apart=True) for name in "ab"]) == ["short", "a much longer answer"]
    assert open_ledger(url).released("ann", "a") == "short"
    bodies = [row["body"] for row in ledger.rows() if row["kind"] == "RELEASED"]
    assert bodies == ["kept apart"] * 2
    assert "short" not in str(list(ledger.rows()))
    ledger.verify()


def test_an_answer_kept_apart_is_no_part_of_a_chain_in_memory_either() -> None:
    heads = []
    for text in ("one", "another"):
        ledger = MemoryLedger(LIMIT)
        ledger._id = "same"
        asked = replace(about("a", 1), apart=True)
        ledger.charge(asked)
        assert ledger.finish(asked, text) == ledger.released("ann", "a") == ledger.charge(asked) == text
        heads.append(ledger.head())
    assert heads[0] == heads[1]
