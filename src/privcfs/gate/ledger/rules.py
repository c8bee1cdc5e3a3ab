"""The rulebook of charging, the same for every ledger: which request may be paid, and which id may be used again.

Zone: gate
Claim: a request is accepted only if it fits the total limit, the analyst's limit, the cap of whoever asks and the
    contract's delta; one that is paid at nodes fits the account of each of them instead of the total, or besides it
    where it counts in full; an id that was paid for is accepted only for the same question, never at a higher price.
Why: pure functions of the request, the limits in force and exact sums; every ledger calls them before it appends a row.
Check: tests/contracts/test_ledgers.py::test_a_cap_is_the_least_of_all_limits_in_every_ledger
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NamedTuple

from privcfs.errors import RequestConflict, SettingsError
from privcfs.gate.accounting import NONE, Limit
from privcfs.gate.ledger.accounts import Accounts
from privcfs.gate.ledger.ledger import Request, Standing
from privcfs.public.epsilon import NANO, show


class Spent(NamedTuple):
    """What counts against the limits: against the total, by the analyst who asks, and at nodes in this period."""

    total: Fraction
    by_analyst: Fraction
    at_nodes: Mapping[int, Fraction]
    period: str


def check_limits(request: Request, limit: Limit, spent: Spent, deltas: Callable[[], Fraction]) -> None:
    """Refuses a new request that passes a limit. `deltas` sums the deltas of all rows, where that is needed."""
    own = request.within(limit)
    total = spent.total if request.counts_in_full(limit) else None
    at_nodes = {node: spent.at_nodes.get(node, NONE) for node in request.paid_at(limit)}
    own.check(request.counted, total, spent.by_analyst, at_nodes, spent.period)
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
    if request.counted > paid:
        raise RequestConflict(
            f"request id {request.request_id!r} was paid when it cost less; choose a new id, the old is spent."
        )


def check_new_limit(limit: Limit, before: Limit, spent: Fraction, accounts: Accounts) -> None:
    """Refuses limits in another contract's unit, limits below what is spent, and an end of accounts that were used.

    `spent` is what counts against the total.
    """
    if limit.contract != before.contract:
        raise SettingsError("a ledger keeps its contract: what was counted in one unit cannot go on in another.")
    if limit.total < spent:
        raise SettingsError(
            f"limit {show(limit.total)} is below the {show(spent)} that is spent already, so it would promise what no "
            "longer holds; choose a higher one."
        )
    if limit.per_node is None:
        if accounts.paid:
            raise SettingsError(
                f"{show(Fraction(accounts.paid, NANO))} was paid at nodes and does not count against the total limit, "
                "which would promise what does not hold without accounts of nodes; keep a limit per node."
            )
        return
    month = accounts.month()
    dearest, period = Fraction(accounts.dearest.within(limit.period, month), NANO), limit.period_of(month)
    if limit.per_node < dearest:
        raise SettingsError(
            f"limit per node {show(limit.per_node)} is below the {show(dearest)} that is spent at one node already"
            f"{f' in {period}' if period else ''}, so it would promise what no longer holds; choose a higher one."
        )


def standing_of(total: int, accounts: Accounts, edge_level: int, limit: Limit) -> Standing:
    """The sums of a ledger, from billionths, in the period that accounts are in now."""
    month, dearest = accounts.month(), accounts.dearest
    return Standing(
        total=Fraction(total, NANO),
        at_nodes=Fraction(accounts.paid, NANO),
        edge_level=Fraction(edge_level, NANO),
        dearest=Fraction(dearest.in_all, NANO),
        dearest_in_period=Fraction(dearest.within(limit.period, month), NANO),
        period=limit.period_of(month),
        limit=limit,
    )
