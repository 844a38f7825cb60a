"""Reports that people randomise themselves: which law a price allows, what one person sends, what the sum says."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import asinh, isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Ints
from hazemap.encoders import Encoder
from hazemap.errors import InputError
from hazemap.noisy_queries import Answer
from hazemap.privacy.amplification.neighbours import Neighbours
from hazemap.privacy.amplification.zcdp_of_sum import LEAST_DELTA, zcdp_of_sum
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from hazemap.privacy.local_randomisers import Asymmetric, Randomiser, Symmetric
from hazemap.privacy.random_stream import Stream
from hazemap.trust.cohort_assumptions import Cohort
from hazemap.trust.device_tasks import MOST_LOCAL

_ROUNDING = 0.25  # the variance of rounding a number up or down at random, at most
_STEP = 30  # shares are multiples of 2^−30
_DEAREST = 64  # a share that is asked for is at most this
_STEPS_OF_EPSILON = 32
MOST = 2.0**62
"""Larger numbers are cut down to this one: a little ε makes them, and no crowd."""


def law_for(price: PureDP | ZCDP, honest: int, most: Fraction) -> Symmetric | Asymmetric:
    """The randomiser with the least noise that a price allows in a sum of `honest` people: local ε of `most` or less.

    In pure ε that is `Symmetric`, whose removal costs ε. In ρ it is `Asymmetric` with the largest multiple of 1/32 that
    `zcdp_of_sum` allows; a share that buys none buys what a report hides by itself, ε²/2 ≤ ρ.

    >>> law_for(PureDP(1), 1_000, Fraction(8)), law_for(ZCDP("0.001"), 10_000, Fraction(8))
    (Symmetric(epsilon=Fraction(1, 1)), Asymmetric(epsilon=Fraction(69, 16)))
    """
    check_most(most)
    if isinstance(price, PureDP):
        return Symmetric(min(price.epsilon, most / 2))
    low = _largest(price.rho, honest, int(most * _STEPS_OF_EPSILON))
    if low:
        return Asymmetric(Fraction(low, _STEPS_OF_EPSILON))
    return Symmetric(min(Fraction(isqrt(int(2 * price.rho * (1 << 80))) or 1, 1 << 40), most / 2))


@lru_cache(maxsize=4096, typed=True)
def _largest(rho: Fraction, honest: int, most: int) -> int:
    """The most steps of 1/32 that ρ buys, sought from where Gaussian noise of the same variance has it."""

    def enough(steps: int) -> bool:
        law = Asymmetric(Fraction(steps, _STEPS_OF_EPSILON)).bit_flips
        return zcdp_of_sum(law, honest, Neighbours.REMOVAL).rho <= rho

    guess = int(2 * asinh(sqrt(2 * honest * float(rho))) * _STEPS_OF_EPSILON) + 1
    low, high, step = min(most, guess), min(most, guess) + 1, 2
    while low and not enough(low):
        low, high, step = max(0, low - step), low, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


def check_most(most: Fraction) -> None:
    """`InputError` unless it is a local ε that a report may have."""
    if not isinstance(most, Fraction) or not Fraction(1, _STEPS_OF_EPSILON) <= most <= MOST_LOCAL:
        raise InputError(f"the most local epsilon of a report is from 1/32 to {MOST_LOCAL}, not {most!s:.40}")


def check_budget(budget: Budget) -> Budget:
    """The budget, if sums of reports can spend it; `InputError` otherwise."""
    if isinstance(budget, ApproxDP) and budget.delta < LEAST_DELTA:
        raise InputError("where reports are randomised on devices, delta is 10^-12 or more")
    return budget


def randomised(law: Randomiser, vector: Ints, stream: Stream) -> NDArray[np.int64]:
    """What a person sends whose vector is a single 1, or zeros; anything else counts as zeros. One report a person."""
    places = np.flatnonzero(vector)
    place = int(places[0]) if len(places) == 1 and vector[places[0]] == 1 else None
    return law.report(stream, place, len(vector)).astype(np.int64)


def debiased(law: Randomiser, sums: Ints, people: int, stream: Stream) -> Answer:
    """The answer that a sum of reports gives: unbiased numbers, rounded up or down at random so that they stay so.

    That adds at most ¼ to the variance, which is stated with it. Where the variance depends on the count, the noisy one
    is put in.
    """
    numbers = law.unbiased(sums, people)
    luck = (stream.words(len(numbers)) >> np.uint64(11)) * 2.0**-53
    variance = law.variance(people, numbers) + _ROUNDING
    constant = variance[:1] if len(variance) and (variance == variance[0]).all() else variance
    whole = np.clip(np.floor(numbers + luck), -MOST, MOST).astype(np.int64)
    return Answer(whole, np.sqrt(constant), law.kurtosis(people), people, law.skewness(people), law.chances)


def stddev_of(law: Randomiser, people: int, size: int) -> float:
    """Of each number, where people are spread evenly."""
    return sqrt(float(law.variance(people, np.array([people / max(size, 1)]))[0]) + _ROUNDING)


def least_share(stddev: Callable[[Fraction], float], wanted: float) -> Fraction:
    """The least multiple of 2^−30 that buys a standard deviation this small; 64 if no share will do."""
    low, high = 0, 1
    while high < _DEAREST << _STEP and stddev(Fraction(high, 1 << _STEP)) > wanted:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if stddev(Fraction(middle, 1 << _STEP)) <= wanted else (middle, high)
    return Fraction(high, 1 << _STEP)


@dataclass(frozen=True)
class ReportPrices:
    """What a share of a budget buys in sums of reports, where as many people answer as the cohort declares.

    >>> from hazemap.encoders import Counts
    >>> from hazemap.cells import Leaves
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> prices = ReportPrices(ApproxDP(1, "1e-6"), Cohort(100_000, 10_000), Fraction(8))
    >>> counts = Counts(Leaves.at_level(Quadtree.world(depth=1), 1))
    >>> prices.law(Fraction(1, 10)), round(prices.stddev(counts, Fraction(1, 10)), 1)
    (Asymmetric(epsilon=Fraction(9, 2)), 163.1)
    """

    budget: Budget
    cohort: Cohort
    most: Fraction

    def __post_init__(self) -> None:
        check_budget(self.budget)
        check_most(self.most)

    def law(self, share: Fraction) -> Symmetric | Asymmetric:
        """The randomiser of a round: everybody's, in all its shards."""
        return law_for(self.budget.part(share), self.honest, self.most)

    @property
    def honest(self) -> int:
        """People whose reports are certain to be in the sum of the smallest shard."""
        return self.cohort.honest(self.cohort.smallest)

    @property
    def people(self) -> int:
        """How many reports are in all sums together, at least."""
        return sum(self.cohort.survivors(size) for size in self.cohort.shards)

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        """The standard deviation of the noise in each sum."""
        return stddev_of(self.law(share), self.people, encoder.size)

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """The least multiple of 2^−30 that buys a standard deviation this small; 64 if no share will do."""
        return least_share(lambda share: self.stddev(encoder, share), stddev)
