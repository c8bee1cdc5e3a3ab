"""The rulebook of charging, the same for every ledger: which request may be paid, and which id may be used again.

Zone: gate
Claim: a request is accepted only if it fits the total limit, the analyst's limit, the cap of whoever asks and the
    contract's delta; an id that was paid for is accepted only for the same question, and never at a higher price.
Why: pure functions of the request, the limits in force and exact sums; every ledger calls them before it appends a row.
Check: tests/contracts/test_ledgers.py::test_a_cap_is_the_least_of_all_limits_in_every_ledger
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from privcfs.errors import RequestConflict, SettingsError
from privcfs.gate.accounting import Limit
from privcfs.gate.ledger.ledger import Request
from privcfs.public.epsilon import show


class Spent(NamedTuple):
    """What counts against the limits so far: in all, and by the analyst who asks."""

    total: Fraction = Fraction(0)
    by_analyst: Fraction = Fraction(0)


NOTHING = Spent()


def check_limits(request: Request, limit: Limit, spent: Spent, deltas: Callable[[], Fraction]) -> None:
    """Refuses a new request that passes a limit. `deltas` sums the deltas of all rows, where that is needed."""
    own = request.within(limit)
    own.check(request.price, spent.total, spent.by_analyst)
    if request.delta:
        own.check_delta(request.delta, deltas())


def check_same_question(request: Request, terms: dict[str, Any]) -> None:
    """Refuses an id that was paid for with other terms; version 0.1 wrote another digest of the same settings."""
    if terms not in (request.terms, {**request.terms, "context_digest": request.former_digest}):
        raise RequestConflict(
            f"request id {request.request_id!r} was used before with other parameters; choose a new id."
        )


def check_same_price(request: Request, paid: Fraction) -> None:
    """Refuses to draw an unfinished request that would cost more now than was paid for it."""
    if request.price > paid:
        raise RequestConflict(
            f"request id {request.request_id!r} was paid when it cost less; choose a new id, the old is spent."
        )


def check_new_limit(limit: Limit, before: Limit, spent: Fraction) -> None:
    """Refuses limits in another contract's unit, and limits below what is spent."""
    if limit.contract != before.contract:
        raise SettingsError("a ledger keeps its contract: what was counted in one unit cannot go on in another.")
    if limit.total < spent:
        raise SettingsError(
            f"limit {show(limit.total)} is below the {show(spent)} that is spent already, so it would promise what no "
            "longer holds; choose a higher one."
        )
