"""Privacy prices as exact fractions: ten charges of 0.1 are 1."""

import re
from decimal import Decimal
from fractions import Fraction

from privcfs.errors import BadEpsilon

NANO = 10**9
LARGEST = Fraction(64)
DECIMAL = re.compile(r"[+]?(\d{1,12}(\.\d{0,9})?|\.\d{1,9})")

Price = str | int | Decimal | Fraction


def parse_epsilon(value: Price) -> Fraction:
    """The price of one release: a decimal above 0 and at most 64."""
    epsilon = parse_decimal(value, "epsilon")
    if not 0 < epsilon <= LARGEST:
        raise BadEpsilon(f"epsilon is {show(epsilon)}; it must lie above 0 and at most at {LARGEST}.")
    return epsilon


def parse_decimal(value: Price, argument: str) -> Fraction:
    """An exact non-negative number with at most nine decimal places."""
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal | Fraction):
        raise BadEpsilon(f"{argument} is a {type(value).__name__}; write it as text, such as '0.1', to keep it exact.")
    if isinstance(value, Fraction):
        if value < 0 or NANO % value.denominator:
            raise BadEpsilon(f"{argument} is {value}; it must be a decimal with at most nine places, not negative.")
        return value
    text = format(value, "f") if isinstance(value, Decimal) else str(value).strip()
    if not DECIMAL.fullmatch(text):
        raise BadEpsilon(
            f"{argument} is {text[:40]!r}; write a decimal number such as '1' or '0.25' (nine places at most)."
        )
    return Fraction(text)


def show(price: Fraction) -> str:
    """The shortest decimal text of a price."""
    return format(Decimal(price.numerator) / Decimal(price.denominator), "f") if price else "0"
