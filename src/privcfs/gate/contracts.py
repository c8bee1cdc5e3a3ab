"""What a limit counts, and what all releases within it guarantee together.

Zone: gate
Claim: releases whose costs stay within a limit satisfy what `meaning` says of it, prices chosen adaptively included.
Why: pure prices add up; Rényi divergences add up order by order, so rho = sup of divergence / order does; a fixed price
    makes the number of releases a constant, so one order may be chosen beforehand. Costs are rounded up, limits are
    exact, and a contract never changes: its units are never mixed.
Check: tests/gate/test_contracts.py::test_the_stated_epsilon_covers_the_exact_loss_of_many_releases
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, log, log1p, sqrt
from typing import Any, ClassVar, final

import numpy as np

from privcfs.errors import BadEpsilon, SettingsError
from privcfs.gate.mechanisms import MECHANISMS
from privcfs.gate.mechanisms.mechanism import Mechanism, Weighed
from privcfs.public.epsilon import NANO, Price, parse_decimal, parse_epsilon, show

ORDERS, FINE_ORDERS = 600, 6000
SAFETY = 1e-5  # relative, for rounding
LARGEST_EXPONENT = 400


class Contract(ABC):
    """What a ledger counts and what its limit means; it is chosen when the ledger is made, and never changes."""

    unit: ClassVar[str] = "epsilon"

    def cost(self, mechanism: Mechanism, epsilon: Fraction) -> Fraction:  # noqa: ARG002
        """What one release counts, in the contract's unit, rounded up to nine places."""
        return epsilon

    @abstractmethod
    def meaning(self, total: Fraction) -> str:
        """What all releases within this limit guarantee together."""

    @property
    def allowance(self) -> Fraction:
        """The most that the deltas of all rows may sum to: releases have none, so only entries use it."""
        return Fraction(0)

    @abstractmethod
    def to_dict(self) -> dict[str, str]:
        """As a ledger keeps it."""


@final
@dataclass(frozen=True, slots=True)
class Pure(Contract):
    """Epsilons add up; no delta."""

    def meaning(self, total: Fraction) -> str:
        return f"pure {show(total)}-differential privacy of all releases together"

    def to_dict(self) -> dict[str, str]:
        return {"kind": "pure"}


@final
@dataclass(frozen=True, slots=True)
class Approximate(Contract):
    """Epsilons add up, and so do deltas: for disclosures made elsewhere, such as a model trained with both."""

    delta: Fraction

    def __post_init__(self) -> None:
        _check_delta(self.delta)

    @property
    def allowance(self) -> Fraction:
        return self.delta

    def meaning(self, total: Fraction) -> str:
        return f"({show(total)}, {_short(self.delta)})-differential privacy of all releases and entries together"

    def to_dict(self) -> dict[str, str]:
        return {"kind": "approximate", "delta": show(self.delta)}


@final
@dataclass(frozen=True, slots=True)
class ZeroConcentrated(Contract):
    """Each mechanism is charged its own rho; many small releases cost far less than the sum of their epsilons."""

    unit: ClassVar[str] = "rho"

    delta: Fraction = Fraction(1, 10**6)

    def __post_init__(self) -> None:
        _check_delta(self.delta)

    def cost(self, mechanism: Mechanism, epsilon: Fraction) -> Fraction:
        return concentrated(mechanism, epsilon)

    def meaning(self, total: Fraction) -> str:
        epsilon = from_rho(float(total), float(self.delta))
        return (
            f"{show(total)}-zCDP of all releases together, hence ({_above(epsilon)}, {_short(self.delta)})-"
            "differential privacy. Only the limit is guaranteed so, not what happens to be spent"
        )

    def to_dict(self) -> dict[str, str]:
        return {"kind": "zcdp", "delta": show(self.delta)}


@final
@dataclass(frozen=True, slots=True)
class FixedPrice(Contract):
    """Every release has one price and one mechanism; the limit counts releases, and one Rényi order serves them all."""

    unit: ClassVar[str] = "releases"

    epsilon: Fraction
    mechanism: Mechanism
    delta: Fraction = Fraction(1, 10**6)

    def __post_init__(self) -> None:
        _check_delta(self.delta)
        if MECHANISMS.get(self.mechanism.name) != self.mechanism:
            raise SettingsError("a fixed price is for a mechanism of the table, as it stands there.")

    def cost(self, mechanism: Mechanism, epsilon: Fraction) -> Fraction:
        if epsilon != self.epsilon:
            raise BadEpsilon(f"epsilon is {show(epsilon)}, but every release of this vault has {show(self.epsilon)}.")
        if mechanism != self.mechanism:
            raise SettingsError(f"this ledger is for {self.mechanism.name} alone; use that mechanism, without a guide.")
        return Fraction(1)

    def meaning(self, total: Fraction) -> str:
        epsilon = composed(self.mechanism, self.epsilon, int(total), float(self.delta))
        return (
            f"({_above(epsilon)}, {_short(self.delta)})-differential privacy of {int(total)} releases at epsilon "
            f"{show(self.epsilon)} by {self.mechanism.name} together"
        )

    def to_dict(self) -> dict[str, str]:
        price, delta = show(self.epsilon), show(self.delta)
        return {"kind": "fixed", "epsilon": price, "mechanism": self.mechanism.name, "delta": delta}


