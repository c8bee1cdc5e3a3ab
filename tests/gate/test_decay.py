from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privcfs.gate.mechanisms.decay import ROUNDING, SCALE, bits_for, decay, exponential_above, spread

nano = st.integers(1, 64 * 10**9).map(lambda value: Fraction(value, 10**9))


@given(epsilon=nano, span=st.integers(1, 400))
def test_the_ratio_never_exceeds_its_bound(epsilon: Fraction, span: int) -> None:
    with mpmath.workdps(120):
        lost = 2 * span * mpmath.log(mpmath.mpf(SCALE) / decay(epsilon, span))
        exact = mpmath.mpf(epsilon.numerator) / epsilon.denominator
        room = exact - mpmath.mpf(ROUNDING.numerator) / ROUNDING.denominator
        assert lost <= room
        rounding = 2 * span * mpmath.exp(exact / (2 * span)) * mpmath.mpf(2) ** -95
        assert room - lost < rounding, "and it is not far below"


@settings(deadline=None)
@given(x=st.fractions(0, 40))
def test_the_series_lies_above_the_exponential_and_close_to_it(x: Fraction) -> None:
    above = exponential_above(x)
    with mpmath.workdps(120):
        gap = mpmath.mpf(above.numerator) / above.denominator - mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator)
        assert 0 <= gap < mpmath.mpf(2) ** -127


def test_scores_that_cannot_differ_have_no_decay() -> None:
    assert decay(Fraction(1), 0) == SCALE


@pytest.mark.parametrize("total", [1, 2, 3, 7, 12])
def test_spreading_bits_over_a_total_is_fair_to_the_promised_error(total: int) -> None:
    bits = 10
    counts = [0] * total
    for number in range(2**bits):
        counts[spread(bits, number, total)] += 1
    assert max(counts) - min(counts) <= 1
    assert bits_for(total) == total.bit_length() + 128


def test_a_float_would_not_do() -> None:
    """The twin: rounding e**-x to the nearest double lets the ratio pass its bound for some prices."""
    passed = 0
    with mpmath.workdps(60):
        for price in range(1, 200):
            x = mpmath.mpf(price) / 10 / 192
            passed += -mpmath.log(mpmath.mpf(float(mpmath.exp(-x)))) > x
    assert passed > 50
