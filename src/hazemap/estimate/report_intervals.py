"""Intervals for numbers that come from sums of randomised reports, whose noise is skewed and grows with the number.

Of n reports S have the bit of a bin: where F people hold it, S = Bin(F, p) + Bin(n − F, q). What is published is
Y, the unbiased (S − nq)/(p − q) rounded up or down at random. P_F(Y ≥ y) grows with F, so the F that neither
P_F(Y ≥ y) ≤ a nor P_F(Y ≤ y) ≤ a speaks against are an interval, and each of its ends fails with probability a at most
(Clopper and Pearson 1934). Tails are summed up exactly where the standard deviation of S is below 10; above it they are
those of Cornish and Fisher's expansion with skewness and kurtosis, which are within 10⁻⁴ there.

Symmetric margins miss: where few reports are turned on, they leave out a large number three times as often as they say
on one side (ε₀ = 8, 3 of 1,500 people: 7.6 % instead of 2.5 %).
"""

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import checked_confidence
from hazemap.machine_code.arrays import Floats

Chances = tuple[float, float]
"""p, with which a report sends its own bit as 1, and q, with which it sends another as 1."""

_EXACT = 100.0
"""Up to this variance of S tails are summed up."""


def report_intervals(chances: Chances, people: int, numbers: Floats, confidence: float) -> tuple[Floats, Floats]:
    """The ends of the interval of how many people hold each bin, whole numbers from 0 to n; float64[size] twice.

    `numbers` are whole: rounded unbiased numbers of `people` reports. Each end fails with a probability of
    (1 − confidence)/2 at most. O(different numbers · σ · log n).

    >>> low, high = report_intervals((0.5, 0.0025), 1_500, np.array([-7.0, 0.0, 40.0]), 0.95)
    >>> low.tolist(), high.tolist()
    ([0.0, 0.0, 27.0], [0.0, 9.0, 56.0])
    """
    checked_confidence(confidence)
    p, q = chances
    if not 0 <= q < p <= 1 or people < 1:
        raise InputError("reports come from 1 person or more, who send their own bit more often than another")
    each, place = np.unique(np.asarray(numbers, dtype=np.float64), return_inverse=True)
    tail = (1 - confidence) / 2
    law = _SumOfReports(p, q, people)
    # The least F with P(Y ≥ y) > a, and the most with P(Y ≤ y) > a, that is P(Y ≥ y + 1) < 1 − a.
    low = _least(lambda found, some: law.above(each[some], found[some], tail), len(each), people)
    none = _least(lambda found, some: ~law.below(each[some] + 1, found[some], 1 - tail), len(each), people + 1)
    high = np.clip(none - 1, 0, people)
    return np.minimum(low, people).astype(np.float64)[place], high.astype(np.float64)[place]


def asymmetry_margin(chances: Chances, confidence: float) -> float:
    """How much farther than ± z σ̂ an interval for a sum of such numbers has to reach, on either side.

    Let e = Σ w_i e_i be the error of a number that is made of independent ones, |w_i| ≤ 1, and σ̂² its variance with the
    noisy numbers put in. To the next order in 1/σ, e/σ̂ passes z where e passes z σ − A (z² − 1)/6 + B z²/2, with A the
    third cumulant of e and B its covariance with σ̂², both divided by σ². Of one number B is (1 − p − q)/(p − q), and A
    lies between (1 − 2p)/(p − q) and (1 − 2q)/(p − q); of a sum both are averages of these times w_i.

    >>> round(asymmetry_margin((0.5, 0.0025), 0.95), 2), round(asymmetry_margin((0.95, 0.05), 0.95), 2)
    (1.92, 0.47)
    """
    checked_confidence(confidence)
    p, q = chances
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    covariance = (1 - p - q) / (p - q)
    third = [(1 - 2 * p) / (p - q), (1 - 2 * q) / (p - q)]
    return max(abs(covariance * z2 / 2 - skew * (z2 - 1) / 6) for skew in third)


