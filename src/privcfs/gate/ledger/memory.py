"""An account that ends with the process: for tests, simulations and an auditor's many draws.

Zone: gate
Claim: it charges, refuses and answers as the durable ledgers do, by the same rulebook. It is not durable, so no URL
    opens it, and a real vault must not use it.
Why: limits and conflicts are decided by rules.py; the contract suite runs over it beside SQLite and PostgreSQL.
Check: tests/contracts/test_ledgers.py::test_a_charge_is_paid_once_and_answered_once
"""

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from copy import copy
from fractions import Fraction
from typing import Any

from privcfs.errors import InputError, PrivcfsError
from privcfs.gate.accounting import Balance, Limit
from privcfs.gate.ledger.heads import HeadFile
from privcfs.gate.ledger.ledger import Ledger, Request
from privcfs.gate.ledger.rules import Spent, check_limits, check_new_limit, check_same_price, check_same_question
from privcfs.public.head import Head

PLENTY = Limit.of("1000000")


class MemoryLedger(Ledger):
    """Charges first, never refunds, answers one request id once. Broken twins derive from it."""

    def __init__(self, limit: Limit = PLENTY) -> None:
        self._id, self._limit = secrets.token_hex(16), limit
        self._paid: dict[tuple[str, str], Request] = {}
        self._answers: dict[tuple[str, str], str] = {}
        self._sums: dict[str, Fraction] = {}

    @property
    def graph_id(self) -> str:
        return self._id

    @property
    def limit(self) -> Limit:
        return self._limit

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        before = dict(self._paid), dict(self._sums)
        try:
            return [self._charge(request) for request in requests]
        except PrivcfsError:
            self._paid, self._sums = before
            raise

    def look_up(self, requests: Sequence[Request]) -> list[str | None]:
        """What charging would say, with everything put back afterwards."""
        before = {name: copy(value) for name, value in vars(self).items()}
        try:
            return self.charge_all(requests)
        finally:
            vars(self).update(before)

    def alone(self, requests: Sequence[Request]) -> "MemoryLedger":  # noqa: ARG002
        return self

    def give_back(self) -> None:
        """One thread at a time uses an account in memory."""

    def rows(self, after: int = 0) -> Iterator[dict[str, Any]]:
        yield from [{"request": repr(request)} for request in self._paid.values()][after:]

    def _charge(self, request: Request) -> str | None:
        key = request.analyst, request.request_id
        if key not in self._paid:
            spent = Spent(self.spent(), self.spent(request.analyst))
            check_limits(request, self._limit, spent, self._deltas)
            self._paid[key] = request
            self._sums[request.analyst] = self._sums.get(request.analyst, Fraction(0)) + request.price
            return None
        check_same_question(request, self._paid[key].terms)
        if key not in self._answers:
            check_same_price(request, self._paid[key].price)
        return self._answers.get(key)

    def _deltas(self) -> Fraction:
        return sum((one.delta for one in self._paid.values()), Fraction(0))

    def finish_all(self, answers: Sequence[tuple[Request, str]]) -> list[str]:
        return [self._answers.setdefault((one.analyst, one.request_id), release) for one, release in answers]

    def balance(self, analyst: str | None = None) -> Balance:
        mine = [key for key in self._paid if analyst in (None, key[0])]
        limit = self._limit.total if analyst is None else self._limit.per_analyst
        return Balance(limit, self.spent(analyst), self.held(analyst), len(mine), self._limit.contract.unit)

    def spent(self, analyst: str | None = None) -> Fraction:
        """What counts against a limit."""
        return sum(self._sums.values(), Fraction(0)) if analyst is None else self._sums.get(analyst, Fraction(0))

    def held(self, analyst: str | None = None) -> Fraction:
        """The part of it that has no answer yet."""
        waiting = [
            request.price
            for key, request in self._paid.items()
            if key not in self._answers and analyst in (None, key[0])
        ]
        return sum(waiting, Fraction(0))

    def change_limit(self, limit: Limit) -> None:
        check_new_limit(limit, self._limit, self.spent())
        self._limit = limit

    def paid(self, analyst: str, request_ids: Sequence[str]) -> set[str]:
        return {name for name in request_ids if (analyst, name) in self._paid}

    def released(self, analyst: str, request_id: str) -> str | None:
        return self._answers.get((analyst, request_id))

    def adjacencies(self) -> set[str]:
        return {request.adjacency for request in self._paid.values()}

    def head(self) -> Head:
        rows = repr((self._limit, list(self._paid.items()), list(self._answers.items())))
        return Head(self._id, 1 + len(self._paid) + len(self._answers), hashlib.sha256(rows.encode()).hexdigest())

    def keep_head(self, file: HeadFile | None = None, *, sync: bool = True) -> Head:  # noqa: ARG002
        return self.head()

    def verify(self, known: Head | None = None) -> None:
        if known is not None and known != self.head():
            raise InputError("head is not that of this ledger, which lives in memory and has no past.")
