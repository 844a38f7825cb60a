"""What one person does to a vector that is 1 in one place and 0 elsewhere, before it leaves them.

Randomised response (Warner 1965), a coin for every place. The functions of sums draw, undo and describe what becomes
of the reports of many people together.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import exp, expm1, sinh
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Floats, Ints
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers.bernoulli import Coin, binomial, fair, spread, toss

_MOST = 500.0  # above it an ε leaves no noise that a float could see


class Randomiser(Protocol):
    """What one person does to their vector, and what the sum of all says of the truth."""

    def report(self, stream: Stream, place: int | None, size: int) -> NDArray[np.uint8]:
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


@dataclass(frozen=True)
class Symmetric:
    """Each bit is kept with probability e^ε/(1 + e^ε): ε-DP for the removal of a person's data.

    Neighbours: one person's vector is replaced by zeros, their report is still sent. That moves one bit, so reports
    are told apart by e^ε at most; replacing it by another person's vector moves two and costs 2ε. Unbiased:
    (e^ε + 1)/(e^ε − 1) Σ − n/(e^ε − 1), of variance n e^ε/(e^ε − 1)², whatever the count.

    >>> bits = Symmetric(Fraction(1)).report(Stream.from_os(), 3, 8)
    >>> bits.shape, round(float(Symmetric(Fraction(1)).variance(100, np.zeros(1))[0]), 2)
    ((8,), 92.07)
    """

    epsilon: Fraction

    def report(self, stream: Stream, place: int | None, size: int) -> NDArray[np.uint8]:
        """What one person sends: O(size) coins."""
        bits = spread(toss(stream, Coin(self.epsilon, plus=1), -(-size // 64)))[:size].copy()
        if place is not None:
            bits[place] ^= 1
        return bits

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

    def kurtosis(self, people: int) -> float:
        """(1 − 6q(1 − q))/(n q(1 − q)), q = 1/(e^ε + 1), for every count."""
        return _kurtosis(self.epsilon, people)


@dataclass(frozen=True)
class Asymmetric:
    """A 1 is kept with probability ½, a 0 becomes 1 with q = 1/(e^ε + 1): ε-DP for the replacement of a person's data.

    Optimised unary encoding (Wang et al. 2017): neighbours differ in the vector of one person. Unbiased:
    2(e^ε + 1)/(e^ε − 1) Σ − 2n/(e^ε − 1), of variance 4n e^ε/(e^ε − 1)² + count.

    >>> bits = Asymmetric(Fraction(1)).report(Stream.from_os(), 3, 8)
    >>> bits.shape, round(float(Asymmetric(Fraction(1)).variance(100, np.zeros(1))[0]), 1)
    ((8,), 368.3)
    """

    epsilon: Fraction

    def report(self, stream: Stream, place: int | None, size: int) -> NDArray[np.uint8]:
        """What one person sends: O(size) coins."""
        bits = spread(toss(stream, Coin(self.epsilon, plus=1), -(-size // 64)))[:size].copy()
        if place is not None:
            bits[place] = stream.below(2)
        return bits

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

    def kurtosis(self, people: int) -> float:
        """(1 − 6q(1 − q))/(n q(1 − q)), in a cell of nobody."""
        return _kurtosis(self.epsilon, people)


def _kurtosis(epsilon: Fraction, people: int) -> float:
    q = 1 / (exp(_float(epsilon)) + 1)
    return (1 - 6 * q * (1 - q)) / (people * q * (1 - q))


def _float(epsilon: Fraction) -> float:
    return float(min(epsilon, Fraction(_MOST)))
