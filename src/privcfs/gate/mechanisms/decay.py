"""The exact ratio between the weights of neighbouring score levels.

Zone: gate
Claim: decay(epsilon, span) is a ratio p / 2**96 with 2 span ln(2**96 / p) <= epsilon - 2**-126.
Why: e**-x is at most each partial sum of its series that ends on an even power (Taylor's remainder is negative there),
    and p is rounded up. Rounding up flattens the weights, so it costs accuracy and never privacy. The 2**-126 pays for
    mapping a fixed number of random bits to a total that is no power of two (`spread`).
Check: tests/gate/test_decay.py::test_the_ratio_never_exceeds_its_bound
"""

from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

SCALE_BITS = 96
SCALE = 1 << SCALE_BITS
SPARE_BITS = 128
ROUNDING = Fraction(1, 2**126)


@lru_cache(maxsize=256)
def decay(epsilon: Fraction, span: int) -> int:
    """The numerator p over 2**96; 2**96 itself, no decay at all, where scores cannot differ."""
    if span == 0:
        return SCALE
    return ceil(exponential_above((epsilon - ROUNDING) / (2 * span)) * SCALE)


def exponential_above(x: Fraction) -> Fraction:
    """A rational at least e**-x, and above it by less than 2**-128, for x >= 0."""
    x = Fraction(floor(x * 2**192), 2**192)  # rounding down raises e**-x
    total = term = Fraction(1)
    power = 0
    while power % 2 or term > Fraction(1, 2**SPARE_BITS):
        power += 1
        term = term * x / power
        total += -term if power % 2 else term
    return total


def spread(bits: int, number: int, total: int) -> int:
    """Maps a uniform number below 2**bits to one below `total`: relative error at most total / 2**bits a cell."""
    return (number * total) >> bits


def bits_for(largest_total: int) -> int:
    """How many bits make that error at most 2**-128, whatever the private total."""
    return largest_total.bit_length() + SPARE_BITS
