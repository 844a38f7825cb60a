"""Arithmetic modulo 2^64 - 2^32 + 1 on words below it. This module imports numba."""

import numpy as np

from hazemap.machine_code.arrays import Words
from hazemap.machine_code.jit import compiled, inlined

MODULUS_64 = np.uint64(2**64 - 2**32 + 1)
_ZERO = np.uint64(0)
_LOW_HALF = np.uint64(2**32 - 1)
_HALF = np.uint64(32)


@inlined
def mask64(condition: bool | np.bool_) -> np.uint64:  # pragma: no cover - compiled
    """All ones where something is so, and zeros where it is not: loops without branches become ones of vectors."""
    return _ZERO - np.uint64(condition)


@inlined
def reduced64(low: np.uint64, high: np.uint64) -> np.uint64:  # pragma: no cover - compiled
    """The number low + 2^64 high modulo 2^64 - 2^32 + 1: 2^64 is 2^32 - 1 there, and 2^96 is -1."""
    top, rest = high >> _HALF, high & _LOW_HALF
    x = low - top - (_LOW_HALF & mask64(low < top))
    y = (rest << _HALF) - rest
    total = x + y
    total += _LOW_HALF & mask64(total < y)
    return total - (MODULUS_64 & mask64(total >= MODULUS_64))


@inlined
def sum64(a: np.uint64, b: np.uint64) -> np.uint64:  # pragma: no cover - compiled
    """The sum of two elements."""
    total = a + b
    return total - (MODULUS_64 & (mask64(total < a) | mask64(total >= MODULUS_64)))


@inlined
def negative64(a: np.uint64) -> np.uint64:  # pragma: no cover - compiled
    """Zero minus an element."""
    return (MODULUS_64 - a) & mask64(a != _ZERO)


@compiled
def add_into64(total: Words, more: Words) -> None:  # pragma: no cover - compiled
    """Add a vector to another, in place: arrays uint64[n, 1]."""
    sums, terms = total.reshape(total.size), more.reshape(more.size)
    for i in range(sums.size):
        sums[i] = sum64(sums[i], terms[i])
