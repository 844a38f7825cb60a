"""Discrete Gaussian numbers by rejection from discrete Laplace, decided by integers.

Canonne, Kamath and Steinke 2020, algorithm 3: draw y from the discrete Laplace law of scale t and keep it with
probability e^(−γ), γ = (|y| − v/t)² / 2v. Then P(y) ∝ exp(−|y|/t − γ) ∝ exp(−y²/2v).

A coin of probability e^(−γ) is the question whether an exponential number E exceeds γ. Its first digits are
one geometric number, k = ⌊2²⁰ E⌋ of scale 2²⁰, and 64-bit integers enclose γ. About one question in a
million is left open by that; it is settled with rationals and further digits of E.
"""

from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers.bernoulli import Coin, check_size, toss_once
from hazemap.privacy.samplers.laplace import LARGEST_SCALE, discrete_laplace, geometric, shown

LARGEST_VARIANCE = (LARGEST_SCALE - 1) ** 2

_CHUNK = 1 << 18  # proposals at a time: about 20 MB of temporary memory, whatever the size
_POINT = 20  # binary digits of E after the point that are drawn for everyone
_FAR = 1 << 31  # in fixed point, at least 22 standard deviations: beyond, only a lower bound is computed


def discrete_gaussian(stream: Stream, variance: Fraction, size: int) -> NDArray[np.int64]:
    """`size` numbers with P(z) ∝ exp(−z²/(2 · variance)), z = …, −1, 0, 1, …: exact (docs/concepts/noise.md).

    >>> discrete_gaussian(Stream.fixed(b"doctest"), Fraction(100), 3).dtype
    dtype('int64')
    """
    if not 0 < variance <= LARGEST_VARIANCE:
        raise InputError(
            f"the variance of noise must be above 0 and at most 2^100, not {shown(variance)}: "
            "spend more, or count less per person"
        )
    check_size(size)
    scale = isqrt(variance.numerator // variance.denominator) + 1
    drawn = np.empty(size, dtype=np.int64)
    done = 0
    while done < size:
        missing = size - done
        proposals = min(_CHUNK, missing + missing // 2 + 32)  # at least 46 % are kept, mostly 76 %
        proposed = discrete_laplace(stream, Fraction(scale), proposals)
        kept = proposed[_keep(stream, variance, scale, proposed)][:missing]
        drawn[done : done + len(kept)] = kept
        done += len(kept)
    return drawn


def _keep(stream: Stream, variance: Fraction, scale: int, proposed: NDArray[np.int64]) -> NDArray[np.bool_]:
    magnitude = np.abs(proposed)
    k = geometric(stream, Fraction(1 << _POINT), len(proposed)).view(np.int64)
    low, high = _gamma_bounds(variance, scale, magnitude)
    keep = k >= high
    for open_ in np.flatnonzero(~keep & (k + 1 > low)):
        gamma = (int(magnitude[open_]) - variance / scale) ** 2 / (2 * variance)
        keep[open_] = _exceeds(stream, int(k[open_]), gamma)
    return keep


def _gamma_bounds(
    variance: Fraction, scale: int, magnitude: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Integers with low ≤ 2²⁰ γ ≤ high for each magnitude, at most 3 apart where γ is at most 1.

    Lengths are in units of 2^−e, so that the standard deviation is between 2²⁵ and 2²⁷ of them.
    """
    e = _binary_places(variance)
    unit = Fraction(2) ** e
    centre = int(variance / scale * unit)  # rounded down
    factor = int(Fraction(1 << _POINT + 62) / (2 * variance * unit**2))  # rounded down; at most 2³¹
    far = magnitude >= -(-_FAR // unit)
    near = np.where(far, 0, magnitude)
    length = np.where(far, _FAR, near << e if e >= 0 else near >> -e)  # rounded down
    gap = np.abs(length - centre)  # |length − centre| is right to less than 1
    low = ((np.maximum(gap - 1, 0) ** 2 >> 31) * factor) >> 31
    high = ((((gap + 1) ** 2 >> 31) + 1) * (factor + 1) >> 31) + 1
    return low, np.where(far, np.iinfo(np.int64).max, high)


def _binary_places(variance: Fraction) -> int:
    """The e for which variance · 4^e lies between 2⁵⁰ and 2⁵³."""
    bits = variance.numerator.bit_length() - variance.denominator.bit_length()  # 2^(bits−1) < variance < 2^(bits+1)
    return (52 - bits) // 2


def _exceeds(stream: Stream, k: int, gamma: Fraction) -> bool:
    """Whether an exponential number whose first digits are k passes gamma; draws the digits it lacks.

    The digit worth 2^−j is 1 with probability 1 / (1 + e^(2^−j)), as in `geometric`.
    """
    places = _POINT
    while True:
        if k >= gamma * (1 << places):
            return True
        if k + 1 <= gamma * (1 << places):
            return False
        places += 1
        k = 2 * k + toss_once(stream, Coin(Fraction(1, 1 << places), plus=1))
