"""Binomial numbers of one coin and one number of tosses, each from one word: a certified table of its distribution.

A number K with P(K ≤ k) = F(k) is the least k with U < F(k), for a uniform U. The table holds integers around
F(k) · 2ⁿ; n digits of U settle K, but for a chance of about 2^−n a step, and then more digits are drawn and a finer
table is made. So nothing is cut off, and no float decides.

Terms are computed in units of 2^−w of the largest, from it outward, each rounded down. There the ratios of neighbours
are at most 1, so an error of less than one unit a step stays less than one unit a step. F falls as the coin's
probability p grows, so p's digits, rounded down and up, give both sides.
"""

from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from hazemap.errors import InputError
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers.bernoulli import Digits

MOST_TOSSES = 1 << 32

_WORD = 64
_SPARE = 128  # more digits of terms than of the table: below 2³² tosses err by less than 2⁶⁶ units


class _Table(NamedTuple):
    """F(first + i) · 2ⁿ is at least low[i] and below high[i]."""

    first: int
    low: list[int]
    high: list[int]
    words: np.ndarray[tuple[int], np.dtype[np.uint64]]


def heads(stream: Stream, coin: Digits) -> bool:
    """One toss: U < p, by as many digits as it takes; nearly always 64."""
    known, uniform = _WORD, int(stream.words(1)[0])
    while True:
        digits = coin.digits(known)
        if uniform != digits:
            return uniform < digits
        known, uniform = known + _WORD, uniform << _WORD | int(stream.words(1)[0])


def number_of_heads(stream: Stream, coin: Digits, tosses: int) -> int:
    """How many of some tosses show heads: exact, some microseconds. The first time O(√tosses) to make the table.

    >>> from fractions import Fraction
    >>> from hazemap.privacy.samplers.bernoulli import Coin
    >>> 0 <= number_of_heads(Stream.from_os(), Coin(Fraction(4), plus=1), 4_096) <= 4_096
    True
    """
    if not 0 <= tosses <= MOST_TOSSES:
        raise InputError(f"a coin is tossed 0 to 2^32 times, not {tosses}")
    if not tosses:
        return 0
    word = stream.words(1)
    table = _table(coin, tosses, _WORD)
    above = int(table.words.searchsorted(word[0], "right"))
    uniform, digits = int(word[0]), _WORD
    while above and uniform < table.high[above - 1]:  # between the two bounds of F
        uniform, digits = uniform << _WORD | int(stream.words(1)[0]), digits + _WORD
        table = _table(coin, tosses, digits)
        above = bisect_right(table.low, uniform)
    return table.first + above


@lru_cache(maxsize=256)
def _table(coin: Digits, tosses: int, digits: int) -> _Table:
    known = digits + _SPARE + tosses.bit_length()
    down = coin.digits(known)
    first, _, most = _sums(down, known, tosses, digits)
    other, lower, _ = _sums(down + 1, known, tosses, digits)
    start, end = min(first, other), max(first + len(most), other + len(lower))
    low = [_at(lower, each - other, 0, (1 << digits) - 1) for each in range(start, end)]
    high = [_at(most, each - first, 1, 1 << digits) for each in range(start, end)]
    if start:  # what is below the table is all but impossible
        start, low, high = start - 1, [0, *low], [1, *high]
    if end == tosses + 1:  # F(tosses) = 1, and the last of the table need not be asked for
        low, high = low[:-1], high[:-1]
    return _Table(start, low, high, np.array([each for each in low if each < 1 << _WORD], dtype=np.uint64))


def _at(bounds: list[int], place: int, before: int, after: int) -> int:
    if place < 0:
        return before
    return bounds[place] if place < len(bounds) else after


def _sums(p: int, known: int, tosses: int, digits: int) -> tuple[int, list[int], list[int]]:
    """For the probability p/2^known: the first k, and bounds of F(k) · 2^digits from below and above."""
    mode = min(tosses, (tosses + 1) * p >> known)
    other = (1 << known) - p
    unit = 1 << digits + _SPARE
    up = [*_terms(unit, (((tosses - k) * p, (k + 1) * other) for k in range(mode, tosses)))]
    down = [*_terms(unit, ((k * other, (tosses - k + 1) * p) for k in range(mode, 0, -1)))]
    terms = [*reversed(down), unit, *up]
    first = mode - len(down)
    error = (tosses + 1) ** 2  # each term is low by less than its distance; those left out are below theirs
    total = sum(terms)
    sums = [*accumulate(terms)]
    low = [(each << digits) // (total + error) for each in sums]
    high = [min((each + error << digits) // total + 1, 1 << digits) for each in sums]
    return first, low, high


def _terms(unit: int, ratios: Iterable[tuple[int, int]]) -> Iterable[int]:
    """Terms from the largest on, until one is below a unit."""
    term = unit
    for top, bottom in ratios:
        term = term * top // bottom
        if not term:
            return
        yield term
