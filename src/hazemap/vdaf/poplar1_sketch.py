"""The sketch of one-hot vectors (BBCGGI21, appendix C.4) over a server's shares. This module imports numba.

For shares of data x and of the authenticators k x, and random numbers r that clients do not know, a server adds up
r x, r^2 x and r k x. Of a vector that is zero but for at most a single one, these sums z of both servers fulfil
z0^2 - z1 + k z0 - z2 = 0; of any other they do with a chance of at most 2/|F|.
"""

from typing import Any

import numpy as np

from hazemap.machine_code.arrays import Bytes, Words
from hazemap.machine_code.jit import compiled, inlined
from hazemap.vdaf.field64_kernels import mask64, negative64, reduced64, sum64
from hazemap.vdaf.field255_kernels import (
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
from hazemap.vdaf.wide_multiplication import multiply_add

_multiply_add: Any = multiply_add
_ZERO, _HALF, _LOW = np.uint64(0), np.uint64(32), np.uint64(2**32 - 1)
_TOGETHER = 1 << 12
"""Nodes whose products are added up before they are reduced."""
FourWords = tuple[np.uint64, np.uint64, np.uint64, np.uint64]


@compiled
def finish64(
    drawn: Words, controls: Bytes, corrections: Words, negative: bool, random: Words, data: Words, sums: Words
) -> None:  # pragma: no cover - compiled
    """For each report, correct what was drawn for its nodes, keep the data, and add the sketch to `sums[report, 3]`.

    `drawn[report, node, 2]` are elements of Field64, `corrections[report, 2]` too; `random[report, node]`. The sketch
    is linear in authenticators, so their correction is added to it once; that of shares that are to be negated is that
    of the shares, negated.
    """
    nodes = data.shape[1]
    for report in range(data.shape[0]):
        pairs = drawn[report].reshape(2 * nodes)
        for first in range(0, nodes, _TOGETHER):
            last = min(nodes, first + _TOGETHER)
            once, twice, auth, corrected = sketch64(
                pairs[2 * first : 2 * last],
                controls[report][first:last],
                corrections[report, 0],
                negative,
                random[report][first:last],
                data[report][first:last],
            )
            low, high = _multiply_add(corrected, corrections[report, 1], _ZERO, _ZERO)
            sketch = once, twice, sum64(auth, reduced64(low, high))
            for i in range(3):
                sums[report, i] = sum64(sums[report, i], negative64(sketch[i]) if negative else sketch[i])


@compiled
def sketch64(
    pairs: Words, controls: Bytes, correction: np.uint64, negative: bool, random: Words, data: Words
) -> FourWords:  # pragma: no cover - compiled
    """Of fewer than 2^29 nodes: keep the data; the sums of r x, r^2 x, r y, and r of the nodes with control bits.

    x is what is drawn first for a node, corrected; y what is drawn second. There is no branch, and no number is longer
    than a word: products are added up as four halves of words each, and reduced once.
    """
    o0, o1, c0, c1 = _ZERO, _ZERO, _ZERO, _ZERO
    t0, t1, t2, t3 = _ZERO, _ZERO, _ZERO, _ZERO
    a0, a1, a2, a3 = _ZERO, _ZERO, _ZERO, _ZERO
    for node in range(data.size):
        mask, r = mask64(controls[node] != 0), random[node]
        x = sum64(pairs[2 * node], correction & mask)
        data[node] = negative64(x) if negative else x
        h0, h1, h2, h3 = halves(x, r)
        middle = h1 + (h0 >> _HALF)
        product = reduced64((h0 & _LOW) | (middle << _HALF), h2 + (middle >> _HALF) + (h3 << _HALF))
        o0, o1 = o0 + (product & _LOW), o1 + (product >> _HALF)
        h0, h1, h2, h3 = halves(product, r)
        t0, t1, t2, t3 = t0 + h0, t1 + h1, t2 + h2, t3 + h3
        h0, h1, h2, h3 = halves(pairs[2 * node + 1], r)
        a0, a1, a2, a3 = a0 + h0, a1 + h1, a2 + h2, a3 + h3
        c0, c1 = c0 + (r & mask & _LOW), c1 + ((r & mask) >> _HALF)
    return (
        of_halves(o0, o1, _ZERO, _ZERO),
        of_halves(t0, t1, t2, t3),
        of_halves(a0, a1, a2, a3),
        of_halves(c0, c1, _ZERO, _ZERO),
    )


@inlined
def halves(x: np.uint64, y: np.uint64) -> FourWords:  # pragma: no cover - compiled
    """The product x y as four numbers below 2^34, in steps of 2^32, of which carries are not taken."""
    x0, x1, y0, y1 = x & _LOW, x >> _HALF, y & _LOW, y >> _HALF
    p, q, s, t = x0 * y0, x0 * y1, x1 * y0, x1 * y1
    return p & _LOW, (p >> _HALF) + (q & _LOW) + (s & _LOW), (q >> _HALF) + (s >> _HALF) + (t & _LOW), t >> _HALF


@compiled
def of_halves(h0: np.uint64, h1: np.uint64, h2: np.uint64, h3: np.uint64) -> np.uint64:  # pragma: no cover - compiled
    """The element h0 + 2^32 h1 + 2^64 h2 + 2^96 h3 of any four words: 2^96 is -1 in Field64."""
    low = sum64(reduced64(h0, _ZERO), reduced64(h1 << _HALF, h1 >> _HALF))
    return sum64(low, sum64(reduced64(_ZERO, h2), negative64(reduced64(h3, _ZERO))))


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
