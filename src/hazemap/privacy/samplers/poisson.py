"""Poisson counts by inversion: a uniform real number, read as far as it takes, against certified digits."""

from bisect import bisect_left
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers.bernoulli import check_size, exp_bounds
from hazemap.privacy.samplers.laplace import shown

LARGEST_MEAN = 1 << 10

_WORD = 64


def poisson(stream: Stream, mean: Fraction, size: int) -> NDArray[np.int64]:
    """`size` numbers with P(n) = e^−m mⁿ/n!, m the mean, a rational in (0, 2¹⁰]: exact (docs/concepts/noise.md).

    A number is the least n with U < F(n) = P(0) + … + P(n), for U uniform between 0 and 1. The first 64 digits of
    U nearly always tell; where they are just those of some F(n), and in the tail, where F(n) begins with 64
    ones, U and F are read further. Costs about 30 ns a number, after a table of the mean is made (0.3 ms).

    >>> poisson(Stream.fixed(b"doctest"), Fraction(3), 4).dtype
    dtype('int64')
    """
    if not 0 < mean <= LARGEST_MEAN:
        raise InputError(
            f"the mean of a Poisson variable must be above 0 and at most {LARGEST_MEAN} here, not {shown(mean)}"
        )
    check_size(size)
    table = _first_word(mean)
    word = stream.words(size)
    drawn = np.searchsorted(table, word)  # the last entry is the largest word
    for open_ in np.flatnonzero(table[drawn] == word):
        drawn[open_] = _settled(stream, mean, int(word[open_]))
    return drawn.astype(np.int64, copy=False)


def _settled(stream: Stream, mean: Fraction, uniform: int) -> int:
    """The number, if the first 64 digits of U do not tell it."""
    n = _WORD
    while True:
        uniform = uniform << _WORD | int(stream.words(1)[0])
        n += _WORD
        digits = cumulative(mean, n)
        number = bisect_left(digits, uniform)
        if digits[number] != uniform:
            return number


@lru_cache(maxsize=256)
def _first_word(mean: Fraction) -> NDArray[np.uint64]:
    return np.array(cumulative(mean, _WORD), dtype=np.uint64)


def cumulative(mean: Fraction, n: int) -> tuple[int, ...]:
    """⌊2ⁿ F(0)⌋, ⌊2ⁿ F(1)⌋, …, to the first that is 2ⁿ − 1, as all later ones are.

    F(k) is e^−m times a rational, so it is irrational, and bounds that are narrow enough settle its digits.

    >>> [bin(digits) for digits in cumulative(Fraction(1, 2), 6)]
    ['0b100110', '0b111010', '0b111111']
    """
    bits = n + 64
    while True:
        low, high = exp_bounds(mean, bits)  # P(k) · 2^bits is between them, first for k = 0
        sum_low, sum_high, k = low, high, 0
        digits = []
        while sum_low >> bits - n == sum_high >> bits - n or sum_low >> bits - n == (1 << n) - 1:
            digits.append(sum_low >> bits - n)
            if digits[-1] == (1 << n) - 1:
                return tuple(digits)
            k += 1
            low = low * mean.numerator // (mean.denominator * k)
            high = -(-high * mean.numerator // (mean.denominator * k))
            sum_low, sum_high = sum_low + low, sum_high + high
        bits *= 2
