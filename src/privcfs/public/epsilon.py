"""Privacy prices as exact fractions: ten charges of 0.1 are 1."""

import re
from decimal import Decimal
from fractions import Fraction

from privcfs.errors import BadEpsilon

NANO = 10**9
LARGEST = Fraction(64)
MOST = 10**12
DECIMAL = re.compile(r"[+]?(\d{1,12}(\.\d{0,9})?|\.\d{1,9})", re.ASCII)

Price = str | int | Decimal | Fraction


def parse_epsilon(value: Price) -> Fraction:
    """The price of one release: a decimal above 0 and at most 64."""
    epsilon = parse_decimal(value, "epsilon")
    if not 0 < epsilon <= LARGEST:
        raise BadEpsilon(f"epsilon is {show(epsilon)}; it must be more than 0 and at most {LARGEST}.")
    return epsilon


def parse_decimal(value: Price, argument: str) -> Fraction:
    """An exact non-negative number with at most nine decimal places."""
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal | Fraction):
        raise BadEpsilon(f"{argument} is a {type(value).__name__}; write it as text, such as '0.1', to keep it exact.")
    if isinstance(value, str):
        text = value.strip()
        if not DECIMAL.fullmatch(text):
            raise BadEpsilon(
                f"{argument} is {text[:40]!r}; write a decimal such as '1' or '0.25' (nine places at most)."
            )
        return Fraction(text)
    if isinstance(value, Decimal) and not (value.is_finite() and -9 <= value.adjusted() <= 12):
        value = -1
    if not 0 <= value <= MOST or NANO % Fraction(value).denominator:
        raise BadEpsilon(f"{argument} must be a decimal from 0 to 10**12 with at most nine places.")
    return Fraction(value)


def show(price: Fraction) -> str:
    """The shortest decimal text of a price."""
    whole, rest = divmod(price * NANO, NANO)
    if rest.denominator != 1:
        raise BadEpsilon("a price must have at most nine decimal places.")
    return f"{whole}.{int(rest):09d}".rstrip("0").rstrip(".")
