"""What a person does to a vector with at most one 1 before it leaves them: a coin for every place (Warner 1965).

A zero is turned on with probability q, the 1 is kept with p > q, and places are independent: unary encoding (Wang et
al. 2017). Two reports of people who say different things differ in the law of two places, a report of somebody who
says nothing in one:

* replacement: a report of d instead of d' is told apart by p(1 − q)/(q(1 − p)) at most;
* removal: a report of d instead of none is told apart by the larger of p/q and (1 − q)/(1 − p).

Few zeros are turned on, so a report is drawn in time proportional to those: first how many (one number from its exact
law), then which (without replacement). Nothing is rounded.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import exp, expm1, sinh, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.privacy.amplification import certified_bounds
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers.bernoulli import Coin, Digits, RationalCoin, binomial, exp_bounds, fair
from hazemap.privacy.samplers.binomial_table import heads, number_of_heads

Bits = NDArray[np.uint8]

_MOST = 500.0  # above it an ε leaves no noise that a float could see
_HALF = RationalCoin(Fraction(1, 2))
_FINE = 1 << 40  # logarithms are rounded up to multiples of 2^−40
_LONGEST = 1 << 63  # of a denominator


class Randomiser(Protocol):
    """What one person does to their vector, and what the sum of all says of the truth."""

    def __hash__(self) -> int: ...

    @property
    def chances(self) -> tuple[float, float]:
        """p, with which the 1 is kept, and q, with which a zero is turned on."""
        ...

    @property
    def bit_flips(self) -> BitFlipLaw:
        """The same law as certified bounds of both chances, by which sums of reports are priced."""
        ...

    @property
    def removal(self) -> Fraction:
        """The ε of one report against that of somebody who says nothing, rounded up."""
        ...

    @property
    def replacement(self) -> Fraction:
        """The ε of one report against that of somebody who says something else, rounded up."""
        ...

    def report(self, stream: Stream, place: int | None, size: int) -> Bits:
        """What one person sends: their vector with coins thrown over it, uint8[size]. `place` is None for zeros."""
        ...

    def sums(self, stream: Stream, counts: Ints, people: int) -> Ints:
        """The sum of the reports of `people` people of whom counts[i] have their 1 at i: drawn from its exact law."""
        ...

    def unbiased(self, sums: Ints, people: int) -> Floats:
        """The counts, from the sums of the reports."""
        ...

    def variance(self, people: int, count: Floats) -> Floats:
        """Of `unbiased`, where the count is this."""
        ...

    def kurtosis(self, people: int) -> float:
        """Excess kurtosis of `unbiased` in a cell of nobody."""
        ...

    def skewness(self, people: int) -> float:
        """Skewness of `unbiased` in a cell of nobody."""
        ...


class _Unary:
    """The part that all have in common, from the two coins."""

    @property
    def _keep(self) -> Digits:
        raise NotImplementedError

    @property
    def _turn_on(self) -> Digits:
        raise NotImplementedError

    @property
    def chances(self) -> tuple[float, float]:
        """p, with which the 1 is kept, and q, with which a zero is turned on."""
        raise NotImplementedError

    def report(self, stream: Stream, place: int | None, size: int) -> Bits:
        """What one person sends: O(places turned on), and as many bytes as there are places.

        The coin of the 1 replaces what its place was given as a zero: places are independent.
        """
        if place is not None and not 0 <= place < size:
            raise InputError(f"the place of a report is one of {size}, or none; not {place}")
        ones = number_of_heads(stream, self._turn_on, size)
        rare = min(ones, size - ones)
        bits: Bits = np.zeros(size, dtype=np.uint8)
        shift = np.uint64(64 - max(1, (size - 1).bit_length()))
        missing = rare
        while missing:  # the first `rare` different ones of uniform places: never more than are missing at a time
            places = stream.words(missing) >> shift
            bits[places[places < size]] = 1
            missing = rare - int(np.count_nonzero(bits))
        if rare != ones:
            bits ^= 1
        kept = heads(stream, self._keep)  # drawn for everybody, so that nobody takes longer
        if place is not None:
            bits[place] = kept
        return bits

    def unbiased(self, sums: Ints, people: int) -> Floats:
        """(Σ − nq)/(p − q)."""
        p, q = self.chances
        return np.asarray((sums - people * q) / (p - q), dtype=np.float64)

    def variance(self, people: int, count: Floats) -> Floats:
        """((n − count) q(1 − q) + count p(1 − p))/(p − q)²."""
        p, q = self.chances
        with_one = np.clip(count, 0, people)
        return np.asarray(((people - with_one) * q * (1 - q) + with_one * p * (1 - p)) / (p - q) ** 2)

    def kurtosis(self, people: int) -> float:
        """(1 − 6q(1 − q))/(n q(1 − q)), in a cell of nobody."""
        _, q = self.chances
        return (1 - 6 * q * (1 - q)) / (people * q * (1 - q))

    def skewness(self, people: int) -> float:
        """(1 − 2q)/√(n q(1 − q)), in a cell of nobody."""
        _, q = self.chances
        return (1 - 2 * q) / sqrt(people * q * (1 - q))


@dataclass(frozen=True)
class Symmetric(_Unary):
    """Each bit is kept with probability e^ε/(1 + e^ε): ε-DP for the removal of a person's data.

    Neighbours: one person's vector is replaced by zeros, their report is still sent. That moves one bit, so reports
    are told apart by e^ε at most; replacing it by another person's vector moves two and costs 2ε. Unbiased:
    (e^ε + 1)/(e^ε − 1) Σ − n/(e^ε − 1), of variance n e^ε/(e^ε − 1)², whatever the count.

    >>> bits = Symmetric(Fraction(1)).report(Stream.from_os(), 3, 8)
    >>> bits.shape, round(float(Symmetric(Fraction(1)).variance(100, np.zeros(1))[0]), 2)
    ((8,), 92.07)
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        _check(self)

    @property
    def _keep(self) -> Digits:
        return _Other(self.epsilon)

    @property
    def _turn_on(self) -> Digits:
        return Coin(self.epsilon, plus=1)

    @property
    def chances(self) -> tuple[float, float]:
        """e^ε/(e^ε + 1) and 1/(e^ε + 1)."""
        q = 1 / (exp(_float(self.epsilon)) + 1)
        return 1 - q, q

    @property
    def bit_flips(self) -> BitFlipLaw:
        """`BitFlipLaw.symmetric`."""
        return BitFlipLaw.symmetric(self.epsilon)

    @property
    def removal(self) -> Fraction:
        """The ε of one report against that of somebody who says nothing."""
        return self.epsilon

    @property
    def replacement(self) -> Fraction:
        """The ε of one report against that of somebody who says something else."""
        return 2 * self.epsilon

    def sums(self, stream: Stream, counts: Ints, people: int) -> Ints:
        """Those with a 1 there, less the flipped ones of them, and the flipped ones of the others."""
        lie = Coin(self.epsilon, plus=1)
        return counts - binomial(stream, lie, counts) + binomial(stream, lie, people - counts)

    def unbiased(self, sums: Ints, people: int) -> Floats:
        """(e^ε + 1)/(e^ε − 1) Σ − n/(e^ε − 1)."""
        rest = 1 / expm1(_float(self.epsilon))
        return np.asarray((1 + 2 * rest) * sums - people * rest, dtype=np.float64)

    def variance(self, people: int, count: Floats) -> Floats:
        """That is n/(4 sinh²(ε/2)), for every count."""
        return np.full(np.shape(count), people / (4 * sinh(_float(self.epsilon) / 2) ** 2))


