"""Geometric and discrete Laplace numbers from certified coins: exact, and most of the work is 64 draws at a time.

The binary digits of a geometric number are independent: if P(g) = (1 − r) r^g with r = e^(−1/s), then digit i
is 1 with probability 1 / (1 + e^(2^i/s)), because r^g is the product of r^(2^i) over the digits of g that
are 1. The digits below K are tossed; what is above them, ⌊g / 2^K⌋, is geometric with r^(2^K), and counted
coin by coin, so that no tail is cut off.
"""

from decimal import Decimal
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers.bernoulli import Coin, check_size, spread, toss

LARGEST_SCALE = 1 << 50
"""Above it noise comes near the end of 64 bits. Below, a draw passes 2⁶³ with probability about e^(−8192) at most."""

_CHUNK = 1 << 19  # draws at a time: about 11 MB of temporary memory, whatever the size
_TAIL = 8  # the first digit that is counted instead of tossed has probability at most e^−8


def geometric(stream: Stream, scale: Fraction, size: int) -> NDArray[np.uint64]:
    """`size` numbers with P(g) = (1 − r) r^g, r = exp(−1/scale), for g = 0, 1, 2, …, modulo 2⁶⁴.

    >>> geometric(Stream.fixed(b"doctest"), Fraction(2), 8).dtype
    dtype('uint64')
    """
    check_scale(scale)
    check_size(size)
    drawn = np.empty(size, dtype=np.uint64)
    for start in range(0, size, _CHUNK):
        part = drawn[start : start + _CHUNK]
        part[:] = _geometric(stream, scale, -(-len(part) // 64))[: len(part)]
    return drawn


def discrete_laplace(stream: Stream, scale: Fraction, size: int) -> NDArray[np.int64]:
    """`size` numbers with P(z) = (1 − r)/(1 + r) · r^|z|, r = exp(−1/scale): exact (docs/concepts/noise.md).

    A number is not 0 with probability 2r/(1 + r); then its magnitude is 1 + geometric and its sign is
    fair. So zero is never drawn twice, once with each sign.

    >>> discrete_laplace(Stream.fixed(b"doctest"), Fraction(10), 3).dtype
    dtype('int64')
    """
    check_scale(scale)
    check_size(size)
    other = Coin(1 / scale, top=2, plus=1)
    drawn = np.empty(size, dtype=np.int64)
    for start in range(0, size, _CHUNK):
        part = drawn[start : start + _CHUNK]
        words = -(-len(part) // 64)
        nonzero = toss(stream, other, words)
        negative = stream.words(words)
        factor = spread(nonzero).view(np.int8) - 2 * spread(nonzero & negative).view(np.int8)  # 0, 1 or −1
        magnitude = _geometric(stream, scale, words).view(np.int64)
        magnitude += 1
        np.multiply(magnitude[: len(part)], factor[: len(part)], out=part)
    return drawn


def _geometric(stream: Stream, scale: Fraction, words: int) -> NDArray[np.uint64]:
    low = 0
    while 1 << low < _TAIL * scale:
        low += 1
    octets = np.zeros((64 * words, 8), dtype=np.uint8)
    for octet in range(-(-low // 8)):
        bits = np.zeros(64 * words, dtype=np.uint8)
        for i in range(8 * octet, min(8 * octet + 8, low)):
            bits |= spread(toss(stream, Coin((1 << i) / scale, plus=1), words)) << i % 8
        octets[:, octet] = bits
    drawn = octets.view("<u8")[:, 0].astype(np.uint64, copy=False)
    tail = Coin((1 << low) / scale)
    more = toss(stream, tail, words)
    position = np.flatnonzero(more)
    more = more[position]
    while position.size:
        lane, bit = np.nonzero(spread(more).reshape(-1, 64))
        drawn[64 * position[lane] + bit] += np.uint64(1 << low)
        more &= toss(stream, tail, position.size)
        position, more = position[more != 0], more[more != 0]
    return drawn


def check_scale(scale: Fraction) -> None:
    """`InputError` for a scale of which noise would not fit 64 bits."""
    if not 0 < scale <= LARGEST_SCALE:
        raise InputError(
            f"the scale of noise must be above 0 and at most 2^50, not {shown(scale)}: "
            "spend more, or count less per person"
        )


def shown(number: Fraction) -> str:
    """A rational for a message; it may be too large for a float."""
    return f"{Decimal(number.numerator) / Decimal(number.denominator):.4g}"
