"""What an owner should know at a glance: how long the budget lasts, and what needs attention."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from threading import Lock
from typing import Any, final

from privcfs.gate.accounting import Balance
from privcfs.gate.contracts import Pure
from privcfs.gate.failures import Failures
from privcfs.gate.ledger.ledger import Ledger
from privcfs.public.epsilon import NANO, show
from privcfs.service.keys import Key, Keys

SPANS = (7, 30)  # days over which a pace is measured
NEARLY = Fraction(4, 5)  # of a limit
SOON = 14  # days
MOST_NAMED = 20  # analysts and keys that alerts name
FARTHEST = 36_500  # days; a budget that lasts longer has no day


@final
class Spending:
    """What was spent against the total limit on each day, by the ledger's rows; reads only rows that are new."""

    def __init__(self) -> None:
        self._lock, self._position = Lock(), 0
        self._days: Counter[str] = Counter()

    def follow(self, rows: Callable[[int], Iterable[Mapping[str, Any]]]) -> dict[date, Fraction]:
        """Reads the rows after the last position, and returns the sum of each day."""
        with self._lock:
            for row in rows(self._position):
                self._position = int(row["position"])
                if row["kind"] == "HELD":
                    self._add(int(row["cost"]), json.loads(row["body"]))
            return {date.fromisoformat(day): Fraction(sum_, NANO) for day, sum_ in self._days.items()}

    def _add(self, cost: int, body: Mapping[str, Any]) -> None:
        if not body.get("nodes") or body["terms"].get("in_full"):
            self._days[body["day"]] += cost


def forecast(spent: Mapping[date, Fraction], left: Fraction, today: date) -> dict[str, Any]:
    """When the budget is used up if it is spent as in the last days.

    Args:
        spent: What was spent on each day.
        left: What is left.
        today: The day that the forecast is made on.

    Returns:
        For each span of days what was spent, how much that is a day, and the day on which nothing is left; None where
        nothing was spent. Days before the first one on which something was spent do not slow the pace down.
    """
    age = (today - min(spent, default=today)).days + 1
    found: dict[str, Any] = {"left": show(left)}
    for span in SPANS:
        days, since = min(span, max(age, 1)), today - timedelta(days=span - 1)
        amount = sum((one for day, one in spent.items() if day >= since), Fraction(0))
        used_up = None
        if amount:
            lasting = left * days // amount
            used_up = (today + timedelta(days=int(lasting))).isoformat() if lasting < FARTHEST else None
        pace = f"{float(amount / days):.6g}"
        found[f"last_{span}_days"] = {"spent": show(amount), "per_day": pace, "used_up": used_up}
    return found


def overview(ledger: Ledger, keys: Keys, failures: Failures, spending: Spending, most: int) -> dict[str, Any]:
    """The forecast and the alerts of a vault."""
    balance, today = ledger.balance(), datetime.now(UTC).date()
    foreseen = forecast(spending.follow(ledger.rows), balance.left or Fraction(0), today)
    accounts = {name: ledger.account_of(name, cap) for name, cap in keys.caps(most).items()}
    found = [
        *_about_limits(balance, accounts),
        *_about_nodes(ledger),
        *_about_forecast(foreseen, today),
        *_about_failures(failures),
        *_about_keys(keys.ending(SOON, MOST_NAMED)),
    ]
    return {"unit": balance.unit, "forecast": foreseen, "alerts": found}


def _alert(kind: str, in_words: str) -> dict[str, str]:
    return {"kind": kind, "in_words": in_words}


def _about_limits(balance: Balance, accounts: Mapping[str, Balance]) -> list[dict[str, str]]:
    found = [_nearly("All analysts together", balance)]
    found += [_nearly(f"Analyst {name}", one) for name, one in accounts.items()]
    named = [one for one in found if one is not None][:MOST_NAMED]
    if balance.held:
        words = f"{balance.unit} {show(balance.held)} is paid for answers that nobody fetched; asking again is free."
        named.append(_alert("held", words))
    return named


def _nearly(who: str, account: Balance) -> dict[str, str] | None:
    if account.limit is None or account.spent < NEARLY * account.limit:
        return None
    share = f"{show(account.spent)} of {show(account.limit)}"
    return _alert("budget", f"{who} spent {account.unit} {share}: {int(100 * account.spent / account.limit)} %.")


def _about_nodes(ledger: Ledger) -> list[dict[str, str]]:
    limit = ledger.limit
    if limit.per_node is None or not isinstance(limit.contract, Pure):
        return []
    dearest = ledger.losses().dearest_node_in_period
    if dearest < NEARLY * limit.per_node:
        return []
    return [_alert("nodes", f"At one node at least {show(dearest)} of its limit {show(limit.per_node)} is spent.")]


def _about_forecast(foreseen: Mapping[str, Any], today: date) -> list[dict[str, str]]:
    day = foreseen[f"last_{SPANS[0]}_days"]["used_up"]
    if day is None or date.fromisoformat(day) > today + timedelta(days=SOON):
        return []
    return [_alert("forecast", f"At the pace of the last {SPANS[0]} days nothing is left of the budget on {day}.")]


def _about_failures(failures: Failures) -> list[dict[str, str]]:
    text = str(failures)
    return [_alert("failures", text)] if text else []


def _about_keys(ending: Iterable[Key]) -> list[dict[str, str]]:
    return [_alert("key", f"Key {one.name} of {one.analyst} ends on {(one.ends or '')[:10]}.") for one in ending]
