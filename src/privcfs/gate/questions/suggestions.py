"""What each of several suggestions pays, where they share one price, and how they follow each other.

Zone: gate
Claim: the parts add up to at most the price, and none is below the least price.
Why: an equal part is rounded down to a decimal; everything here is public.
Check: tests/gate/test_asking.py::test_suggestions_share_no_element_and_one_price
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

from privcfs.errors import BadEpsilon, InputError, PrivcfsError
from privcfs.gate.contracts import FixedPrice
from privcfs.gate.mechanisms.mechanism import Weighed
from privcfs.gate.questions.question import PublicSide
from privcfs.public.epsilon import NANO, Price, show

MOST_SUGGESTIONS = 20
T = TypeVar("T")


def price_of_each(side: PublicSide, epsilon: Price, number: int) -> Fraction:
    """What each of several suggestions pays; refuses what the method, the contract or the least price do not allow."""
    price = side.price(epsilon)
    if isinstance(number, bool) or not isinstance(number, int) or not 0 < number <= MOST_SUGGESTIONS:
        raise InputError(f"number is {number!r}; ask for 1 to {MOST_SUGGESTIONS} suggestions.")
    each = part_of(price, number)
    if each < side.least_price:
        raise BadEpsilon(
            f"epsilon {show(price)} leaves {show(each)} for each of {number} suggestions; the least price of an "
            f"answer here is {show(side.least_price)}."
        )
    if number > 1 and isinstance(side.contract, FixedPrice):
        raise InputError("suggestions cannot be had under a fixed price, which is for one answer at a time.")
    if number > 1 and side.method.guide is None and not isinstance(side.method.mechanism, Weighed):
        raise InputError(f"suggestions need a base measure; {side.method.mechanism.name} has none.")
    return each


def in_turn(number: int, name: str, draw: Callable[[str, Sequence[T]], T]) -> list[T]:
    """Draws so many answers one after the other. Each has a request id of its own, and knows those before it."""
    found: list[T] = []
    for part in range(number):
        try:
            found.append(draw(f"{name}/{part + 1}", found))
        except PrivcfsError as error:
            paid = f" {part} of {number} suggestions are paid and kept under request id {name}." if part else ""
            raise type(error)(f"{error}{paid}") from None
    return found


def part_of(price: Fraction, number: int) -> Fraction:
    """An equal part as a decimal: exact where it is one, otherwise rounded down to thousandths, or to billionths."""
    part = price / number
    step = NANO if not NANO % part.denominator or part < Fraction(1, 1000) else 1000
    return Fraction(int(part * step), step)
