"""Noise that many people make together, so that no one of them and no server knows it."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.privacy.mechanisms import DiscreteLaplace
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers.bernoulli import exp_bounds
from hazemap.privacy.samplers.laplace import LARGEST_SCALE, shown
from hazemap.privacy.samplers.polya import polya_difference

_LIKELY = 40  # a sum leaves its modulus with probability below 2^−40
_FAR = Fraction(1 << 12)  # e^−4096 is as good as 0: less need not be computed
MOST_BITS = 62
"""The longest modulus that is looked for."""
_TILTS = tuple(Fraction(k, 16) for k in range(1, 16))  # the κ that Chernoff's bound is tried at


@dataclass(frozen=True)
class DistributedNoise:
    """Discrete Laplace noise of `scale` that `parties` people make together, each a Pólya share.

    A share is X − Y a place, X and Y from Pólya(1/N, r), r = e^(−1/scale), N = `parties`; N shares sum to discrete
    Laplace noise (Bagdasaryan et al. 2022, section 3). N is the number of people whose share is certain to be in the
    sum: shares of more people are more noise, and do not weaken the privacy that N of them give.

    >>> shares = DistributedNoise(Fraction(20), parties=800)
    >>> shares.share(Stream.from_os(), 4).shape, round(shares.stddev(900), 2), shares.bits(1000, 1, 65_536)
    ((4,), 30.0, 12)
    """

    scale: Fraction
    parties: int

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 < self.scale <= LARGEST_SCALE:
            raise InputError(f"the scale of noise must be above 0 and at most 2^50, not {shown(self.scale)}")
        if not 1 <= self.parties < 1 << 40:
            raise InputError(f"noise needs 1 to 2^40 people, not {self.parties}")

    def share(self, stream: Stream, size: int) -> NDArray[np.int64]:
        """One person's share for `size` sums: exact. Touches only the places that are not 0: 0.1 ms for 65,536."""
        return polya_difference(stream, Fraction(1, self.parties), self.scale, size)

    def together(self, stream: Stream, size: int, people: int) -> NDArray[np.int64]:
        """The sum of the shares of `people` for `size` sums, drawn at once: its law is theirs, exactly."""
        return polya_difference(stream, self._shape(people), self.scale, size)

    def stddev(self, people: int) -> float:
        """Standard deviation of the noise of this many people: √(people/N) times that of discrete Laplace."""
        return DiscreteLaplace(self.scale).stddev * math.sqrt(self._shape(people))

    def kurtosis(self, people: int) -> float:
        """Excess kurtosis of the noise of this many people: that of discrete Laplace times N/people."""
        return DiscreteLaplace(self.scale).kurtosis / float(self._shape(people))

    def bits(self, people: int, most: int, size: int) -> int:
        """Digits b of a modulus 2^b in which `size` noisy sums of `people` fit, but for a chance below 2^−40.

        Each person adds 0 … `most` to a sum, and noise. b is the least for which Chernoff's bound shows that no sum
        leaves −2^(b−1) … 2^(b−1) − 1 with that probability. Rationals only, so that all sides find the same b.

        The noise Z of a = people/N has E e^(κZ/s) = f^a, f = (cosh 1/s − 1)/(cosh 1/s − cosh κ/s), for 0 < κ < 1. As
        cosh κx − 1 = Σ (κx)^2n/(2n)! ≤ κ² (cosh x − 1), f ≤ 1/(1 − κ²); so P(Z ≥ t) ≤ (1 − κ²)^−a e^(−κt/s), and the
        same for −Z. This is summed over both ends and all sums, and the best κ counts.
        """
        if type(most) is not int or type(size) is not int or type(people) is not int:
            raise InputError("a modulus is for whole numbers of people, sums and votes")
        if most < 0 or size < 1:
            raise InputError(f"a modulus needs at least 1 sum of non-negative numbers, not {size} of at most {most}")
        return _bits(self.scale, self._shape(people), people * most, size)

    def _shape(self, people: int) -> Fraction:
        if people < 1:
            raise InputError(f"noise needs at least 1 person, not {people}")
        return Fraction(people, self.parties)


@dataclass(frozen=True)
class NoAddedNoise:
    """Nothing is added to reports that were randomised on their devices: the noise is in them.

    `parties` is the number of people whose reports are certain to be in the sum, of which its price follows.

    >>> reports = NoAddedNoise(parties=800)
    >>> reports.share(Stream.from_os(), 4).tolist(), reports.bits(1000, 1, 65_536)
    ([0, 0, 0, 0], 11)
    """

    parties: int

    def __post_init__(self) -> None:
        check_fields(self)
        if not 1 <= self.parties < 1 << 40:
            raise InputError(f"noise is made by 1 to 2^40 people together, not by {self.parties}")

    def share(self, stream: Stream, size: int) -> NDArray[np.int64]:  # noqa: ARG002 - as `DistributedNoise.share`
        """Zeros."""
        return np.zeros(size, dtype=np.int64)

    def bits(self, people: int, most: int, size: int) -> int:  # noqa: ARG002 - as `DistributedNoise.bits`
        """Digits b of a modulus 2^b in which sums of 0 … `most` of `people` fit: always, 0 … 2^(b−1) − 1."""
        if type(most) is not int or type(people) is not int or people < 1 or most < 0:
            raise InputError("a modulus is for whole numbers of people, 1 or more, and votes, 0 or more")
        return (people * most).bit_length() + 1


@lru_cache(maxsize=1024, typed=True)
def _bits(scale: Fraction, shape: Fraction, largest: int, size: int) -> int:
    """The least b with size · (P(Z ≥ 2^(b−1) − largest) + P(−Z ≥ 2^(b−1) + 1)) < 2^−40 by Chernoff's bound."""
    b = largest.bit_length() + 1
    if b > MOST_BITS:
        raise InputError(f"sums of up to {largest:.3g} do not fit {MOST_BITS} bits: ask fewer people together")
    while not any(_fits(tilt, scale, shape, ((1 << b - 1) - largest, (1 << b - 1) + 1), size) for tilt in _TILTS):
        b += 1
        if b > MOST_BITS:  # so it ends for more than 2^62 sums too, which no modulus of rounded bounds is enough for
            raise InputError(f"{size:.3g} sums with noise of scale {shown(scale)} do not fit {MOST_BITS} bits")
    return b


def _fits(tilt: Fraction, scale: Fraction, shape: Fraction, ends: tuple[int, int], size: int) -> bool:
    exponents = [min(tilt * end / scale - shape * _moment(tilt), _FAR) for end in ends]
    if min(exponents) < 27:  # e^−27 > 2^−40
        return False
    bits = _LIKELY + 64
    return size * sum(exp_bounds(exponent, bits)[1] for exponent in exponents) < 1 << bits - _LIKELY


@lru_cache(maxsize=len(_TILTS))
def _moment(tilt: Fraction) -> Fraction:
    """The least multiple c of 2^−20 with e^−c ≤ 1 − κ²: hardly above −ln(1 − κ²)."""
    low, high = 0, 4 << 20  # e^−4 < 1 − (15/16)²
    while high - low > 1:
        middle = (low + high) // 2
        enough = exp_bounds(Fraction(middle, 1 << 20), 64)[1] <= (1 - tilt**2) * (1 << 64)
        low, high = (low, middle) if enough else (middle, high)
    return Fraction(high, 1 << 20)
