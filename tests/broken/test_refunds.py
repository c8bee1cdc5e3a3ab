"""Ledgers that refund, let retries go free or charge after reading: each is caught by replaying a day of requests."""

from pathlib import Path

import pytest

from privcfs import Limit
from privcfs.gate.ledger.ledger import Request
from privcfs.gate.ledger.sqlite import SqliteLedger
from privcfs.lab.audit.conduct import replay
from privcfs.lab.audit.memory import MemoryLedger
from privcfs.lab.audit.twins import ChargesLater, ForgetsUnfinished, FreeRetries, Refunds


class Unlimited(MemoryLedger):
    """Knows no limit."""

    def __init__(self, _: Limit) -> None:
        super().__init__(Limit.of("1000"))


class Careless(MemoryLedger):
    """Takes an id for whatever is asked."""

    def charge(self, request: Request) -> str | None:
        known = self._paid.get((request.analyst, request.request_id))
        return super().charge(known or request)


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
