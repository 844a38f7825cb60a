"""Reports that people randomise themselves: which law a price allows, what one person sends, what the sum says."""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import asinh, ceil, exp, isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

from hazemap.encoders import Encoder
from hazemap.errors import InputError
from hazemap.federated.trust.cohort_assumptions import Cohort
from hazemap.federated.trust.device_tasks import MOST_LOCAL
from hazemap.federated.trust.report_batch import ReportBatch
from hazemap.machine_code.arrays import Ints
from hazemap.privacy.amplification.neighbours import ReportNeighbours
from hazemap.privacy.amplification.zcdp_of_sum import LEAST_DELTA, zcdp_of_sum
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from hazemap.privacy.local_randomisers import Asymmetric, Randomiser, Symmetric, UnaryEncoding
from hazemap.privacy.random_stream import Stream
from hazemap.queries.noisy_queries import Answer

ROUNDING = 0.25  # the variance of rounding a number up or down at random, at most
_STEP = 30  # shares are multiples of 2^−30
_DEAREST = 64  # a share that is asked for is at most this
_STEPS_OF_EPSILON = 32
_FINE = 1 << 48  # of the chance of a bit that is not set
_KEEPS, _LEAST_KEEP = 64, 32  # that of a bit that is set is a multiple of 1/64, from 1/2
MOST = 2.0**62
"""Larger numbers are cut down to this one: a little ε makes them, and no crowd."""


ReportLaw = Symmetric | Asymmetric | UnaryEncoding


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


def law_for_numbers(price: PureDP | ZCDP, honest: int, most: Fraction, size: int) -> ReportLaw:
    """The randomiser with the least noise in so many numbers together, of which people hold one each.

    Its mean variance is that of a number that 1/size of the people hold, however they are spread: it is linear in how
    many do. `UnaryEncoding` where that is 2 % less than with `law_for`: few numbers, or large ones.

    >>> [round(chance, 3) for chance in law_for_numbers(ZCDP("0.001"), 10_000, Fraction(8), 4).chances]
    [0.922, 0.059]
    """
    plain = law_for(price, honest, most)
    if isinstance(plain, Symmetric) or isinstance(price, PureDP):
        return plain
    return _with_two_chances(price.rho, honest, most, Fraction(1, size), plain) or plain


@lru_cache(maxsize=4096, typed=True)
def _largest(rho: Fraction, honest: int, most: int) -> int:
    """The most steps of 1/32 that ρ buys, sought from where Gaussian noise of the same variance has it."""

    def enough(steps: int) -> bool:
        law = Asymmetric(Fraction(steps, _STEPS_OF_EPSILON)).bit_flips
        return zcdp_of_sum(law, honest, ReportNeighbours.REMOVAL).rho <= rho

    guess = int(2 * asinh(sqrt(2 * honest * float(rho))) * _STEPS_OF_EPSILON) + 1
    low, high, step = min(most, guess), min(most, guess) + 1, 2
    while low and not enough(low):
        low, high, step = max(0, low - step), low, 2 * step
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if enough(middle) else (low, middle)
    return low


@lru_cache(maxsize=4096, typed=True)
def _with_two_chances(
    rho: Fraction, honest: int, most: Fraction, share: Fraction, plain: Asymmetric
) -> UnaryEncoding | None:
    """The unary encoding that counts best what a share of the people hold; None where it gains less than 2 %.

    A price of the sum fixes the variance of an empty number, whatever p is; p only moves what its own people add, about
    one each for p = ½ and nothing for p = 1 − q (docs/concepts/amplification.md). So for each p the least q is guessed
    from Gaussian noise and the local cap, and of the best p it is raised until `zcdp_of_sum` allows it. That no other
    pair is better is not proved; its price is.
    """

    def variance(keep: float, turn_on: float) -> float:
        empty = turn_on * (1 - turn_on)
        return (empty + float(share) * (keep * (1 - keep) - empty)) / (keep - turn_on) ** 2

    def guess(keep: float) -> float:
        empty = 1 / (2 * honest * float(rho))  # q(1 − q)/(p − q)²: the larger root of a quadratic equation in q
        b, a = 1 + 2 * empty * keep, 1 + empty
        by_price = (b - sqrt(max(b * b - 4 * a * empty * keep * keep, 0.0))) / (2 * a)
        return max(by_price, keep / (keep + exp(float(most)) * (1 - keep)) * (1 + 1e-9))

    goal, found = 0.98 * variance(*plain.chances), None
    best = min(range(_LEAST_KEEP, _KEEPS), key=lambda step: variance(step / _KEEPS, guess(step / _KEEPS)))
    for step in range(best, _LEAST_KEEP - 1, -4):  # skewness makes the guess too low where p is near 1 − q
        if variance(step / _KEEPS, guess(step / _KEEPS)) > goal:
            break
        law = _least_turn_on(rho, honest, most, Fraction(step, _KEEPS), guess(step / _KEEPS))
        if law is not None and variance(*law.chances) <= goal:
            goal, found = variance(*law.chances), law
        elif found is not None:
            break
    return found


