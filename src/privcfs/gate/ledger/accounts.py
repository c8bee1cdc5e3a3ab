"""Accounts of nodes: running sums of what was paid at each node, in a month, in a year and in all.

Zone: gate
Claim: the sums of a row are those of all charges up to it, each question counted once in `paid` and once at each node
    that it reads; a charge counts in the month of its UTC date, or in a later month that the ledger has seen already.
Why: pure functions of the former sums, the cost and the month; every ledger writes what they return in the transaction
    of the charge, and a replay computes it again. Months never go back, so a clock that is wrong for a while cannot
    renew an account twice, and the largest sums of a month and of a year can be kept as running maxima.
Check: tests/contracts/test_node_accounts.py::test_sums_at_nodes_equal_an_independent_replay_of_the_rows
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

from privcfs.gate.accounting import Period


def today() -> date:
    """The present day in UTC, which decides in which period a charge counts."""
    return datetime.now(UTC).date()


class Sums(NamedTuple):
    """Sums at one node up to a charge, in billionths: in the charge's month, in its year, and over all time."""

    month: str = ""
    in_month: int = 0
    in_year: int = 0
    in_all: int = 0

    def within(self, period: Period, month: str) -> int:
        """What counts in the period that `month` lies in, which is not before the month of these sums."""
        if period == "month":
            return self.in_month if self.month == month else 0
        if period == "year":
            return self.in_year if self.month[:4] == month[:4] else 0
        return self.in_all

    def plus(self, cost: int, month: str) -> "Sums":
        """The sums after one more charge in this month."""
        if self.month == month:  # the ordinary case of a replay
            return Sums(month, self.in_month + cost, self.in_year + cost, self.in_all + cost)
        return Sums(month, cost, self.within("year", month) + cost, self.in_all + cost)

    def at_least(self, other: "Sums") -> "Sums":
        """The larger of both, sum by sum, where `other` is not of an earlier month."""
        month, in_month, in_year, in_all = other
        if self.month == month:
            in_month = max(self.in_month, in_month)
        return Sums(month, in_month, max(self.within("year", month), in_year), max(self.in_all, in_all))


NOTHING = Sums()


class Accounts(NamedTuple):
    """All accounts together: what was paid at nodes alone, and the largest sums at one node."""

    paid: int = 0
    dearest: Sums = Sums()

    def month(self) -> str:
        """The month in which a charge counts now."""
        return max(today().isoformat()[:7], self.dearest.month)


class Row(NamedTuple):
    """What one charge adds to the account of one node: its running sums, and those of all accounts together."""

    node: int
    alone: int  # what this row adds to `paid`: the cost, once for each question that is paid at nodes alone
    sums: Sums
    accounts: Accounts

    def flat(self) -> tuple[int | str, ...]:
        """The columns of a table, without the position."""
        return (self.node, self.alone, *self.sums, self.accounts.paid, *self.accounts.dearest[1:])


def charged(
    accounts: Accounts, at_nodes: Mapping[int, Sums], nodes: Sequence[int], cost: int, month: str, in_full: bool
) -> list[Row]:
    """The rows of one charge that is paid at all of these nodes; `at_nodes` holds the former sums of each, if any."""
    sums = [at_nodes.get(node, NOTHING).plus(cost, month) for node in nodes]
    dearest = accounts.dearest
    for one in sums:
        dearest = dearest.at_least(one)
    alone = 0 if in_full else cost
    after = Accounts(accounts.paid + alone, dearest)
    return [Row(node, 0 if place else alone, sums[place], after) for place, node in enumerate(nodes)]
