"""Entries for disclosures made elsewhere: counted in full, or refused."""

from fractions import Fraction
from pathlib import Path

import pytest

from privcfs import Limit
from privcfs.errors import BudgetExhausted, RequestConflict, SettingsError
from privcfs.gate.contracts import Approximate, ZeroConcentrated
from privcfs.gate.entries import enter
from privcfs.gate.ledger.ledger import Ledger
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.gate.snapshots import ONE_EDGE


@pytest.fixture(params=["sqlite", "memory"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Ledger:
    limit = Limit.of("5", contract=Approximate(Fraction(2, 100_000)))
    return SqliteLedger(tmp_path / "budget.db", limit) if request.param == "sqlite" else MemoryLedger(limit)


def test_a_model_trained_with_noise_counts_in_full(ledger: Ledger) -> None:
    enter(ledger, "DP-SGD model", "2", "0.00001", adjacency=ONE_EDGE)
    enter(ledger, "DP-SGD model", "2", "0.00001", adjacency=ONE_EDGE)
    assert ledger.balance().spent == 2
    with pytest.raises(RequestConflict):
        enter(ledger, "DP-SGD model", "2", "0.00002", adjacency=ONE_EDGE)
    assert ledger.adjacencies() == {ONE_EDGE}
    enter(ledger, "another", "1", "0.00001", adjacency=ONE_EDGE)
    with pytest.raises(BudgetExhausted, match="delta 1e-05 does not fit"):
        enter(ledger, "a third", "1", "0.00001", adjacency=ONE_EDGE)
    with pytest.raises(BudgetExhausted, match="epsilon 3 does not fit"):
        enter(ledger, "a fourth", "3", adjacency=ONE_EDGE)
    assert ledger.balance().spent == 3
    assert "(5, 2e-05)" in ledger.limit.contract.meaning(Fraction(5))


def test_a_pure_account_takes_no_delta_and_rho_no_entries(tmp_path: Path) -> None:
    pure = SqliteLedger(tmp_path / "pure.db", Limit.of("5"))
    with pytest.raises(BudgetExhausted, match="the contract allows 0 in all"):
        enter(pure, "model", "1", "0.00001", adjacency=ONE_EDGE)
    enter(pure, "model", "1", adjacency=ONE_EDGE)
    assert pure.balance().spent == 1
    rho = SqliteLedger(tmp_path / "rho.db", Limit.of("5", contract=ZeroConcentrated()))
    with pytest.raises(SettingsError, match="has no rho"):
        enter(rho, "model", "1", adjacency=ONE_EDGE)


def test_entries_count_against_the_total_alone(tmp_path: Path) -> None:
    for ledger in (SqliteLedger(tmp_path / "b.db", Limit.of("5", "1")), MemoryLedger(Limit.of("5", "1"))):
        enter(ledger, "model", "3", adjacency=ONE_EDGE)
        assert ledger.balance().left == 2
        assert ledger.balance("owner").spent == 0
