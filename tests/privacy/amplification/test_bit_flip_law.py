"""A report's law: what it costs locally, and what is refused."""

import math
from fractions import Fraction

import numpy as np
import pytest

from hazemap.errors import InputError
from hazemap.privacy.amplification import bit_flip_law
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.certified_bounds import (
    UNIT,
    exp_bounds,
    float_below,
    ln_bounds,
    rounded_up,
    square_root_above,
)


def test_the_known_encodings_have_their_known_local_prices():
    asymmetric, symmetric = BitFlipLaw.asymmetric(3), BitFlipLaw.symmetric(3)
    assert (asymmetric.replacement, symmetric.replacement, symmetric.removal) == (3, 6, 3)
    assert float(asymmetric.removal) == pytest.approx(math.log((math.exp(3) + 1) / 2))
    assert not asymmetric.mirrored
    assert symmetric.mirrored


def test_general_unary_encoding_agrees_with_the_two_known_ones():
    for law in (BitFlipLaw.asymmetric(2), BitFlipLaw.symmetric(2)):
        general = BitFlipLaw.unary(law.keep[0], law.turn_on[1])
        assert float(general.replacement) == pytest.approx(float(law.replacement), abs=2e-9)
        assert float(general.removal) == pytest.approx(float(law.removal), abs=2e-9)


@pytest.mark.parametrize(
    ("keep", "turn_on"), [(1, 0), (1, Fraction(1, 2)), (Fraction(1, 2), 0), (Fraction(1, 2), Fraction(1, 2)), (0, 1)]
)
def test_a_report_that_leaves_no_doubt_or_says_nothing_is_refused(keep, turn_on):
    with pytest.raises(InputError, match="0 < turn_on < keep < 1"):
        BitFlipLaw.unary(Fraction(keep), Fraction(turn_on))


@pytest.mark.parametrize("epsilon", [0, -1, 201, "1e-9", math.inf, math.nan, True])
def test_a_local_price_out_of_range_is_refused(epsilon):
    with pytest.raises(InputError):
        BitFlipLaw.asymmetric(epsilon)
    with pytest.raises(InputError):
        BitFlipLaw.symmetric(epsilon)


def test_a_law_cannot_be_made_by_hand_with_a_local_price_that_is_too_small():
    law = BitFlipLaw.asymmetric(2)
    with pytest.raises(InputError, match="too small"):
        BitFlipLaw(law.keep, law.turn_on, law.replacement - Fraction(1, 10**9), law.removal)
    with pytest.raises(InputError, match="too small"):
        BitFlipLaw(law.keep, law.turn_on, law.replacement, law.removal / 2)
    with pytest.raises(InputError, match="doubt"):
        BitFlipLaw(law.keep, (Fraction(1, 10), Fraction(1, 9)), law.replacement, law.removal)


def test_bounds_hold_what_they_bound():
    for value in (Fraction(1, 3), Fraction(40), Fraction(-7, 2), Fraction(1, 10**12)):
        low, high = exp_bounds(value)
        assert low < high < low * (1 + Fraction(1, 10**60))
        assert ln_bounds(low)[0] < value < ln_bounds(high)[1]
    assert square_root_above(Fraction(2)) ** 2 >= 2
    assert rounded_up(0.1) > Fraction(0.1) > rounded_up(0.1) - Fraction(1, 10**9)
    assert Fraction(float_below(Fraction(1, 10))) <= Fraction(1, 10)


def test_a_price_rests_on_the_upper_bound_of_each_logarithm(monkeypatch):
    """Bounds are 10⁻⁷⁰ apart, which rounding to 10⁻⁹ hides: wide ones show which of them is taken."""
    wide, asked = Fraction(1, 8), []

    def bounds(value):
        asked.append(value)
        low, high = ln_bounds(value)
        return low - wide, high + wide

    monkeypatch.setattr(bit_flip_law, "ln_bounds", bounds)
    kept, lost = math.log(0.75 / 0.125), math.log(0.875 / 0.25)
    law = BitFlipLaw.unary(Fraction(3, 4), Fraction(1, 8))
    assert float(law.removal) == pytest.approx(max(kept, lost) + 1 / 8)
    assert float(law.replacement) == pytest.approx(kept + lost + 2 / 8)
    assert float(BitFlipLaw.asymmetric(3).removal) == pytest.approx(math.log((math.exp(3) + 1) / 2) + 1 / 8)
    assert (exp_bounds(Fraction(3))[1] + 1) / 2 in asked, "and on the upper bound of an exponential"
    # what is refused has passed the lower bound of the logarithms, so that no law of one's own is
    BitFlipLaw(law.keep, law.turn_on, rounded_up(kept + lost - 2 / 8), rounded_up(max(kept, lost) - 1 / 8))
    with pytest.raises(InputError, match="too small"):
        BitFlipLaw(law.keep, law.turn_on, rounded_up(kept + lost - 2 / 8 - 1e-6), law.removal)


def test_the_unit_is_the_relative_error_of_one_operation_with_floats():
    assert 1 + UNIT == 1 < 1 + UNIT * (1 + 2 * UNIT), "a number half-way is rounded to the even one, one above it up"
    assert np.finfo(np.float64).eps / 2 == UNIT
