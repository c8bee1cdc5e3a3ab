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
from privcfs.gate.accounting import NONE, Balance, Limit
from privcfs.gate.ledger.accounts import Accounts, Sums, charged
from privcfs.gate.ledger.heads import HeadFile
from privcfs.gate.ledger.ledger import ENTRIES, WIDEST, Charge, Ledger, Request, Standing
from privcfs.gate.ledger.records import HELD, KEPT_APART, day_and_terms_of, held_body
from privcfs.gate.ledger.rules import (
    Spent,
    check_limits,
    check_new_limit,
    check_same_price,
    check_same_question,
    standing_of,
)
from privcfs.public.epsilon import NANO
from privcfs.public.head import Head

Name = tuple[str, str]
PLENTY = Limit.of("1000000")


class MemoryLedger(Ledger):
    """Charges first, never refunds, answers one request id once. Broken twins derive from it."""

    def __init__(self, limit: Limit = PLENTY) -> None:
        self._id, self._limit = secrets.token_hex(16), limit
        self._paid: dict[Name, Request] = {}
        self._bodies: dict[Name, str] = {}
        self._answers: dict[Name, str] = {}
        self._apart: dict[Name, str] = {}
        self._sums: dict[str, Fraction] = {}
        self._nodes: dict[int, Sums] = {}
        self._accounts = Accounts()
        self._at_nodes: dict[Name, tuple[list[int], str]] = {}

    @property
    def graph_id(self) -> str:
        return self._id

    @property
    def limit(self) -> Limit:
        return self._limit

    def charge_all(self, requests: Sequence[Request]) -> list[str | None]:
        before = {name: copy(value) for name, value in vars(self).items()}
        try:
            return [self._charge(request) for request in requests]
        except PrivcfsError:
            vars(self).update(before)
            raise

    def look_up(self, requests: Sequence[Request]) -> list[str | None]:
        """What charging would say, with everything put back afterwards."""
        before = {name: copy(value) for name, value in vars(self).items()}
        try:
            return self.charge_all(requests)
        finally:
            vars(self).update(before)

    def claim(self, requests: Sequence[Request]) -> "MemoryLedger":  # noqa: ARG002
        return self

    def give_back(self) -> None:
        """One thread at a time uses an account in memory."""

    def rows(self, after: int = 0) -> Iterator[dict[str, Any]]:
        for (analyst, name), request in list(self._paid.items())[after:]:
            cost, body = int(request.counted * NANO), self._bodies[analyst, name]
            columns = {"kind": HELD, "analyst": analyst, "request_id": name, "cost": cost, "body": body}
            yield {**columns, "request": repr(request)}

    def _charge(self, request: Request) -> str | None:
        key = request.analyst, request.request_id
        if key not in self._paid:
            self._check_limits(request)
            self._paid[key] = request
            self._bodies[key] = held_body(request, self._limit, self._accounts.month())
            self._sums[request.analyst] = self._sums.get(request.analyst, NONE) + request.counted
            self._pay_at_nodes(request)
            return None
        check_same_question(request, self._paid[key].terms)
        if key not in self._answers:
            check_same_price(request, self._paid[key].counted)
        return self.released(*key)

    def _check_limits(self, request: Request) -> None:
        """Applies the rulebook to the sums."""
        period = self._limit.period_of(self._accounts.month())
        at_nodes = self.spent_at(request.reads)
        spent = Spent(self.spent(), self.spent(request.analyst), at_nodes, period)
        check_limits(request, self._limit, spent, self._deltas)

    def _pay_at_nodes(self, request: Request) -> None:
        nodes, month, cost = request.paid_at(self._limit), self._accounts.month(), int(request.counted * NANO)
        if nodes:
            rows = charged(self._accounts, self._nodes, nodes, cost, month, request.in_full)
            self._nodes |= {row.node: row.sums for row in rows}
            self._accounts = rows[-1].accounts
            self._at_nodes[request.analyst, request.request_id] = nodes, month

    def _deltas(self) -> Fraction:
        return sum((one.delta for one in self._paid.values()), Fraction(0))

    def finish_all(self, answers: Sequence[tuple[Request, str]]) -> list[str]:
        return [self._finish(request, (request.analyst, request.request_id), text) for request, text in answers]

    def _finish(self, request: Request, key: Name, text: str) -> str:
        if key not in self._answers:
            self._answers[key] = KEPT_APART if request.apart else text
            self._apart |= {key: text} if request.apart else {}
        return self.released(*key) or text

    def balance(self, analyst: str | None = None) -> Balance:
        mine = [key for key in self._paid if key[0] == analyst or (analyst is None and self._in_full(key))]
        limit = self._limit.total if analyst is None else self._limit.per_analyst
        return Balance(limit, self.spent(analyst), self.held(analyst), len(mine), self._limit.contract.unit)

    def node_balance(self, node: int) -> Balance:
        since = self._limit.period_of(self._accounts.month())
        there = {key for key, (nodes, month) in self._at_nodes.items() if node in nodes and month >= since}
        prices = {key: self._paid[key].counted for key in there}
        held = sum((price for key, price in prices.items() if key not in self._answers), NONE)
        limit = self._limit
        return Balance(limit.per_node, sum(prices.values(), NONE), held, len(there), limit.contract.unit)

    def spent_at(self, nodes: Sequence[int]) -> dict[int, Fraction]:
        period, month = self._limit.period, self._accounts.month()
        return {node: Fraction(self._nodes.get(node, Sums()).within(period, month), NANO) for node in nodes}

    def standing(self) -> Standing:
        narrow = [
            int(one.counted * NANO)
            for one in self._paid.values()
            if one.analyst == ENTRIES and not one.adjacency.startswith(WIDEST)
        ]
        total = int(sum(self._sums.values(), NONE) * NANO)
        return standing_of(total, self._accounts, sum(narrow), self._limit)

    def spent(self, analyst: str | None = None) -> Fraction:
        """What counts against the total limit, or against an analyst's."""
        if analyst is not None:
            return self._sums.get(analyst, NONE)
        return sum(self._sums.values(), NONE) - Fraction(self._accounts.paid, NANO)

    def held(self, analyst: str | None = None) -> Fraction:
        """The part of it that has no answer yet."""
        waiting = [
            request.counted
            for key, request in self._paid.items()
            if key not in self._answers and (key[0] == analyst or (analyst is None and self._in_full(key)))
        ]
        return sum(waiting, NONE)

    def _in_full(self, key: Name) -> bool:
        """Whether a paid request counts against the total limit."""
        return key not in self._at_nodes or self._paid[key].in_full

    def change_limit(self, limit: Limit) -> None:
        check_new_limit(limit, self._limit, self.spent(), self._accounts)
        self._limit = limit

    def paid(self, analyst: str, request_ids: Sequence[str]) -> set[str]:
        return {name for name in request_ids if (analyst, name) in self._paid}

    def charges(self, analyst: str, most: int, before: int | None = None) -> list[Charge]:
        found = [
            Charge(position, name, request.counted, *day_and_terms_of(self._bodies[who, name]))
            for position, ((who, name), request) in enumerate(self._paid.items(), 1)
            if who == analyst and (before is None or position < before)
        ]
        return found[::-1][:most]

    def price_of(self, analyst: str, request_id: str) -> Fraction | None:
        paid = self._paid.get((analyst, request_id))
        return None if paid is None else paid.counted

    def released(self, analyst: str, request_id: str) -> str | None:
        key = analyst, request_id
        return self._apart.get(key, self._answers.get(key))

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
