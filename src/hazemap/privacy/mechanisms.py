"""Noise as the public sees it: its law, its error bar, what it costs. Only `draw` needs a stream."""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.privacy.budget import Budget, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers import discrete_gaussian, discrete_laplace
from hazemap.privacy.samplers.gaussian import LARGEST_VARIANCE
from hazemap.privacy.samplers.laplace import LARGEST_SCALE
from hazemap.tables.contribution_bounding import Sensitivity

_STEP = 30  # shares are multiples of 2^−30
_LAST = 700.0  # e^700 is near the end of a float; numbers beyond are shown as that one


@dataclass(frozen=True)
class DiscreteLaplace:
    """P(z) = (1 − r)/(1 + r) · r^|z|, r = exp(−1/scale). Scale Δ₁/ε on integer sums is ε-DP (Ghosh et al. 2012).

    >>> noise = DiscreteLaplace(Fraction(10))
    >>> round(noise.stddev, 3), round(noise.kurtosis, 3), noise.draw(Stream.from_os(), 4).shape
    (14.136, 3.005, (4,))
    """

    scale: Fraction

    def __post_init__(self) -> None:
        if self.scale <= 0:
            raise InputError(f"the scale of noise must be above 0, not {self.scale}")

    @property
    def stddev(self) -> float:
        """√(2r)/(1 − r), written as 1/(√2 sinh(1/(2·scale))), which is accurate for every scale."""
        half = _float(1 / (2 * self.scale))
        return math.sqrt(2) * math.exp(-half) / -math.expm1(-2 * half)

    @property
    def kurtosis(self) -> float:
        """Excess kurtosis, (1 + 4r + r²)/(2r) = 2 + cosh(1/scale): 3 for wide noise, more for narrow."""
        return 2 + math.cosh(min(_float(1 / self.scale), _LAST))

    @property
    def fits(self) -> bool:
        """Whether it can be drawn as 64-bit integers."""
        return self.scale <= LARGEST_SCALE

    @property
    def widest(self) -> "DiscreteLaplace":
        """The widest that fits."""
        return DiscreteLaplace(Fraction(LARGEST_SCALE))

    def draw(self, stream: Stream, size: int) -> NDArray[np.int64]:
        """Fresh exact noise for `size` sums."""
        return discrete_laplace(stream, self.scale, size)


@dataclass(frozen=True)
class DiscreteGaussian:
    """P(z) ∝ exp(−z²/(2·variance)). Variance Δ₂²/(2ρ) on integer sums is ρ-zCDP (Canonne et al. 2020, theorem 14).

    >>> noise = DiscreteGaussian(Fraction(25))
    >>> noise.stddev, noise.kurtosis, noise.draw(Stream.from_os(), 4).shape
    (5.0, 0.0, (4,))
    """

    variance: Fraction

    def __post_init__(self) -> None:
        if self.variance <= 0:
            raise InputError(f"the variance of noise must be above 0, not {self.variance}")

    @property
    def stddev(self) -> float:
        """Standard deviation of the discrete law: never above √variance, and equal to it from 4 on."""
        moments = self._moments()
        if moments is None:
            return math.sqrt(_float(self.variance))
        second, _, total = moments
        return math.sqrt(second / total) * math.exp(-_float(1 / (4 * self.variance)))

    @property
    def kurtosis(self) -> float:
        """Excess kurtosis: 0 from variance 4 on, large for noise that is nearly always 0."""
        moments = self._moments()
        if moments is None:
            return 0.0
        second, fourth, total = moments
        return fourth * total / second**2 * math.exp(min(_float(1 / (2 * self.variance)), _LAST)) - 3

    @property
    def fits(self) -> bool:
        """Whether it can be drawn as 64-bit integers."""
        return self.variance <= LARGEST_VARIANCE

    @property
    def widest(self) -> "DiscreteGaussian":
        """The widest that fits."""
        return DiscreteGaussian(Fraction(LARGEST_VARIANCE))

    def draw(self, stream: Stream, size: int) -> NDArray[np.int64]:
        """Fresh exact noise for `size` sums."""
        return discrete_gaussian(stream, self.variance, size)

    def _moments(self) -> tuple[float, float, float] | None:
        """Σ z² w, Σ z⁴ w, with w = exp(−(z² − 1)/2v), and Σ exp(−z²/2v); None where sums equal integrals.

        By Poisson's summation formula the two differ by a factor 1 + O(v · e^(−2π²v)): below 10⁻³⁰ from v = 4 on.
        """
        if self.variance >= 4:
            return None
        z = np.arange(1.0, 80.0)  # beyond 40 standard deviations a float sees nothing
        rate = _float(1 / (2 * self.variance))
        with np.errstate(under="ignore"):
            weight = np.exp(-rate * (z * z - 1))
            total = 1 + 2 * math.exp(-rate) * float(weight.sum())
        return 2 * float((z**2 * weight).sum()), 2 * float((z**4 * weight).sum()), total


Noise = DiscreteLaplace | DiscreteGaussian


def noise_for(budget: Budget, sensitivity: Sensitivity) -> Noise:
    """The noise that protects integer sums within this budget: discrete Laplace for pure ε, else Gaussian.

    >>> noise_for(PureDP("0.5"), Sensitivity(l1=2, l2_squared=4))
    DiscreteLaplace(scale=Fraction(4, 1))
    """
    if sensitivity.l1 < 1 or sensitivity.l2_squared < 1:
        raise InputError(f"a person must be able to move a sum by at least 1, not by {sensitivity}")
    if isinstance(budget, PureDP):
        return DiscreteLaplace(sensitivity.l1 / budget.epsilon)
    return DiscreteGaussian(sensitivity.l2_squared / (2 * budget.rho))


SMALLEST_PART = Fraction(1, 1 << 22)
"""Methods ask for no smaller part of their budget, about, or for as many times more votes in one vector."""


def refuse_too_wide(budget: Budget, sensitivity: Sensitivity) -> None:
    """Raise `InputError` where a small part of the budget would buy noise that does not fit 64 bits.

    It is decided from prices alone, before anything is paid. Should a method ask for still less all the same, a
    curator answers with noise alone (`trust.curator`), and nothing fails.

    >>> refuse_too_wide(PureDP("0.001"), Sensitivity(1024, 1024**2))
    """
    if not noise_for(budget.part(SMALLEST_PART), sensitivity).fits:
        raise InputError(
            f"{budget} is so small, and a person may move sums by {sensitivity.l1:,}, that noise would not fit 64 "
            "bits: spend more, or count less per person (--bounding)"
        )


def share_for(budget: Budget, sensitivity: Sensitivity, stddev: float) -> Fraction:
    """The least multiple of 2^−30 that, as a share of the budget, buys a standard deviation this small.

    Found by bisection in `noise_for`, so that the two agree to the last bit. For pure ε it is the inverse
    of Bagdasaryan et al. 2022, equation 8 (r = ((v+1) − √(2v+1))/v, ε = −Δ ln r), rounded up. Above 1 no share will do.

    >>> share_for(PureDP(1), Sensitivity(1, 1), 100.0) * 2**30
    Fraction(15184876, 1)
    """
    if not stddev > 0:
        raise InputError(f"a standard deviation must be above 0, not {stddev}")

    def enough(steps: int) -> bool:
        return noise_for(budget.part(Fraction(steps, 1 << _STEP)), sensitivity).stddev <= stddev

    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return Fraction(high, 1 << _STEP)


def _float(value: Fraction) -> float:
    """A float, or the largest one."""
    try:
        return float(value)
    except OverflowError:
        return float(np.finfo(np.float64).max)
