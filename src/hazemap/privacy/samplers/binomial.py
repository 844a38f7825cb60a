"""How many of many irrational coins show heads, without tossing them one by one: exact.

A coin of probability p = 0.p₁p₂p₃… (binary) is tossed by fair coins: whoever shows tails for the first time at toss d
gets the digit p_d (see `coins`). Of k people Bin(k, ½) go on after each toss, which is how many of k random bits are
1. So n tosses of the coin cost about 2n bits.
"""

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers.bernoulli import Coin

_CHUNK = 1 << 18  # words at a time: 6 MB of temporary memory
_KNOWN = 64


def binomial(stream: Stream, coin: Coin, trials: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each entry the number of heads in so many tosses of the coin; exact. O(Σ trials/32) words in all.

    >>> from fractions import Fraction
    >>> binomial(Stream.fixed(b"doctest"), Coin(Fraction(1), plus=1), np.array([0, 1000])).shape
    (2,)
    """
    going = np.array(trials, dtype=np.int64)
    if (going < 0).any():
        raise InputError("a coin is tossed 0 times or more")
    heads = np.zeros_like(going)
    known, d = _KNOWN, 0
    while going.any():
        if d == known:
            known *= 2
        still = fair(stream, going)
        if coin.digits(known) >> (known - 1 - d) & 1:
            heads += going - still
        going = still
        d += 1
    return heads


def fair(stream: Stream, trials: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each entry the number of heads in so many tosses of a fair coin: the ones among as many random bits."""
    number = -(-trials // 64)
    ends = np.cumsum(number)
    starts = ends - number
    spare = (64 * number - trials).astype(np.uint64)  # bits of the last word that are nobody's
    heads = np.zeros(len(trials), dtype=np.int64)
    for begin in range(0, int(ends[-1]) if len(ends) else 0, _CHUNK):
        end = min(begin + _CHUNK, int(ends[-1]))
        words = stream.words(end - begin)
        first, last = np.searchsorted(ends, begin, "right"), np.searchsorted(starts, end, "left")
        some = slice(int(first), int(last))
        closing = np.flatnonzero((number[some] > 0) & (ends[some] <= end)) + int(first)
        words[ends[closing] - 1 - begin] >>= spare[closing]
        until = np.concatenate([[0], np.cumsum(np.bitwise_count(words), dtype=np.int64)])
        low, high = np.maximum(starts[some], begin) - begin, np.minimum(ends[some], end) - begin
        heads[some] += until[np.maximum(high, low)] - until[low]
    return heads
