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
_ZERO = np.uint64(0)


@compiled
def finish64(
    drawn: Words, controls: Bytes, corrections: Words, negative: bool, random: Words, data: Words, sums: Words
) -> None:  # pragma: no cover - compiled
    """For each report, correct what was drawn for its nodes, keep the data, and add the sketch to `sums[report, 3]`.

    `drawn[report, node, 2]` are elements of Field64, `corrections[report, 2]` too; `random[report, node]`.
    """
    auth = np.empty(data.shape[1], dtype=np.uint64)
    sketch = np.empty(3, dtype=np.uint64)
    for report in range(data.shape[0]):
        w0, w1 = corrections[report, 0], corrections[report, 1]
        for node in range(data.shape[1]):
            mask = _ZERO - np.uint64(controls[report, node])
            x0 = sum64(drawn[report, node, 0], w0 & mask)
            x1 = sum64(drawn[report, node, 1], w1 & mask)
            data[report, node] = negative64(x0) if negative else x0
            auth[node] = negative64(x1) if negative else x1
        sketch64(data[report], auth, random[report], sketch)
        for i in range(3):
            sums[report, i] = sum64(sums[report, i], sketch[i])


@compiled
def sketch64(data: Words, auth: Words, random: Words, sums: Words) -> None:  # pragma: no cover - compiled
    """Add up the sketch of one report in Field64: `data[n]`, `auth[n]`, `random[n]`, and the `sums[3]`."""
    l0 = h0 = l1 = h1 = l2 = h2 = _ZERO
    for i in range(data.size):
        r = random[i]
        low, high = _multiply_add(data[i], r, _ZERO, _ZERO)
        once = reduced64(low, high)
        l0 += once
        h0 += np.uint64(l0 < once)
        low, high = _multiply_add(once, r, _ZERO, _ZERO)
        twice = reduced64(low, high)
        l1 += twice
        h1 += np.uint64(l1 < twice)
        low, high = _multiply_add(auth[i], r, _ZERO, _ZERO)
        product = reduced64(low, high)
        l2 += product
        h2 += np.uint64(l2 < product)
    sums[0], sums[1], sums[2] = reduced64(l0, h0), reduced64(l1, h1), reduced64(l2, h2)


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
