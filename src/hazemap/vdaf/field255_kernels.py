"""Arithmetic modulo 2^255 - 19 on elements of four words, lowest first. This module imports numba.

`field255` does the same with arrays, and needs no compiler.
"""

from typing import Any

import numpy as np

from hazemap.machine_code.arrays import Words
from hazemap.machine_code.jit import compiled
from hazemap.vdaf.wide_multiplication import multiply_add

Element = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
LongSum = tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]

_multiply_add: Any = multiply_add
_ZERO, _ONE, _NINETEEN, _FOLD = np.uint64(0), np.uint64(1), np.uint64(19), np.uint64(38)
_TOP_BIT = np.uint64(63)
_TOP = np.uint64(2**63 - 1)
_ALL = np.uint64(2**64 - 1)
_LEAST = np.uint64(2**64 - 19)


@compiled
def product255(a: Element, b: Element) -> Element:  # pragma: no cover - compiled
    """The product of numbers below 2^256: below 2^255 + 2^11, perhaps not below the modulus."""
    a0, a1, a2, a3 = a
    b0, b1, b2, b3 = b
    p0, c = _multiply_add(a0, b0, _ZERO, _ZERO)
    p1, c = _multiply_add(a0, b1, c, _ZERO)
    p2, c = _multiply_add(a0, b2, c, _ZERO)
    p3, p4 = _multiply_add(a0, b3, c, _ZERO)
    p1, c = _multiply_add(a1, b0, p1, _ZERO)
    p2, c = _multiply_add(a1, b1, p2, c)
    p3, c = _multiply_add(a1, b2, p3, c)
    p4, p5 = _multiply_add(a1, b3, p4, c)
    p2, c = _multiply_add(a2, b0, p2, _ZERO)
    p3, c = _multiply_add(a2, b1, p3, c)
    p4, c = _multiply_add(a2, b2, p4, c)
    p5, p6 = _multiply_add(a2, b3, p5, c)
    p3, c = _multiply_add(a3, b0, p3, _ZERO)
    p4, c = _multiply_add(a3, b1, p4, c)
    p5, c = _multiply_add(a3, b2, p5, c)
    p6, p7 = _multiply_add(a3, b3, p6, c)
    p0, c = _multiply_add(p4, _FOLD, p0, _ZERO)  # 2^256 is 38
    p1, c = _multiply_add(p5, _FOLD, p1, c)
    p2, c = _multiply_add(p6, _FOLD, p2, c)
    p3, c = _multiply_add(p7, _FOLD, p3, c)
    return carried((p0, p1, p2, p3), (c << _ONE | p3 >> _TOP_BIT) * _NINETEEN)


@compiled
def accumulated255(total: LongSum, x: Element) -> LongSum:  # pragma: no cover - compiled
    """A sum of numbers below 2^256, not reduced, and one more."""
    s0 = total[0] + x[0]
    c = np.uint64(s0 < x[0])
    s1 = total[1] + x[1]
    t1 = s1 + c
    c = np.uint64(s1 < x[1]) | np.uint64(t1 < c)
    s2 = total[2] + x[2]
    t2 = s2 + c
    c = np.uint64(s2 < x[2]) | np.uint64(t2 < c)
    s3 = total[3] + x[3]
    t3 = s3 + c
    return s0, t1, t2, t3, total[4] + (np.uint64(s3 < x[3]) | np.uint64(t3 < c))


@compiled
def reduced255(total: LongSum) -> Element:  # pragma: no cover - compiled
    """A sum of fewer than 2^50 numbers, as an element."""
    return canonical255(folded(total[:4], total[4] << _ONE | total[3] >> _TOP_BIT))


@compiled
def folded(x: Element, over: np.uint64) -> Element:  # pragma: no cover - compiled
    """The lowest 255 bits of x and 2^255 times a small number, modulo 2^255 - 19; below 2^255."""
    x = carried(x, over * _NINETEEN)
    return carried(x, (x[3] >> _TOP_BIT) * _NINETEEN)


@compiled
def carried(x: Element, more: np.uint64) -> Element:  # pragma: no cover - compiled
    """The lowest 255 bits of x, plus a small number."""
    x0 = x[0] + more
    x1 = x[1] + np.uint64(x0 < more)
    x2 = x[2] + np.uint64(x1 < x[1])
    x3 = (x[3] & _TOP) + np.uint64(x2 < x[2])
    return x0, x1, x2, x3


@compiled
def sum255(a: Element, b: Element) -> Element:  # pragma: no cover - compiled
    """The sum of numbers below 2^255: below 2^255 too, perhaps not below the modulus."""
    x0 = a[0] + b[0]
    y1 = a[1] + np.uint64(x0 < a[0])
    x1 = y1 + b[1]
    y2 = a[2] + (np.uint64(y1 < a[1]) | np.uint64(x1 < y1))
    x2 = y2 + b[2]
    x3 = a[3] + b[3] + (np.uint64(y2 < a[2]) | np.uint64(x2 < y2))
    return folded((x0, x1, x2, x3), x3 >> _TOP_BIT)


@compiled
def canonical255(x: Element) -> Element:  # pragma: no cover - compiled
    """Four words below 2^255 brought below the modulus: there are 19 numbers that are not."""
    return x if below_modulus(x) else (x[0] - _LEAST, _ZERO, _ZERO, _ZERO)


@compiled
def below_modulus(x: Element) -> bool:  # pragma: no cover - compiled
    """Whether four words below 2^255 are below 2^255 - 19."""
    return bool(x[3] < _TOP or x[2] < _ALL or x[1] < _ALL or x[0] < _LEAST)


@compiled
def element(x: Words, i: int) -> Element:  # pragma: no cover - compiled
    """A row of four words."""
    return x[i, 0], x[i, 1], x[i, 2], x[i, 3]


@compiled
def store(value: Element, x: Words, i: int) -> None:  # pragma: no cover - compiled
    """Write a row of four words."""
    x[i, 0], x[i, 1], x[i, 2], x[i, 3] = value


@compiled
def negative255(x: Element) -> Element:  # pragma: no cover - compiled
    """Zero minus an element that is below the modulus."""
    if not x[0] | x[1] | x[2] | x[3]:
        return x
    y0 = _LEAST - x[0]
    b0 = np.uint64(x[0] > _LEAST)
    y1 = _ALL - x[1] - b0
    b1 = np.uint64(x[1] > _ALL - b0)
    y2 = _ALL - x[2] - b1
    b2 = np.uint64(x[2] > _ALL - b1)
    return y0, y1, y2, _TOP - x[3] - b2


@compiled
def add_into255(total: Words, more: Words) -> None:  # pragma: no cover - compiled
    """Add a vector to another, in place: arrays uint64[n, 4]."""
    for i in range(total.shape[0]):
        store(canonical255(sum255(element(total, i), element(more, i))), total, i)
