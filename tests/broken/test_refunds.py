"""Ledgers that refund, let retries go free or charge after reading: each is caught by replaying a day of requests."""

from pathlib import Path

import pytest

from privcfs import Limit
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.lab.audit.conduct import replay
from privcfs.lab.audit.memory import MemoryLedger
from privcfs.lab.audit.twins import ChargesLater, FreeRetries, Refunds


def test_the_shipped_ledger_passes(tmp_path: Path) -> None:
    assert replay(lambda limit: SqliteLedger(tmp_path / "budget.db", limit)) == []


def test_the_auditors_own_ledger_passes() -> None:
    assert replay(MemoryLedger) == []


@pytest.mark.parametrize(
    ("twin", "rule"),
    [
        (Refunds, "a crash gave the price back"),
        (FreeRetries, "a retry was drawn again"),
        (ChargesLater, "the price was not paid when the graph was read"),
    ],
)
def test_every_broken_ledger_is_caught(twin: type[MemoryLedger], rule: str) -> None:
    assert rule in replay(twin)


def test_a_ledger_without_a_limit_is_caught() -> None:
    assert "the limit was passed" in replay(lambda _: MemoryLedger(Limit.of("1000")))
