"""An account that ends with the process: for an auditor's many draws, never for a real vault."""

import hashlib
import secrets
from fractions import Fraction

from privcfs.errors import InputError, RequestConflict
from privcfs.gate.accounting import Balance, Limit
from privcfs.gate.ledger.ledger import Head, Ledger, Request

PLENTY = Limit.of("1000000")


class MemoryLedger(Ledger):
    """Charges first, never refunds, answers one request id once. Broken twins derive from it."""

    def __init__(self, limit: Limit = PLENTY) -> None:
        self._id, self._limit = secrets.token_hex(16), limit
        self._paid: dict[tuple[str, str], Request] = {}
        self._answers: dict[tuple[str, str], str] = {}
        self._spent: dict[str, Fraction] = {}

    @property
    def graph_id(self) -> str:
        return self._id

    @property
    def limit(self) -> Limit:
        return self._limit

    def charge(self, request: Request) -> str | None:
        key = request.analyst, request.request_id
        if key not in self._paid:
            mine = self._spent.get(request.analyst, Fraction(0))
            self._limit.check(request.epsilon, sum(self._spent.values(), Fraction(0)), mine)
            self._paid[key] = request
            self._spent[request.analyst] = mine + request.epsilon
        elif self._paid[key] != request:
            raise RequestConflict(f"request_id {request.request_id!r} was used for something else; choose another.")
        return self._answers.get(key)

    def finish(self, request: Request, release: str) -> str:
        return self._answers.setdefault((request.analyst, request.request_id), release)

    def balance(self, analyst: str | None = None) -> Balance:
        mine = {key: request for key, request in self._paid.items() if analyst in (None, key[0])}
        spent = sum((request.epsilon for request in mine.values()), Fraction(0))
        held = sum((request.epsilon for key, request in mine.items() if key not in self._answers), Fraction(0))
        limit = self._limit.total if analyst is None else self._limit.per_analyst
        return Balance(limit, spent, held, sum(key in self._answers for key in mine))

    def change_limit(self, limit: Limit) -> None:
        self._limit = limit

    def released(self, analyst: str, request_id: str) -> str | None:
        return self._answers.get((analyst, request_id))

    def head(self) -> Head:
        rows = repr((self._limit, list(self._paid.items()), list(self._answers.items())))
        return Head(self._id, 1 + len(self._paid) + len(self._answers), hashlib.sha256(rows.encode()).hexdigest())

    def verify(self, known: Head | None = None) -> None:
        if known is not None and known != self.head():
            raise InputError("head is not that of this ledger, which lives in memory and has no past.")