@dataclass(frozen=True)
class Asymmetric(_Unary):
    """A 1 is kept with probability ½, a 0 becomes 1 with q = 1/(e^ε + 1): ε-DP for the replacement of a person's data.

    Optimised unary encoding (Wang et al. 2017): neighbours differ in the vector of one person. Unbiased:
    2(e^ε + 1)/(e^ε − 1) Σ − 2n/(e^ε − 1), of variance 4n e^ε/(e^ε − 1)² + count. (Algorithm 2 of the paper on
    interactive federated statistics subtracts n/(e^ε − 1), which is biased by as much.) Removal costs ln((e^ε + 1)/2).

    >>> bits = Asymmetric(Fraction(1)).report(Stream.from_os(), 3, 8)
    >>> bits.shape, round(float(Asymmetric(Fraction(1)).variance(100, np.zeros(1))[0]), 1)
    ((8,), 368.3)
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        _check(self)

    @property
    def _keep(self) -> Digits:
        return _HALF

    @property
    def _turn_on(self) -> Digits:
        return Coin(self.epsilon, plus=1)

    @property
    def chances(self) -> tuple[float, float]:
        """½ and 1/(e^ε + 1)."""
        return 0.5, 1 / (exp(_float(self.epsilon)) + 1)

    @property
    def bit_flips(self) -> BitFlipLaw:
        """`BitFlipLaw.asymmetric`."""
        return BitFlipLaw.asymmetric(self.epsilon)

    @property
    def removal(self) -> Fraction:
        """ln((e^ε + 1)/2), rounded up: it is the larger of the two, as (e^ε + 1)² ≥ 4e^ε."""
        if self.epsilon > _MOST:
            return self.epsilon
        bits = 128 + 2 * int(self.epsilon)
        low, _ = exp_bounds(self.epsilon, bits)
        return min(self.epsilon, _logarithm((Fraction(1 << bits, low) + 1) / 2))

    @property
    def replacement(self) -> Fraction:
        """The ε of one report against that of somebody who says something else."""
        return self.epsilon

    def sums(self, stream: Stream, counts: Ints, people: int) -> Ints:
        """Half of those with a 1 there, and some of the others."""
        return fair(stream, counts) + binomial(stream, Coin(self.epsilon, plus=1), people - counts)

    def unbiased(self, sums: Ints, people: int) -> Floats:
        """2(e^ε + 1)/(e^ε − 1) Σ − 2n/(e^ε − 1)."""
        rest = 1 / expm1(_float(self.epsilon))
        return np.asarray((2 + 4 * rest) * sums - 2 * people * rest, dtype=np.float64)

    def variance(self, people: int, count: Floats) -> Floats:
        """4n e^ε/(e^ε − 1)² + count."""
        variance: Floats = people / sinh(_float(self.epsilon) / 2) ** 2 + np.clip(count, 0, people)
        return variance


@dataclass(frozen=True)
class UnaryEncoding(_Unary):
    """A 1 is kept with probability `keep`, a 0 turned on with `turn_on`, both rational.

    >>> law = UnaryEncoding(Fraction(3, 4), Fraction(1, 4))
    >>> round(float(law.removal), 6), round(float(law.replacement), 6)
    (1.098612, 2.197225)
    """

    keep: Fraction
    turn_on: Fraction

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 < self.turn_on < self.keep < 1:
            raise InputError("a 1 is kept with a probability below 1, and above that with which a 0 is turned on")
        if max(self.keep.denominator, self.turn_on.denominator) >= _LONGEST:
            raise InputError("the probabilities of a report have denominators below 2^63")

    @property
    def _keep(self) -> Digits:
        return RationalCoin(self.keep)

    @property
    def _turn_on(self) -> Digits:
        return RationalCoin(self.turn_on)

    @property
    def chances(self) -> tuple[float, float]:
        """The two as floats."""
        return float(self.keep), float(self.turn_on)

    @property
    def bit_flips(self) -> BitFlipLaw:
        """`BitFlipLaw.unary`."""
        return BitFlipLaw.unary(self.keep, self.turn_on)

    @property
    def removal(self) -> Fraction:
        """Ln max(p/q, (1 − q)/(1 − p)), rounded up."""
        return _logarithm(max(self.keep / self.turn_on, (1 - self.turn_on) / (1 - self.keep)))

    @property
    def replacement(self) -> Fraction:
        """ln(p(1 − q)/(q(1 − p))), rounded up."""
        return _logarithm(self.keep / self.turn_on * (1 - self.turn_on) / (1 - self.keep))

    def sums(self, stream: Stream, counts: Ints, people: int) -> Ints:
        """Those of the ones that are kept, and those of the zeros that are turned on."""
        return binomial(stream, self._keep, counts) + binomial(stream, self._turn_on, people - counts)


@dataclass(frozen=True)
class _Other:
    """The other side of the coin of 1/(e^x + 1), whose digits never end: each of p's is one less that of 1 − p."""

    x: Fraction

    def digits(self, n: int) -> int:
        return (1 << n) - 1 - Coin(self.x, plus=1).digits(n)


