"""The sketch of one-hot vectors (BBCGGI21, appendix C.4) over a server's shares. This module imports numba.

For shares of data x and of the authenticators k x, and random numbers r that clients do not know, a server adds up
r x, r^2 x and r k x. Of a vector that is zero but for at most a single one, these sums z of both servers fulfil
z0^2 - z1 + k z0 - z2 = 0; of any other they do with a chance of at most 2/|F|.
"""

from typing import Any

import numpy as np

from hazemap.arrays import Bytes, Words
from hazemap.jit import compiled
from hazemap.protocols.vdaf.field64_kernels import negative64, reduced64, sum64
from hazemap.protocols.vdaf.field255_kernels import (
    LongSum,
    accumulated255,
    canonical255,
    element,
    negative255,
    product255,
    reduced255,
    store,
    sum255,
)
from hazemap.protocols.vdaf.wide_multiplication import multiply_add

_multiply_add: Any = multiply_add
_ZERO, _HALF = np.uint64(0), np.uint64(32)
_NOTHING = (_ZERO, _ZERO, _ZERO)
LongWords = tuple[np.uint64, np.uint64, np.uint64]


@compiled
def finish64(
    drawn: Words, controls: Bytes, corrections: Words, negative: bool, random: Words, data: Words, sums: Words
) -> None:  # pragma: no cover - compiled
    """For each report, correct what was drawn for its nodes, keep the data, and add the sketch to `sums[report, 3]`.

    `drawn[report, node, 2]` are elements of Field64, `corrections[report, 2]` too; `random[report, node]`. The sketch
    is linear in authenticators, so their correction is added to it once; that of shares that are to be negated is that
    of the shares, negated. Products are added up in three words, and reduced once.
    """
    for report in range(data.shape[0]):
        w0, w1 = corrections[report, 0], corrections[report, 1]
        once, twice, auth, corrected = _NOTHING, _NOTHING, _NOTHING, _NOTHING
        for node in range(data.shape[1]):
            mask, r = _ZERO - np.uint64(controls[report, node]), random[report, node]
            x = sum64(drawn[report, node, 0], w0 & mask)
            data[report, node] = negative64(x) if negative else x
            low, high = _multiply_add(x, r, _ZERO, _ZERO)
            product = reduced64(low, high)
            once = accumulated64(once, product, _ZERO)
            low, high = _multiply_add(product, r, _ZERO, _ZERO)
            twice = accumulated64(twice, low, high)
            low, high = _multiply_add(drawn[report, node, 1], r, _ZERO, _ZERO)
            auth = accumulated64(auth, low, high)
            corrected = accumulated64(corrected, r & mask, _ZERO)
        low, high = _multiply_add(modulo64(corrected), w1, _ZERO, _ZERO)
        sketch = modulo64(once), modulo64(twice), sum64(modulo64(auth), reduced64(low, high))
        for i in range(3):
            sums[report, i] = sum64(sums[report, i], negative64(sketch[i]) if negative else sketch[i])


@compiled
def accumulated64(total: LongWords, low: np.uint64, high: np.uint64) -> LongWords:  # pragma: no cover - compiled
    """A sum in three words, and low + 2^64 high: of fewer than 2^63 such numbers."""
    s0 = total[0] + low
    c = np.uint64(s0 < low)
    s1 = total[1] + high
    t1 = s1 + c
    return s0, t1, total[2] + np.uint64(s1 < high) + np.uint64(t1 < c)


@compiled
def modulo64(total: LongWords) -> np.uint64:  # pragma: no cover - compiled
    """A sum in three words, the highest below 2^32, as an element of Field64: 2^128 is -2^32 there."""
    over = reduced64(total[2] << _HALF, _ZERO)
    return sum64(reduced64(total[0], total[1]), negative64(over))


@compiled
def finish255(
    values: Words, negative: bool, random: Words, data: Words, sums: Words
) -> None:  # pragma: no cover - compiled
    """For each report, keep the data of `values[report, which, leaf, 4]`, and add the sketch to `sums[report, 3, 4]`.

    The sketch of shares that are to be negated is that of the shares, negated.
    """
    zero = (_ZERO, _ZERO, _ZERO, _ZERO, _ZERO)
    for report in range(values.shape[0]):
        z0, z1, z2 = zero, zero, zero
        numbers, shares, authenticators, kept = random[report], values[report, 0], values[report, 1], data[report]
        for leaf in range(values.shape[2]):
            r = element(numbers, leaf)
            x = element(shares, leaf)
            once = product255(x, r)
            z0 = accumulated255(z0, once)
            z1 = accumulated255(z1, product255(once, r))
            z2 = accumulated255(z2, product255(element(authenticators, leaf), r))
            store(negative255(x) if negative else x, kept, leaf)
        add_to(z0, negative, sums[report], 0)
        add_to(z1, negative, sums[report], 1)
        add_to(z2, negative, sums[report], 2)


@compiled
def add_to(z: LongSum, negative: bool, sums: Words, row: int) -> None:  # pragma: no cover - compiled
    """Add a sum, or take it away."""
    x = reduced255(z)
    store(canonical255(sum255(element(sums, row), negative255(x) if negative else x)), sums, row)
