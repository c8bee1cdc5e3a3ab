"""Spent, held and answered in all and by analyst, counted once and then followed row by row.

Zone: gate
Claim: after `follow` with all rows up to a position, `of` says what these rows say, and no row is counted twice.
Why: rows are appended and never changed, and a ledger refuses a chain that lacks a row that it has read; so only rows
    after the last position have to be read again. Nothing is decided by it: limits are checked against the ledger's
    own running sums.
Check: tests/contracts/test_node_accounts.py::test_balances_follow_the_rows_that_others_write
"""

from collections.abc import Iterable
from typing import final

Row = tuple[int, str, str, str, int, int | None]  # position, kind, analyst, request id, cost, paid at nodes alone
TOTAL = None  # in an analyst's place: what counts against the total limit


@final
class Tally:
    """The counts of one chain up to a position, in billionths."""

    __slots__ = ("_counts", "_unfinished", "position")

    def __init__(self) -> None:
        self.position = 0
        self._counts: dict[str | None, tuple[int, int, int]] = {}
        self._unfinished: dict[tuple[str, str], tuple[int, bool]] = {}

    def follow(self, rows: Iterable[Row]) -> None:
        """Counts the rows after the last position; `rows` are charges and answers in their order, without a gap."""
        for position, kind, analyst, request_id, cost, alone in rows:
            if position <= self.position:
                continue
            self.position = position
            if kind == "HELD":
                self._unfinished[analyst, request_id] = cost, bool(alone)
                self._add(analyst, alone, cost, 1, cost)
            else:
                held, alone = self._unfinished.pop((analyst, request_id))
                self._add(analyst, alone, 0, 0, -held)

    def of(self, analyst: str | None) -> tuple[int, int, int]:
        """What is spent, the number of charges, and what has no answer yet: of one analyst, or against the total."""
        return self._counts.get(analyst, (0, 0, 0))

    def _add(self, analyst: str, alone: int | bool | None, spent: int, charges: int, held: int) -> None:
        for account in (analyst,) if alone else (analyst, TOTAL):
            before = self._counts.get(account, (0, 0, 0))
            self._counts[account] = before[0] + spent, before[1] + charges, before[2] + held
