"""Exponentials and logarithms between two rationals, and floats that are rounded up: what a price may rest on.

Python's `decimal` rounds exp and ln correctly, here to 80 digits. So a result that is moved outward by 10⁻⁷⁰ of itself
is a bound.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction

_DIGITS = Context(prec=80, Emax=999_999, Emin=-999_999)
_ERROR = Fraction(1, 10**70)
_SHOWN = 10**9
UNIT = 2.0**-53
"""The relative error of one operation with floats, at most."""


def exp_bounds(exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Two rationals with e^x between them, 10⁻⁷⁰ of it apart, about.

    >>> low, high = exp_bounds(Fraction(1))
    >>> float(low), low < high
    (2.718281828459045, True)
    """
    value = Fraction(_DIGITS.exp(_decimal(exponent)))
    wide = _ERROR * (1 + abs(exponent))
    return value * (1 - wide), value * (1 + wide)


def ln_bounds(value: Fraction) -> tuple[Fraction, Fraction]:
    """Two rationals with ln x between them, for x above 0.

    >>> low, high = ln_bounds(Fraction(2))
    >>> float(low), low < high
    (0.6931471805599453, True)
    """
    middle = Fraction(_DIGITS.ln(_decimal(value)))
    wide = _ERROR * (1 + abs(middle))
    return middle - wide, middle + wide


def square_root_above(value: Fraction) -> Fraction:
    """A rational that is not below √x.

    >>> float(square_root_above(Fraction(4)))
    2.0
    """
    return Fraction(_DIGITS.sqrt(_decimal(value))) * (1 + _ERROR)


def rounded_up(value: Fraction | float) -> Fraction:
    """The least multiple of 10⁻⁹ that is not below it: how a price is stated.

    >>> rounded_up(Fraction(1, 3))
    Fraction(166666667, 500000000)
    """
    return Fraction(math.ceil(Fraction(value) * _SHOWN), _SHOWN)


def float_below(value: Fraction) -> float:
    """The largest float that is not above it; it need not be above 0."""
    near = float(value)
    return near if near <= value else math.nextafter(near, -math.inf)


def _decimal(value: Fraction) -> Decimal:
    return _DIGITS.divide(Decimal(value.numerator), Decimal(value.denominator))
