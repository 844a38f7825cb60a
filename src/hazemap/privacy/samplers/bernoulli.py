"""Exact Bernoulli samples of irrational probability, 64 at a time.

To toss a coin of probability p = 0.p₁p₂p₃… (binary): toss a fair coin until it shows tails; if that took G
tosses, the answer is the digit p_G. As P(G = d) = 2^−d, P(heads) = Σ 2^−d p_d = p exactly. Two digits are
read on average, and as many as it takes: nothing is cut off. The digits are certified with integers.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.privacy.random_stream import Stream

Lanes = NDArray[np.uint64]  # 64 draws a word, one in each bit

_DENSE = 8  # after this many digits 3 words of 4 have no undecided lane left
_KNOWN = 64  # digits certified at first


class Digits(Protocol):
    """A coin whose probability of heads is known by its binary digits."""

    def digits(self, n: int) -> int:
        """⌊p · 2ⁿ⌋."""
        ...

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class Coin:
    """Heads with probability top / (e^x + plus), for a rational x > 0 and integers top ≥ 1, plus ≥ 0.

    x is rational and not 0, so e^x is irrational (Lambert 1761): the digits never end, and an interval
    around p that is narrow enough always settles the next one.

    >>> bin(Coin(Fraction(1)).digits(12)), 1 / 2.718281828459045 * 2**12 // 1
    ('0b10111100010', 1506.0)
    """

    x: Fraction
    top: int = 1
    plus: int = 0

    def digits(self, n: int) -> int:
        """⌊p · 2ⁿ⌋: the first n binary digits of p."""
        return _digits(self.x, self.top, self.plus, n)


@lru_cache(maxsize=4096)
def _digits(x: Fraction, top: int, plus: int, n: int) -> int:
    bits = n + 32
    while True:  # p = top·E / (1 + plus·E) grows with E = e^−x
        low, high = ((top * e << n) // ((1 << bits) + plus * e) for e in exp_bounds(x, bits))
        if low == high:
            return low
        bits *= 2


def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers with low ≤ e^(−x) · 2^bits ≤ high, close together, for x > 0; rounding is outward throughout.

    e^(−x) is the 2^m-th power of e^(−x/2^m), where m makes that argument at most 1: the partial sums of its
    alternating series, whose terms then fall, lie on either side of it.
    """
    halvings = max(0, (x.numerator // x.denominator).bit_length())
    guard = bits + halvings + 16  # squaring doubles the error
    one = 1 << guard
    over = x.denominator << halvings
    term_low, term_high, low, high, k = one, one, one, one, 0
    while term_high > 1:
        k += 1
        term_low = term_low * x.numerator // (over * k)
        term_high = -(-term_high * x.numerator // (over * k))
        low, high = (low - term_high, high - term_low) if k % 2 else (low + term_low, high + term_high)
    low, high = max(low - term_high, 0), min(high + term_high, one)  # all further terms together
    for _ in range(halvings):
        low, high = low * low >> guard, -(-high * high >> guard)
    return low >> guard - bits, -(-high >> guard - bits)


def check_size(size: int) -> None:
    """`InputError` for a number of draws below 0."""
    if size < 0:
        raise InputError(f"a sampler cannot draw a negative number of values: {size}")


def toss(stream: Stream, coin: Coin, words: int) -> Lanes:
    """Toss the coin for 64 · words lanes: uint64[words], a bit 1 for heads."""
    known = _KNOWN
    digits = coin.digits(known)
    # `going` are the lanes that have only tossed heads. A lane that stops at digit d leaves `going` between
    # d − 1 and d, so adding (xor) what `going` was before and after every digit 1 leaves the winners.
    fresh = stream.words(_DENSE * words).reshape(_DENSE, words)
    going = np.full(words, np.iinfo(np.uint64).max)
    heads = np.zeros(words, dtype=np.uint64)
    last = 0
    for d in range(_DENSE):
        digit = digits >> (known - 1 - d) & 1
        if digit != last:
            heads ^= going
        going = np.bitwise_and(going, fresh[d], out=fresh[d])
        last = digit
    if last:
        heads ^= going
    position = np.flatnonzero(going)
    going = going[position]
    d = _DENSE
    while position.size:
        if d == known:
            known *= 2
            digits = coin.digits(known)
        still = going & stream.words(position.size)
        if digits >> (known - 1 - d) & 1:
            heads[position] ^= going ^ still
        left = still != 0
        position, going = position[left], still[left]
        d += 1
    return heads


def toss_once(stream: Stream, coin: Coin) -> bool:
    """Toss the coin once."""
    return bool(toss(stream, coin, 1)[0] & np.uint64(1))


def spread(lanes: Lanes) -> NDArray[np.uint8]:
    """One byte, 0 or 1, for each lane: uint8[64 · words]."""
    return np.unpackbits(lanes.astype("<u8", copy=False).view(np.uint8), bitorder="little")


_CHUNK = 1 << 18  # words at a time: 6 MB of temporary memory


def binomial(stream: Stream, coin: Digits, trials: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each entry the number of heads in that many tosses of the coin; exact. O(Σ trials/32) words in all.

    Coins are not tossed one by one. Of k people who have only tossed heads, Bin(k, ½) go on after each toss, which is
    how many of k random bits are 1; the others get the digit of the toss. So n tosses of the coin cost about 2n bits.

    >>> binomial(Stream.fixed(b"doctest"), Coin(Fraction(1), plus=1), np.array([0, 1000])).shape
    (2,)
    """
    going = np.array(trials, dtype=np.int64)
    if (going < 0).any():
        raise InputError("a coin cannot be tossed a negative number of times")
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
    """For each entry the number of heads in that many tosses of a fair coin: the ones among as many random bits."""
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


@dataclass(frozen=True)
class RationalCoin:
    """Heads with probability p, 0 < p < 1; its binary digits are those of a division.

    >>> bin(RationalCoin(Fraction(1, 3)).digits(8))
    '0b1010101'
    """

    p: Fraction

    def __post_init__(self) -> None:
        if not 0 < self.p < 1:
            raise InputError("a coin shows heads with a probability between 0 and 1")

    def digits(self, n: int) -> int:
        """⌊p · 2ⁿ⌋."""
        return (self.p.numerator << n) // self.p.denominator
