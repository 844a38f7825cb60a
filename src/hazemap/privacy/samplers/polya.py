"""Differences of two Pólya numbers, drawn sparse and exactly: the noise that one of many people adds.

Pólya(a, r) has P(x) = Γ(x + a)/(x! Γ(a)) · r^x (1 − r)^a. Its generating function ((1 − r)/(1 − rz))^a is that of a sum
of jumps: jumps of length j come as a Poisson process of intensity a r^j/j, for j = 1, 2, 3, …. A small a makes few
jumps, and only places with a jump are touched. A difference is made as follows (proofs: docs/concepts/noise.md).

Lengths are sorted into levels, 2^i ≤ j < 2^(i+1). Level i < K of one place and one sign is a cell, all levels from K
on are one cell together, where r^(2^K) ≤ 1/2. Points fall on every cell at rate a. A point of the last cell
goes t levels up with probability 2^−(t+1); then its j is uniform in its level, and it stays with probability
r^j · 2^i/j, times 2^(t+1) in the last cell. What stays has the intensity wanted. Seven points of ten do.

Poisson counts are drawn by inversion: a uniform real number, read as far as it takes, against certified digits.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers.bernoulli import check_size, exp_bounds
from hazemap.privacy.samplers.laplace import check_scale, discrete_laplace, shown

LARGEST_MEAN = 1 << 10

_WORD = 64


def poisson(stream: Stream, mean: Fraction, size: int) -> NDArray[np.int64]:
    """`size` numbers with P(n) = e^−m mⁿ/n!, m the mean, a rational in (0, 2¹⁰]: exact (docs/concepts/noise.md).

    A number is the least n with U < F(n) = P(0) + … + P(n), for U uniform between 0 and 1. The first 64 digits of
    U nearly always tell; where they are just those of some F(n), and in the tail, where F(n) begins with 64
    ones, U and F are read further. Costs about 30 ns a number, after a table of the mean is made (0.3 ms).

    >>> poisson(Stream.fixed(b"doctest"), Fraction(3), 4).dtype
    dtype('int64')
    """
    if not 0 < mean <= LARGEST_MEAN:
        raise InputError(
            f"the mean of a Poisson variable must be above 0 and at most {LARGEST_MEAN} here, not {shown(mean)}"
        )
    check_size(size)
    table = _first_word(mean)
    word = stream.words(size)
    drawn = np.searchsorted(table, word)  # the last entry is the largest word
    for open_ in np.flatnonzero(table[drawn] == word):
        drawn[open_] = _settled(stream, mean, int(word[open_]))
    return drawn.astype(np.int64, copy=False)


def _settled(stream: Stream, mean: Fraction, uniform: int) -> int:
    """The number, if the first 64 digits of U do not tell it."""
    n = _WORD
    while True:
        uniform = uniform << _WORD | int(stream.words(1)[0])
        n += _WORD
        digits = cumulative(mean, n)
        number = bisect_left(digits, uniform)
        if digits[number] != uniform:
            return number


@lru_cache(maxsize=256)
def _first_word(mean: Fraction) -> NDArray[np.uint64]:
    return np.array(cumulative(mean, _WORD), dtype=np.uint64)


def cumulative(mean: Fraction, n: int) -> tuple[int, ...]:
    """⌊2ⁿ F(0)⌋, ⌊2ⁿ F(1)⌋, …, to the first that is 2ⁿ − 1, as all later ones are.

    F(k) is e^−m times a rational, so it is irrational, and bounds that are narrow enough settle its digits.

    >>> [bin(digits) for digits in cumulative(Fraction(1, 2), 6)]
    ['0b100110', '0b111010', '0b111111']
    """
    bits = n + 64
    while True:
        low, high = exp_bounds(mean, bits)  # P(k) · 2^bits is between them, first for k = 0
        sum_low, sum_high, k = low, high, 0
        digits = []
        while sum_low >> bits - n == sum_high >> bits - n or sum_low >> bits - n == (1 << n) - 1:
            digits.append(sum_low >> bits - n)
            if digits[-1] == (1 << n) - 1:
                return tuple(digits)
            k += 1
            low = low * mean.numerator // (mean.denominator * k)
            high = -(-high * mean.numerator // (mean.denominator * k))
            sum_low, sum_high = sum_low + low, sum_high + high
        bits *= 2


LEAST_SHAPE = Fraction(1, 1 << 40)

_BLOCKS = 1 << 14  # blocks at a time: below 2¹⁸ points, about 20 MB of temporary memory, whatever the size
_CROWD = 8  # a block is made so large that it has 8 to 16 points, or holds all cells
_DRAWS = 1 << 19  # discrete Laplace draws at a time
_POINT = 31  # binary digits of the bounds that are computed for everyone
_FAST = 62  # lengths of more binary digits are left to Python's integers
_RARE = 12  # levels from the Kth on that are computed for everyone: one point in 2¹² of the last cell is beyond

Words = NDArray[np.uint64]


def polya_difference(stream: Stream, shape: Fraction, scale: Fraction, size: int) -> Ints:
    """`size` numbers X − Y, X and Y from Pólya(shape, e^(−1/scale)), modulo 2⁶⁴: exact (docs/concepts/noise.md).

    The sum of numbers with shapes a and b has shape a + b, and shape 1 is discrete Laplace: ⌊shape⌋ of those are
    drawn whole. The rest takes time in proportion to size · rest · log₂(scale), some 50 ns a point.

    >>> polya_difference(Stream.fixed(b"doctest"), Fraction(1, 9000), Fraction(20), 65_536).dtype
    dtype('int64')
    """
    if shape < LEAST_SHAPE:
        raise InputError(
            f"Pólya noise needs a shape of at least 2^−40, not {shown(shape)}: share it among fewer people"
        )
    check_scale(scale)
    if not 0 <= size <= 1 << 40:
        raise InputError(f"a sampler can draw 0 to 2^40 values, not {size}")
    whole, rest = divmod(shape, 1)
    drawn = np.zeros(size, dtype=np.int64)
    for start in range(0, size, _DRAWS):
        part = drawn[start : start + _DRAWS]
        rows = _DRAWS // len(part)
        for done in range(0, whole, rows):
            number = min(rows, whole - done)
            part += discrete_laplace(stream, scale, number * len(part)).reshape(number, -1).sum(axis=0)
    if rest:
        _add_jumps(stream, rest, scale, drawn)
    return drawn


def _add_jumps(stream: Stream, shape: Fraction, scale: Fraction, drawn: Ints) -> None:
    powers = _powers(scale)
    levels = powers.last + 1
    for cell in _points(stream, shape, 2 * levels * len(drawn)):
        place, level = np.divmod(cell >> 1, levels)
        sign = 1 - 2 * (cell & 1)
        last = np.flatnonzero(level == powers.last)
        level[last] += _heads(stream, len(last))
        for far in np.flatnonzero(level > powers.top):
            np.add.at(drawn, place[far], _far_jump(stream, powers, int(level[far]), int(sign[far])))
        near = np.flatnonzero(level <= powers.top)
        place, level, sign = place[near], level[near], sign[near]
        length = (stream.words(len(near)) >> 1 >> (63 - level).view(np.uint64)).view(np.int64) | 1 << level
        stays = np.flatnonzero(_stays(stream, powers, level, length))
        np.add.at(drawn, place[stays], sign[stays] * length[stays])


def _points(stream: Stream, rate: Fraction, cells: int) -> Iterator[Ints]:
    """The cells of all points of a Poisson process of this rate on each cell, a piece at a time.

    Points fall on blocks of 2^m cells, each on any cell of its block; those beyond the last cell are dropped.
    """
    m = min(ceil(_CROWD / rate - 1).bit_length(), max(cells - 1, 0).bit_length())
    blocks = -(-cells >> m)
    for start in range(0, blocks, _BLOCKS):
        counts = poisson(stream, rate * (1 << m), min(_BLOCKS, blocks - start))
        block = np.repeat(np.arange(start, start + len(counts)), counts)
        within = stream.words(len(block)) >> np.uint64(1) >> np.uint64(63 - m)
        cell = block << m | within.view(np.int64)
        yield cell[cell < cells]


def _heads(stream: Stream, n: int) -> Ints:
    """How often a fair coin shows heads before it first shows tails, n times."""
    heads = np.zeros(n, dtype=np.int64)
    going = np.arange(n)
    while going.size:
        word = stream.words(going.size)
        heads[going] += np.bitwise_count(~word & (word - np.uint64(1)))  # the zeros a word ends in: 64 for 0
        going = going[word == 0]
    return heads


@dataclass(frozen=True)
class _Powers:
    """What `_stays` has to know of r = e^(−1/scale): r^j is the product of r^(256^d · v) over the octets v of j."""

    scale: Fraction
    last: int  # K
    top: int  # the last level that is computed for everyone
    octets: Words  # [d, v]: 2³¹ r^(256^d · v) is between this and this + 2


@lru_cache(maxsize=256)
def _powers(scale: Fraction) -> _Powers:
    last = 0
    while 10 << last < 7 * scale:  # r^(2^K) ≤ e^−0.7 < 1/2
        last += 1
    octets = -(-(last + _RARE) // 8)
    table = np.empty((octets, 256), dtype=np.uint64)
    bits = _POINT + 64
    for d in range(octets):
        factor, power = exp_bounds((1 << 8 * d) / scale, bits)[0], 1 << bits
        for v in range(256):
            table[d, v] = power >> 64
            power = power * factor >> bits  # low by less than 4 · 256, in units of 2^−95
    return _Powers(scale, last, min(8 * octets, _FAST) - 1, table)


def _stays(stream: Stream, powers: _Powers, level: Ints, length: Ints) -> NDArray[np.bool_]:
    """Which points stay: U < r^j · 2^i/j · 2^c, for U uniform, decided by integers around 2³¹ of both sides."""
    bonus = np.maximum(level - (powers.last - 1), 0)  # c: t + 1 in the last cell, else 0
    power = powers.octets[0][length & 255]
    for d in range(1, len(powers.octets)):
        power = power * powers.octets[d][length >> 8 * d & 255] >> np.uint64(_POINT)
    error = 3 * len(powers.octets)  # each factor brings at most 2, and its rounding 1
    power = power.view(np.int64)
    stretched = length << np.maximum(_POINT - level, 0) >> np.maximum(level - _POINT, 0)  # 2³¹ j/2^i, rounded down
    low = (power << _POINT) // (stretched + 1) << bonus
    high = ((power + error << _POINT) // stretched + 1) << bonus
    word = stream.words(len(level))
    first = (word >> np.uint64(64 - _POINT)).view(np.int64)
    stays: NDArray[np.bool_] = first < low
    for open_ in np.flatnonzero(~stays & (first < high)):
        stays[open_] = _stays_once(stream, powers, int(level[open_]), int(length[open_]), int(word[open_]))
    return stays


def _stays_once(stream: Stream, powers: _Powers, level: int, length: int, uniform: int) -> bool:
    """The same for one point, by integers of any size; `uniform` are the first 64 digits of U."""
    n = 64
    bonus = max(level - powers.last + 1, 0)
    while True:
        bits = n + bonus + 8
        low, high = exp_bounds(length / powers.scale, bits)
        low = (low << level + bonus) // length >> bits - n
        high = -(-(high << level + bonus) // length >> bits - n)
        if uniform < low:
            return True
        if uniform >= high:
            return False
        uniform = uniform << 64 | int(stream.words(1)[0])
        n += 64


def _far_jump(stream: Stream, powers: _Powers, level: int, sign: int) -> np.int64:
    """A jump of a level beyond those that are computed for everyone, modulo 2⁶⁴; 0 if it does not stay."""
    length = (1 << level) + stream.below(1 << level)
    if not _stays_once(stream, powers, level, length, int(stream.words(1)[0])):
        return np.int64(0)
    return np.uint64(sign * length % (1 << 64)).astype(np.int64)