def _check(randomiser: Symmetric | Asymmetric) -> None:
    check_fields(randomiser)
    if randomiser.epsilon <= 0:
        raise InputError("a report has an epsilon above 0")


def _float(epsilon: Fraction) -> float:
    return float(min(epsilon, Fraction(_MOST)))


@lru_cache(maxsize=256)
def _logarithm(number: Fraction) -> Fraction:
    """The least multiple of 2^−40 that is certified to be at least ln x, for x ≥ 1: hardly above it."""
    low, high = 0, _FINE * max(1, number.numerator.bit_length() - number.denominator.bit_length() + 1)
    bits = 128 + high // _FINE * 2
    while high - low > 1:
        middle = (low + high) // 2
        enough = exp_bounds(Fraction(middle, _FINE), bits)[1] * number <= 1 << bits
        low, high = (low, middle) if enough else (middle, high)
    return Fraction(high, _FINE)


LEAST_CHANCE = Fraction(1, 10**40)
TOO_HEAVY = Fraction(1, 1 << 40)
"""The chance that any honest report of a batch has more 1s than servers let through."""


def most_ones(law: Randomiser, size: int, chance: Fraction) -> int:
    """The least m such that a report of `size` places has more than m 1s with this chance at most. O(√size).

    1s are Bern(p) + Bin(size − 1, q); the tail is summed with bounds of every float, so m may be one too large, never
    too small.

    >>> most_ones(Symmetric(Fraction(5)), 4_096, Fraction(1, 10**9))
    65
    """
    if size < 1 or not LEAST_CHANCE <= chance < 1:
        raise InputError("the weight of a report is bounded for 1 place or more, and a chance from 10^-40 to below 1")
    p, q = law.chances
    goal = math.nextafter(float(chance), 0)
    others = certified_bounds.binomial(size - 1, q, 1 - q, goal * 1e-6)
    above = np.cumsum(others.mass[::-1])[::-1] * (1 + others.relative + len(others.mass) * 2.0**-52) + others.outside
    # P(W > m) = p P(X ≥ m) + (1 − p) P(X > m), where X counts the others' 1s
    at_least = np.append(above, others.outside)
    tail = (p * at_least[:-1] + (1 - p) * at_least[1:]) * (1 + 2.0**-50)
    enough = np.flatnonzero(tail <= goal)
    most = others.start + (int(enough[0]) if len(enough) else len(others.mass))
    return min(most, size)


def report_within(law: Randomiser, stream: Stream, place: int | None, size: int, most: int) -> Bits:
    """What one person sends, uint8[size]: drawn again while it has more than `most` 1s.

    With the bound of `most_ones` that happens to hardly anybody.
    """
    if not 1 <= most <= size:
        raise InputError(f"a report of {size:,} places has at most 1 to {size:,} of them set, not {most:,}")
    while int((bits := law.report(stream, place, size)).sum()) > most:
        pass
    return bits