def contract_from(fields: dict[str, Any]) -> Contract:
    """The inverse of `to_dict`, and what a vault file says."""
    kind = fields.get("kind", "pure")
    one = {"delta"}
    expected = {"pure": set(), "approximate": one, "zcdp": one, "fixed": {"epsilon", "mechanism", "delta"}}.get(kind)
    if expected is None or set(fields) - {"kind"} - expected:
        raise SettingsError(
            f"contract {fields} is unknown; choose pure, approximate, zcdp (both with delta) or fixed (with price too)."
        )
    delta = parse_delta(fields.get("delta", "0.000001"))
    if kind == "fixed":
        name = fields.get("mechanism", "exponential")
        if name not in MECHANISMS:
            raise SettingsError(f"contract mechanism {name!r} is unknown; choose one of {', '.join(MECHANISMS)}.")
        return FixedPrice(parse_epsilon(fields.get("epsilon", "")), MECHANISMS[name], delta)
    if kind == "approximate":
        return Approximate(delta)
    return Pure() if kind == "pure" else ZeroConcentrated(delta)


def parse_delta(value: Price) -> Fraction:
    """A decimal above 0 and below 1."""
    try:
        return _check_delta(parse_decimal(value, "delta"))
    except BadEpsilon as error:
        raise SettingsError(str(error)) from None


def concentrated(mechanism: Mechanism, epsilon: Fraction) -> Fraction:
    """The mechanism's rho: the supremum of divergence / order, at most what is proven of it in closed form."""
    most = _concentrated(mechanism.under(()) if isinstance(mechanism, Weighed) else mechanism, epsilon)
    least = min(Fraction(most * (1 + SAFETY)), mechanism.concentration(epsilon))
    return Fraction(ceil(least * NANO), NANO)


@lru_cache(maxsize=1024)
def _concentrated(mechanism: Mechanism, epsilon: Fraction) -> float:
    """A divergence grows with its order: between two orders it is at most that of the larger, over the smaller order.

    Beyond the last order it is at most epsilon, as every pure release's.
    """
    orders = _orders(float(epsilon), FINE_ORDERS)
    most = [mechanism.renyi(above, epsilon) / below for below, above in pairwise([1.0, *orders])]
    last = mechanism.renyi(orders[-1], epsilon)
    return max(*most, float(epsilon) / orders[-1] if last else 0.0)


def composed(mechanism: Mechanism, epsilon: Fraction, count: int, delta: float) -> float:
    """Epsilon of so many releases at one price; never more than the sum."""
    orders = _orders(float(epsilon))
    best = min(_at_order(order, count * mechanism.renyi(order, epsilon), delta) for order in orders)
    return min(best * (1 + SAFETY), float(count * epsilon))


def from_rho(rho: float, delta: float) -> float:
    """Epsilon of rho-zCDP at this delta: the usual formula, or a better order where there is one."""
    usual = rho + 2 * sqrt(rho * log(1 / delta))
    best = min(_at_order(order, order * rho, delta) for order in 1 + np.geomspace(1e-3, 1e6, 4 * ORDERS))
    return min(usual, best * (1 + SAFETY))


def _at_order(order: float, divergence: float, delta: float) -> float:
    """Epsilon from one Rényi order (Canonne, Kamath and Steinke 2020)."""
    return max(divergence + log1p(-1 / order) - (log(delta) + log(order)) / (order - 1), 0.0)


def _orders(epsilon: float, number: int = ORDERS) -> list[float]:
    return [float(order) for order in 1 + np.geomspace(1e-6, LARGEST_EXPONENT / epsilon, number)]


def _check_delta(delta: Fraction) -> Fraction:
    if not 0 < delta < 1 or NANO % delta.denominator:
        raise SettingsError("delta must be a decimal above 0 and below 1 with at most nine places.")
    return delta


def _above(epsilon: float) -> str:
    """A number as text with three decimal places, rounded up."""
    return f"{ceil(epsilon * 1000) / 1000:g}"


def _short(delta: Fraction) -> str:
    """A fraction as text. It has at most nine decimal places, so nothing is rounded."""
    return f"{float(delta):.9g}"
