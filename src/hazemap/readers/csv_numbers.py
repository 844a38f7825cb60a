"""Numbers that are written as text, in machine code where few digits make it easy, and always correctly rounded.

A number is blanks, perhaps a sign, digits with perhaps one decimal sign among or beside them, perhaps e and a whole
number, and blanks. Anything else is no number. This module imports numba; whoever uses it imports it inside a function.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.jit import compiled

_EXACT = 22
"""10²² is the largest power of ten that float64 holds; times or by a whole number up to 2⁵³ it rounds once."""

_POWERS = 10.0 ** np.arange(_EXACT + 1)


def numbers_in(letters: NDArray[np.uint8], ends: NDArray[np.int32], decimal: str) -> NDArray[np.float64]:
    """The number in each text `letters[ends[i]:ends[i + 1]]` as float64, NaN for none. O(bytes).

    >>> numbers_in(np.frombuffer(b"1,5-7x2e0", np.uint8), np.array([0, 3, 5, 6, 9], np.int32), ",")
    array([ 1.5, -7. ,  nan,  2. ])
    """
    values = np.empty(len(ends) - 1, dtype=np.float64)
    hard = np.zeros(len(values), dtype=np.bool_)
    if _parse(letters, ends, ord(decimal), _POWERS, values, hard):
        rows = np.flatnonzero(hard)
        values[rows] = _rounded([letters[ends[i] : ends[i + 1]].tobytes() for i in rows], decimal)
    return values


def _rounded(texts: list[bytes], decimal: str) -> NDArray[np.float64]:
    """Numbers of many digits or great exponents: the standard library rounds them correctly."""
    return np.array([float(text.replace(decimal.encode(), b".")) for text in texts], dtype=np.float64)


@compiled
def _divided(whole, divisor) -> float:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """The float64 nearest to a quotient, ties to even, by long division to 55 binary digits; divisor < 2⁶³."""
    quotient, rest, exponent, more = whole // divisor, whole % divisor, 0, False
    while quotient < np.uint64(1 << 54):
        rest <<= np.uint64(1)
        quotient <<= np.uint64(1)
        exponent -= 1
        if rest >= divisor:
            rest -= divisor
            quotient |= np.uint64(1)
    while quotient >= np.uint64(1 << 55):
        more |= quotient & np.uint64(1) == np.uint64(1)
        quotient >>= np.uint64(1)
        exponent += 1
    low = quotient & np.uint64(3)
    quotient >>= np.uint64(2)
    if low == np.uint64(3) or (
        low == np.uint64(2) and (more or rest != np.uint64(0) or quotient & np.uint64(1) == np.uint64(1))
    ):
        quotient += np.uint64(1)
    return math.ldexp(np.float64(quotient), exponent + 2)


@compiled
def _parse(letters, ends, decimal, powers, values, hard) -> Any:  # type: ignore[no-untyped-def]  # noqa: PLR0912, PLR0915 - one loop  # pragma: no cover
    some = False
    for row in range(values.size):
        at, end = np.int64(ends[row]), np.int64(ends[row + 1])
        values[row] = np.nan
        while at < end and letters[at] == 32:
            at += 1
        while end > at and letters[end - 1] == 32:
            end -= 1
        negative = at < end and letters[at] == 45
        if at < end and (letters[at] == 45 or letters[at] == 43):
            at += 1
        whole, digits, significant, shift, pointed = np.uint64(0), 0, 0, np.int64(0), False
        while at < end:
            byte = letters[at]
            if 48 <= byte <= 57:
                digits += 1
                if significant or byte != 48:
                    significant += 1
                    if significant <= 19:
                        whole = whole * np.uint64(10) + np.uint64(byte - 48)
                if pointed:
                    shift -= 1
            elif byte == decimal and not pointed:
                pointed = True
            else:
                break
            at += 1
        if digits == 0:
            continue
        if at < end and (letters[at] == 101 or letters[at] == 69):
            at += 1
            minus = at < end and letters[at] == 45
            if at < end and (letters[at] == 45 or letters[at] == 43):
                at += 1
            power, first = np.int64(0), at
            while at < end and 48 <= letters[at] <= 57:
                if power < 100000:
                    power = 10 * power + np.int64(letters[at] - 48)
                at += 1
            if at == first:
                continue
            shift += -power if minus else power
        if at < end:
            continue
        if significant == 0:
            value = 0.0
        elif significant <= 19 and whole <= np.uint64(1 << 53) and -22 <= shift <= 22:
            value = np.float64(whole)
            value = value / powers[-shift] if shift < 0 else value * powers[shift]
        elif significant <= 19 and -18 <= shift <= 0:
            value = _divided(whole, np.uint64(10) ** np.uint64(-shift))
        else:
            hard[row] = some = True
            continue
        values[row] = -value if negative else value
    return some
