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
from typing import Any, final

from privcfs.errors import BadEpsilon, BudgetExhausted, SettingsError
from privcfs.gate.contracts import Contract, Pure
from privcfs.public.epsilon import MOST, NANO, Price, parse_decimal, show


@final
@dataclass(frozen=True, slots=True)
class Limit:
    """The most that all analysts together, and optionally each one alone, may spend, in the unit of a contract.

    Attributes:
        total: The most that all analysts together may spend.
        per_analyst: The most that each analyst may spend; None, the default, for no such limit.
        contract: What is counted, and in which unit. The default counts epsilon, under pure differential privacy.

    Raises:
        SettingsError: A limit is not a decimal above 0 with at most nine places, or the one per analyst is above the
            total.
    """

    total: Fraction
    per_analyst: Fraction | None = None
    contract: Contract = Pure()

    @classmethod
    def of(cls, total: Price, per_analyst: Price | None = None, contract: Contract | None = None) -> "Limit":
        """Makes a limit from decimals such as "10".

        Args:
            total: The most that all analysts together may spend, as text, int or Fraction.
            per_analyst: The most that each analyst may spend; None, the default, for no such limit.
            contract: What is counted, and in which unit; by default epsilon, under pure differential privacy.

        Returns:
            The limit, in exact fractions.

        Raises:
            SettingsError: A limit is not a decimal above 0 with at most nine places.
        """
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
        """The same limit, with `cap` as a further bound on what one analyst may spend.

        Args:
            cap: The bound, or None for none.

        Returns:
            A limit whose `per_analyst` is the least of the bounds that hold for one analyst.
        """
        if cap is None:
            return self
        return replace(self, per_analyst=min(cap, self.per_analyst or self.total, self.total))

    def check_delta(self, delta: Fraction, spent: Fraction) -> None:
        """Refuses a delta that would exceed what the contract allows in all.

        Args:
            delta: The delta of a new disclosure.
            spent: The deltas of all former disclosures together.

        Raises:
            BudgetExhausted: The sum exceeds what the contract allows.
        """
        if spent + delta > self.contract.allowance:
            raise BudgetExhausted(
                f"delta {float(delta):g} does not fit: the contract allows {float(self.contract.allowance):g} in all, "
                f"{float(spent):g} is used. Nothing was charged."
            )

    def check(self, price: Fraction, spent: Fraction, spent_by_analyst: Fraction) -> None:
        """Refuses a cost that would exceed the total limit or, after that, the analyst's own.

        Args:
            price: What a new question costs, in the contract's unit.
            spent: What all analysts together have spent.
            spent_by_analyst: What this analyst has spent.

        Raises:
            BudgetExhausted: A limit would be exceeded; the message says which, and what is left.
        """
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
    answers: int
    unit: str = "epsilon"

    @property
    def left(self) -> Fraction | None:
        """What may still be spent; None if the account has no limit of its own."""
        return None if self.limit is None else max(self.limit - self.spent, Fraction(0))

    def to_dict(self) -> dict[str, Any]:
        """The account as JSON shows it, on the command line and over HTTP."""
        return {
            "unit": self.unit,
            "limit": None if self.limit is None else show(self.limit),
            "spent": show(self.spent),
            "held": show(self.held),
            "left": None if self.left is None else show(self.left),
            "answers": self.answers,
        }