def _least_turn_on(rho: Fraction, honest: int, most: Fraction, keep: Fraction, turn_on: float) -> UnaryEncoding | None:
    """About the least q that ρ and the cap allow, from a guess that may be too low; None where none is found."""
    for _ in range(8):
        if not turn_on < float(keep):
            return None
        law = UnaryEncoding(keep, Fraction(ceil(turn_on * _FINE), _FINE))
        found = zcdp_of_sum(law.bit_flips, honest, ReportNeighbours.REMOVAL).rho
        if found <= rho and law.replacement <= most:
            return law
        turn_on *= max(float(found / rho), 1.0) * 1.001
    return None


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


def debiased(law: Randomiser, sums: Ints, people: int, stream: Stream, blank: int = 0) -> Answer:
    """The answer that a sum of reports gives: unbiased numbers, rounded up or down at random so that they stay so.

    Besides those of the `people` so many `blank` reports, of nobody, are in the sums. Rounding adds at most ¼ to the
    variance, which is stated with it. Where the variance depends on the count, the noisy one is put in.
    """
    reports = people + blank
    numbers = law.unbiased(sums, reports)
    luck = (stream.words(len(numbers)) >> np.uint64(11)) * 2.0**-53
    variance = law.variance(reports, numbers) + ROUNDING
    constant = variance[:1] if len(variance) and (variance == variance[0]).all() else variance
    whole = np.clip(np.floor(numbers + luck), -MOST, MOST).astype(np.int64)
    shape = law.kurtosis(reports), people, law.skewness(reports), law.chances
    return Answer(whole, np.sqrt(constant), *shape, blank or None)


def stddev_of(law: Randomiser, people: int, size: int, blank: int = 0) -> float:
    """Of each number, where people are spread evenly; with so many reports of nobody more."""
    return sqrt(float(law.variance(people + blank, np.array([people / max(size, 1)]))[0]) + ROUNDING)


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
    """What a share of a budget buys in sums of randomised reports: of a cohort's secure sums, or of two servers' batch.

    A cohort is priced where as many people answer as it declares, a batch where everybody who is asked reports.

    >>> from hazemap.encoders import Counts
    >>> from hazemap.cells import Leaves
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> prices = ReportPrices(ApproxDP(1, "1e-6"), Cohort(100_000, 10_000), Fraction(8))
    >>> counts = Counts(Leaves.at_level(Quadtree.world(depth=1), 1))
    >>> prices.law(Fraction(1, 10), 1 << 20), round(prices.stddev(counts, Fraction(1, 10)), 1)
    (Asymmetric(epsilon=Fraction(9, 2)), 88.6)
    >>> ReportPrices(ApproxDP(1, "1e-6"), ReportBatch(100_000, 90_000), Fraction(8)).law(Fraction(1, 10), 1 << 20)
    Asymmetric(epsilon=Fraction(59, 8))
    """

    budget: Budget
    cohort: Cohort | ReportBatch
    most: Fraction

    def __post_init__(self) -> None:
        check_budget(self.budget)
        check_most(self.most)

    def law(self, share: Fraction, size: int) -> ReportLaw:
        """The randomiser of a round of so many numbers: everybody's, in all its shards."""
        return law_for_numbers(self.budget.part(share), self.honest, self.most, size)

    @property
    def honest(self) -> int:
        """People whose reports are certain to be in any sum that is opened."""
        return self.cohort.fewest_honest if isinstance(self.cohort, Cohort) else self.cohort.honest

    @property
    def people(self) -> int:
        """How many reports are in all sums together: the least of a cohort, everybody's of a batch."""
        if isinstance(self.cohort, Cohort):
            return sum(self.cohort.survivors(size) for size in self.cohort.shards)
        return self.cohort.people

    @property
    def blank(self) -> int:
        """Reports of nobody that two servers add."""
        return 0 if isinstance(self.cohort, Cohort) else self.cohort.blank

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        """The standard deviation of the noise in each sum."""
        return stddev_of(self.law(share, encoder.size), self.people, encoder.size, self.blank)

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """The least multiple of 2^−30 that buys a standard deviation this small by `law_for`; 64 if no share will do.

        `law_for_numbers` may then have less noise: it is not searched for each share that is tried.
        """

        def plain(share: Fraction) -> float:
            law = law_for(self.budget.part(share), self.honest, self.most)
            return stddev_of(law, self.people, encoder.size, self.blank)

        return least_share(plain, stddev)
