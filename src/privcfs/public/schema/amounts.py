"""Exact numbers of a schema, as people write them: 24, 0.5, -3."""

import re
from decimal import Decimal
from fractions import Fraction

from privcfs.public.schema.place import Place

LARGEST = Fraction(10**15)
PLACES = 6  # decimal places of a present value that lies on no step
LONGEST_AMOUNT = "-" + "9" * 16 + "." + "9" * 12  # no number of a schema or of a table is shown with more letters
DECIMAL = re.compile(r"-?[0-9]{1,16}(\.[0-9]{1,12})?")


def amount(value: object, what: str, place: Place) -> Fraction:
    """A finite number of a file or of Python code; floats count as the decimals that they are shown as."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        place.refuse(f"{what} is {value!r}", "write a number without quotes")
    if isinstance(value, float | Decimal) and not Decimal(str(value)).is_finite():
        place.refuse(f"{what} is {value}", "write a finite number")
    exact = value if isinstance(value, Fraction) else Fraction(str(value))
    if abs(exact) > LARGEST:
        place.refuse(f"{what} is {value}", "write a number of at most 10^15")
    return exact


def whole(value: object, what: str, place: Place, least: int, most: int) -> int:
    """A whole number within bounds."""
    exact = amount(value, what, place)
    if exact.denominator != 1 or not least <= exact <= most:
        place.refuse(f"{what} is {value}", f"write a whole number from {least} to {most}")
    return int(exact)


def show_amount(value: Fraction) -> str:
    """As a decimal: exact where that takes at most 12 places, otherwise rounded."""
    text = f"{value.numerator / value.denominator:.{PLACES}f}" if 10**12 % value.denominator else _exact(value)
    return (text.rstrip("0").rstrip(".") if "." in text else text) or "0"


def _exact(value: Fraction) -> str:
    digits = str(abs(value.numerator) * (10**12 // value.denominator)).rjust(13, "0")
    return f"{'-' if value < 0 else ''}{digits[:-12]}.{digits[-12:]}"


def parse_amount(text: str) -> Fraction | None:
    """The inverse of `show_amount`; None for text that is no decimal."""
    return Fraction(text) if DECIMAL.fullmatch(text) else None
