"""Arithmetic modulo 2^64 - 2^32 + 1 on words below it. This module imports numba."""

import numpy as np

from hazemap.arrays import Words
from hazemap.jit import compiled

MODULUS_64 = np.uint64(2**64 - 2**32 + 1)
_ZERO = np.uint64(0)
_LOW_HALF = np.uint64(2**32 - 1)
_HALF = np.uint64(32)


@compiled
def reduced64(low: np.uint64, high: np.uint64) -> np.uint64:  # pragma: no cover - compiled
    """The number low + 2^64 high modulo 2^64 - 2^32 + 1: 2^64 is 2^32 - 1 there, and 2^96 is -1."""
    x = low - (high >> _HALF)
    if low < (high >> _HALF):
        x -= _LOW_HALF
    y = (high & _LOW_HALF) * _LOW_HALF
    total = x + y
    if total < y:
        total += _LOW_HALF
    if total >= MODULUS_64:
        total -= MODULUS_64
    return total


@compiled
def sum64(a: np.uint64, b: np.uint64) -> np.uint64:  # pragma: no cover - compiled
    """The sum of two elements."""
    total = a + b
    return total - MODULUS_64 if total < a or total >= MODULUS_64 else total


@compiled
def negative64(a: np.uint64) -> np.uint64:  # pragma: no cover - compiled
    """Zero minus an element."""
    return MODULUS_64 - a if a else a


@compiled
def add_into64(total: Words, more: Words) -> None:  # pragma: no cover - compiled
    """Add a vector to another, in place: arrays uint64[n, 1]."""
    for i in range(total.shape[0]):
        total[i, 0] = sum64(total[i, 0], more[i, 0])
