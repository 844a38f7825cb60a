"""Noise of two servers, each of which adds the whole of it: one honest server is enough.

A server adds exact noise to its share of the sums before the share leaves it. Whoever works with the other server can
subtract that one's noise, and still sees the sums through the noise of the honest one, which alone is what was paid
for. So sums carry twice the variance that a curator's would have.

Shares are elements of a prime field. Noise goes in as its residue, and the sum of both shares is lifted to the signed
number nearest to 0. Reducing is post-processing, so the promise does not depend on the size of the field.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hazemap.errors import InputError, Refused
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.budget import Budget
from hazemap.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, noise_for
from hazemap.privacy.random_stream import Stream
from hazemap.tables.contribution_bounding import Sensitivity

LEAST_MODULUS = 1 << 63
"""Noise of the largest scale that is drawn leaves a field of so many elements with a chance below e^−4096."""

_FARTHEST = 1 << 62


@dataclass(frozen=True)
class TwoServerNoise:
    """Discrete Laplace or discrete Gaussian noise that each of two servers adds, independently of the other.

    `each` is the noise of one server: the whole price. Of two equal independent laws the variance adds and the excess
    kurtosis halves.

    >>> from fractions import Fraction
    >>> noise = TwoServerNoise(DiscreteLaplace(Fraction(10)))
    >>> round(noise.each.stddev, 3), round(noise.stddev, 3), round(noise.kurtosis, 3)
    (14.136, 19.992, 1.503)
    >>> noise.share(Stream.from_os(), 4).shape
    (4,)
    """

    each: DiscreteLaplace | DiscreteGaussian

    @classmethod
    def within(cls, budget: Budget, sensitivity: Sensitivity) -> "TwoServerNoise":
        """The noise that protects integer sums within this budget against either server and all who see the result.

        >>> from hazemap.privacy.budget import ZCDP
        >>> TwoServerNoise.within(ZCDP(1), Sensitivity(1, 1)).each
        DiscreteGaussian(variance=Fraction(1, 2))
        """
        return cls(noise_for(budget, sensitivity))

    @property
    def stddev(self) -> float:
        """The standard deviation of the noise of both: √2 times that of one."""
        return math.sqrt(2) * self.each.stddev

    @property
    def kurtosis(self) -> float:
        """The excess kurtosis of the noise of both: half that of one."""
        return self.each.kurtosis / 2

    @property
    def fits(self) -> bool:
        """Whether it can be drawn as 64-bit integers."""
        return self.each.fits

    @property
    def widest(self) -> "TwoServerNoise":
        """The widest that fits."""
        return TwoServerNoise(self.each.widest)

    def share(self, stream: Stream, size: int) -> Ints:
        """What one server adds to its share of `size` sums: fresh exact noise, int64[size]."""
        return self.each.draw(stream, size)

    def together(self, stream: Stream, size: int) -> Ints:
        """What both add, for `size` sums: drawn one after the other, int64[size]."""
        return self.share(stream, size) + self.share(stream, size)


def residues(numbers: Ints, modulus: int) -> list[int]:
    """Signed numbers as elements of a prime field, each in 0 … modulus − 1. O(size).

    >>> residues(np.array([-1, 5]), 2**64 - 2**32 + 1)
    [18446744069414584320, 5]
    """
    _check(modulus)
    return [number % modulus for number in numbers.tolist()]


def lifted(elements: Iterable[int], modulus: int) -> Ints:
    """Elements of a prime field as the signed numbers nearest to 0, int64. O(size).

    `InputError` for what is no element; `Refused` for a number that no sum and no noise comes to: then a share is not
    what it should be, such as one of another batch.

    >>> lifted([2**64 - 2**32, 5], 2**64 - 2**32 + 1)
    array([-1,  5])
    """
    _check(modulus)
    numbers = [int(element) for element in elements]
    if any(not 0 <= number < modulus for number in numbers):
        raise InputError("an element of a field is a whole number from 0 to below its modulus")
    signed = [number - modulus if 2 * number > modulus else number for number in numbers]
    if any(abs(number) > _FARTHEST for number in signed):
        raise Refused(
            "the two shares do not add up to sums that people and noise can have made: they are not of the same batch "
            "and the same question, or one of them was changed; ask both servers for the shares of one collection"
        )
    return np.array(signed, dtype=np.int64)


def _check(modulus: int) -> None:
    if type(modulus) is not int or modulus < LEAST_MODULUS:
        raise InputError("noise is added in fields of at least 2^63 elements, so that it does not wrap around")
