"""A ledger that refunds, and a vault that charges after it has read: both must be caught by watching one release."""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from privcfs import Limit, Vault
from privcfs.gate import vault as vault_module
from privcfs.gate.accounting import Balance
from privcfs.gate.ledger.ledger import Head, Ledger, Request
from privcfs.gate.ledger.sqlite import SqliteLedger
from tests.worlds import random_world


class Delegating(Ledger):
    """An honest ledger to break in one place."""

    def __init__(self, path: Path) -> None:
        self.honest = SqliteLedger(path, Limit.of("3"))

    @property
    def graph_id(self) -> str:
        return self.honest.graph_id

    @property
    def limit(self) -> Limit:
        return self.honest.limit

    def charge(self, request: Request) -> str | None:
        return self.honest.charge(request)

    def finish(self, request: Request, release: str) -> str:
        return self.honest.finish(request, release)

    def balance(self, analyst: str | None = None) -> Balance:
        return self.honest.balance(analyst)

    def change_limit(self, limit: Limit) -> None:
        self.honest.change_limit(limit)

    def released(self, analyst: str, request_id: str) -> str | None:
        return self.honest.released(analyst, request_id)

    def head(self) -> Head:
        return self.honest.head()

    def verify(self, known: Head | None = None) -> None:
        self.honest.verify(known)


class ChargesLater(Delegating):
    """Reads first, pays afterwards."""

    def charge(self, request: Request) -> str | None:  # noqa: ARG002
        return None

    def finish(self, request: Request, release: str) -> str:
        self.honest.charge(request)
        return self.honest.finish(request, release)


class Refunds(Delegating):
    """Counts only requests that were answered."""

    def balance(self, analyst: str | None = None) -> Balance:
        honest = self.honest.balance(analyst)
        return Balance(honest.limit, honest.spent - honest.held, Fraction(0), honest.releases)


def paid_before_reading(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the price stood in the books when the graph was read, and stayed there after a crash."""
    world = random_world(0)
    seen: list[Fraction] = []

    def dies(*_: Any) -> None:
        seen.append(ledger.balance().spent)
        raise KeyboardInterrupt

    monkeypatch.setattr(vault_module, "evaluate", lambda *_: None)
    monkeypatch.setattr(vault_module, "_rehearse", lambda *_: None)
    vault = Vault(world.graph, world.context, ledger=ledger)
    monkeypatch.setattr(vault_module, "evaluate", dies)
    with pytest.raises(KeyboardInterrupt):
        vault.release(0, "1")
    return seen == [1] and ledger.balance().spent == 1


@pytest.mark.parametrize(("kind", "good"), [(Delegating, True), (ChargesLater, False), (Refunds, False)])
def test_only_a_ledger_that_charges_first_and_never_refunds_passes(
    kind: Callable[[Path], Ledger], good: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert paid_before_reading(kind(tmp_path / "budget.db"), monkeypatch) is good
