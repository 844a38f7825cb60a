"""Exponentials and logarithms between two rationals, and floats that are rounded up: what a price may rest on.

Python's `decimal` rounds exp and ln correctly, here to 80 digits. So a result that is moved outward by 10⁻⁷⁰ of
itself is a bound.

**Binomial laws** are arrays of floats, with bounds of everything that a float or a cut leaves out. A binomial law is
a product of ratios from its mode on, so its errors are relative, and Bernstein's inequality says what lies outside a
window. Short windows are added up one by one, which keeps the errors relative; long ones by a fast Fourier transform,
whose error in the Euclidean norm is at most 8 log₂(size) units of rounding for each transform (Higham 2002, theorem
24.2, with room), so that it is absolute.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np

from hazemap.machine_code.arrays import Floats

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


_SMALLEST = 1e-250
"""Smaller probabilities are cut, so that no float underflows; what they are together is far below any tail."""

DIRECT = 4_000_000
"""Products of two windows that are added up one by one in any case."""


@dataclass(frozen=True, eq=False)
class BinomialWindow:
    """The law of a whole number X near its middle: P(X = start + i) is about mass[i], float64[size].

    The truth is within mass[i] · (1 ± relative), but for a difference that adds up to `absolute` at most; and
    P(X outside the window) ≤ `outside`.

    >>> coins = binomial(2, 0.5, 0.5, 1e-20)
    >>> coins.start, coins.mass
    (0, array([0.25, 0.5 , 0.25]))
    """

    start: int
    mass: Floats
    relative: float
    absolute: float
    outside: float


def binomial(coins: int, heads: float, tails: float, tail: float) -> BinomialWindow:
    """How many of `coins` show heads, of probability `heads` = 1 − `tails` (floats within two units of rounding).

    Outside are 2 · `tail` at most, by Bernstein: P(|X − μ| ≥ t) ≤ 2 exp(−t²/(2(σ² + t/3))). O(σ + log(1/tail)).
    """
    if coins == 0:
        return BinomialWindow(0, np.ones(1), 0.0, 0.0, 0.0)
    logarithm = -math.log(tail)
    variance = coins * heads * tails
    reach = int(1.001 * (logarithm / 3 + math.sqrt(logarithm**2 / 9 + 2 * logarithm * variance))) + 3
    mode = min(coins, int((coins + 1) * heads))
    odds = heads / tails
    up = np.arange(mode, min(coins, mode + reach), dtype=np.float64)
    down = np.arange(mode, max(0, mode - reach), -1, dtype=np.float64)
    with np.errstate(under="ignore"):
        above = np.cumprod((coins - up) / (up + 1) * odds)
        below = np.cumprod(down / ((coins - down + 1) * odds))
    mass = np.concatenate([below[::-1], [1.0], above])
    kept = np.nonzero(mass > _SMALLEST)[0]
    mass = mass[kept[0] : kept[-1] + 1]
    relative = 2 * 9 * (max(len(up), len(down)) + 2) * UNIT + (len(mass) + 2) * UNIT
    outside = 2 * tail + 1e-200
    return BinomialWindow(mode - len(below) + int(kept[0]), mass / mass.sum(), relative + outside, 0.0, outside)


def add(first: BinomialWindow, second: BinomialWindow, direct: int = DIRECT) -> BinomialWindow:
    """The law of the sum of two independent numbers; one by one if that is at most `direct` products."""
    a, b = first.mass, second.mass
    start, outside = first.start + second.start, first.outside + second.outside
    relative = 1.01 * (first.relative + second.relative)
    absolute = first.absolute + second.absolute
    if min(len(a), len(b)) == 1:
        return BinomialWindow(start, a * b[0] if len(b) == 1 else b * a[0], relative + UNIT, absolute, outside)
    if len(a) * len(b) <= direct:
        rounding = 1.01 * (min(len(a), len(b)) + 2) * UNIT
        return BinomialWindow(start, np.convolve(a, b), relative + rounding, absolute + 1e-200, outside)
    size = len(a) + len(b) - 1
    padded = _smooth(size)
    mass = np.fft.irfft(np.fft.rfft(a, padded) * np.fft.rfft(b, padded), padded)[:size]
    longest = max(float(np.linalg.norm(a)), float(np.linalg.norm(b)))  # none has more than 1 in all
    error = 3.1 * 8 * math.log2(padded) * UNIT * longest * math.sqrt(size)
    mass = np.maximum(mass, 0.0)
    begin = int(np.searchsorted(np.cumsum(mass), error))  # ends that are no more than the error are cut
    end = size - int(np.searchsorted(np.cumsum(mass[::-1]), error))
    return BinomialWindow(start + begin, mass[begin:end], relative, absolute + error, outside + 5 * error)


def _smooth(size: int) -> int:
    """A size that is not below this one and is 2^k, 3 · 2^k or 5 · 2^k, which a transform is quick with."""
    return min(factor << max(0, (-(-size // factor) - 1).bit_length()) for factor in (2, 3, 5))
