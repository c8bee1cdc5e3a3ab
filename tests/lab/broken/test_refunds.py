"""Ledgers that refund, let retries go free or charge after reading: each is caught by replaying a day of requests."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from privcfs import Limit
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.ledger.memory import MemoryLedger
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs_lab.audit.conduct import replay
from privcfs_lab.audit.twins import ChargesLater, ForgetsUnfinished, FreeRetries, Refunds


class Unlimited(MemoryLedger):
    """Knows no limit."""

    def __init__(self, _: Limit) -> None:
        super().__init__(Limit.of("1000"))


class Careless(MemoryLedger):
    """Takes an id for whatever is asked."""

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        return super().charge_all([self._paid.get((one.analyst, one.request_id), one) for one in requests])


def test_the_shipped_ledger_passes(tmp_path: Path) -> None:
    assert replay(lambda limit: SqliteLedger(tmp_path / "budget.db", limit)) == []


def test_the_auditors_own_ledger_passes() -> None:
    assert replay(MemoryLedger) == []


@pytest.mark.parametrize(
    ("twin", "rule"),
    [
        (Refunds, "a crash gives nothing back"),
        (ForgetsUnfinished, "an unfinished price counts against the analyst's limit"),
        (FreeRetries, "a retry is answered from the books"),
        (ChargesLater, "the price is paid when the graph is read"),
        (Unlimited, "an unfinished price counts against the analyst's limit"),
        (Careless, "one id is for one question"),
    ],
)
def test_every_broken_ledger_is_caught(twin: type[MemoryLedger], rule: str) -> None:
    assert rule in replay(twin)