class _SumOfReports:
    """Tails of Y where F of n people hold the bin."""

    def __init__(self, p: float, q: float, people: int) -> None:
        self.p, self.q, self.people = p, q, people

    def above(self, numbers: Floats, holders: NDArray[np.int64], chance: float) -> NDArray[np.bool_]:
        """Whether P(Y ≥ y) > chance."""
        return self._compared(numbers, holders, chance)

    def below(self, numbers: Floats, holders: NDArray[np.int64], chance: float) -> NDArray[np.bool_]:
        """Whether P(Y ≥ y) < chance."""
        return ~self._compared(numbers, holders, chance, closed=True)

    def _compared(
        self, numbers: Floats, holders: NDArray[np.int64], chance: float, closed: bool = False
    ) -> NDArray[np.bool_]:
        """Whether P(Y ≥ y) > chance, or ≥ where `closed`."""
        p, q, n = self.p, self.q, self.people
        sums = np.ceil(n * q + numbers * (p - q) - 1e-9)  # the least S whose unbiased number is y or more
        part = np.clip(((sums - 1) - n * q) / (p - q) - numbers + 1, 0, 1)  # of S − 1, which may be rounded up to y
        variance = holders * p * (1 - p) + (n - holders) * q * (1 - q)
        found = np.zeros(len(numbers), dtype=np.bool_)
        few = variance <= _EXACT
        if few.any():
            tails = self._tail(sums[few], part[few], holders[few])
            found[few] = tails >= chance if closed else tails > chance
        if not few.all():
            many = ~few
            quantile = self._quantile(holders[many], variance[many], 1 - chance)
            found[many] = sums[many] - part[many] - 0.5 < quantile
        return found

    def _tail(self, sums: Floats, part: Floats, holders: NDArray[np.int64]) -> Floats:
        """P(S ≥ s) + part · P(S = s − 1): by the number i of holders whose bit is sent."""
        p, q, n = self.p, self.q, self.people
        wide = 9 * np.sqrt(holders * p * (1 - p)) + 20
        first = np.maximum(np.floor(holders * p - wide), 0)
        last = np.minimum(np.ceil(holders * p + wide), holders)
        own = first[:, None] + np.arange(int((last - first).max()) + 1)
        rest, others = sums[:, None] - own, (n - holders)[:, None].astype(np.float64)
        after = _at_least(rest, others, q) + part[:, None] * _exactly(rest - 1, others, q)
        tails: Floats = (_exactly(own, holders[:, None].astype(np.float64), p) * after).sum(axis=1)
        return tails

    def _quantile(self, holders: NDArray[np.int64], variance: Floats, level: float) -> Floats:
        """The quantile of S, by Cornish and Fisher's expansion with skewness and kurtosis."""
        p, q, n = self.p, self.q, self.people
        z = NormalDist().inv_cdf(level)
        loud, quiet = holders * p * (1 - p), (n - holders) * q * (1 - q)
        skew = (loud * (1 - 2 * p) + quiet * (1 - 2 * q)) / variance**1.5
        curt = (loud * (1 - 6 * p * (1 - p)) + quiet * (1 - 6 * q * (1 - q))) / variance**2
        x = z + skew * (z**2 - 1) / 6 + curt * (z**3 - 3 * z) / 24 - skew**2 * (2 * z**3 - 5 * z) / 36
        found: Floats = holders * p + (n - holders) * q + np.sqrt(variance) * x
        return found


def _exactly(heads: Floats, coins: Floats, chance: float) -> Floats:
    """P(Bin(coins, chance) = heads)."""
    from scipy.special import gammaln, xlog1py, xlogy

    inside = (heads >= 0) & (heads <= coins)
    some = np.clip(heads, 0, coins)
    ways = gammaln(coins + 1) - gammaln(some + 1) - gammaln(coins - some + 1)
    found: Floats = np.where(inside, np.exp(ways + xlogy(some, chance) + xlog1py(coins - some, -chance)), 0.0)
    return found


def _at_least(heads: Floats, coins: Floats, chance: float) -> Floats:
    """P(Bin(coins, chance) ≥ heads)."""
    from scipy.special import betainc

    some = np.clip(heads, 1, np.maximum(coins, 1))
    found: Floats = np.where(heads <= 0, 1.0, np.where(heads > coins, 0.0, betainc(some, coins - some + 1, chance)))
    return found


def _least(enough, size: int, most: int) -> NDArray[np.int64]:  # type: ignore[no-untyped-def]
    """The least whole number from 0 to `most` that is enough, for each of `size`; `most` where none below it is."""
    low, high = np.full(size, -1, dtype=np.int64), np.full(size, most, dtype=np.int64)
    while True:
        some = np.flatnonzero(high - low > 1)
        if not len(some):
            return high
        middle = (low + high) // 2
        good = enough(middle, some)
        high[some[good]] = middle[some[good]]
        low[some[~good]] = middle[some[~good]]
