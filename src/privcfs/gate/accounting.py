"""Exact sums against exact limits: costs add up in the unit of one contract, and a limit is never passed.

Zone: gate
Claim: the sum of all costs never exceeds the limit; under a pure contract, k releases at prices e1..ek are
    (e1 + ... + ek)-DP together.
Why: what a contract counts composes by addition (contracts.py), prices chosen adaptively included; `check` refuses
    before anything is charged, and its refusal depends on public costs alone.
Check: tests/gate/test_accounting.py::test_ten_charges_of_a_tenth_are_exactly_one
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import final

from privcfs.errors import BadEpsilon, BudgetExhausted, SettingsError
from privcfs.gate.contracts import Contract, Pure
from privcfs.public.epsilon import MOST, NANO, Price, parse_decimal, show


@final
@dataclass(frozen=True, slots=True)
class Limit:
    """The most that all analysts together, and optionally each one alone, may spend, in the unit of a contract."""

    total: Fraction
    per_analyst: Fraction | None = None
    contract: Contract = Pure()

    @classmethod
    def of(cls, total: Price, per_analyst: Price | None = None, contract: Contract | None = None) -> "Limit":
        """From decimals such as "10"; of epsilon, unless a contract counts otherwise."""
        try:
            whole = parse_decimal(total, "limit")
            each = None if per_analyst is None else parse_decimal(per_analyst, "limit per analyst")
        except BadEpsilon as error:
            raise SettingsError(str(error)) from None
        return cls(whole, each, contract or Pure())

    def __post_init__(self) -> None:
        for value in (self.total, self.per_analyst):
            if value is not None and not (
                isinstance(value, Fraction) and 0 < value <= MOST and not NANO % value.denominator
            ):
                raise SettingsError("limits must be decimals above 0 with at most nine places; use Limit.of('10').")
        if self.per_analyst is not None and self.per_analyst > self.total:
            raise SettingsError("limit per analyst must be at most the total limit.")

    def capped(self, cap: Fraction | None) -> "Limit":
        """With `cap` as the most that one analyst may spend, where that is less than what everyone may."""
        if cap is None:
            return self
        return replace(self, per_analyst=min(cap, self.per_analyst or self.total, self.total))

    def check_delta(self, delta: Fraction, spent: Fraction) -> None:
        """Refuses a delta that passes what the contract allows in all."""
        if spent + delta > self.contract.allowance:
            raise BudgetExhausted(
                f"delta {float(delta):g} does not fit: the contract allows {float(self.contract.allowance):g} in all, "
                f"{float(spent):g} is used. Nothing was charged."
            )

    def check(self, price: Fraction, spent: Fraction, spent_by_analyst: Fraction) -> None:
        """Refuses a price that passes the total limit or, after that, the analyst's own."""
        for limit, used, whose in (
            (self.total, spent, "total"),
            (self.per_analyst, spent_by_analyst, "analyst's"),
        ):
            if limit is not None and used + price > limit:
                raise BudgetExhausted(
                    f"{self.contract.unit} {show(price)} does not fit: {show(used)} of the {whose} limit {show(limit)} "
                    f"is spent, {show(limit - used)} is left. Nothing was charged; ask for less."
                )


@final
@dataclass(frozen=True, slots=True)
class Balance:
    """Where an account stands. `held` is the part of `spent` whose release is not finished: it counts as spent."""

    limit: Fraction | None
    spent: Fraction
    held: Fraction
    releases: int
    unit: str = "epsilon"

    @property
    def left(self) -> Fraction | None:
        """What may still be spent; none where there is no limit of its own."""
        return None if self.limit is None else max(self.limit - self.spent, Fraction(0))
