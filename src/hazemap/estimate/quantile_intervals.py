"""Quantiles from noisy counters of a tree of bins: arrays in, arrays out.

F(v) is the part of people (or of records, as the bounding rule weighs them) below v, and a quantile of rank r is any v
with F(v) ≤ r ≤ F(v and all that is v): where people have few values, every number between two of them may be one. An
interval holds all of these.

**Estimate.** Every level of the tree counts everybody, and the number of people is counted as well, or known. Least
squares make one number of each finest bin of all that (Hay et al. 2010). It is linear in the counters, and the noise of
a level is the same in every place; so how many people are below an edge, less a part r of all, is a fixed linear
function of the counters, whose variance and shape are known exactly.

**Interval.** The quantile lies in the bin from e to e′ only if at most a part r is below e, and at least r below e′.
Each is rejected where noise could hardly explain it, with half of the chance to miss. So of the bin that holds the
quantile both are rejected together as rarely as stated, wherever people's values are: what is between the edges of a
bin is never guessed. The interval reaches from the first bin that is not rejected to the end of the last one. Where
people have two values far apart, bins between them are not rejected either.

**Levels.** Edges of a fine level that are none of a coarser one are far noisier. So the first level is looked at first;
each finer one, with a tenth of the chance to miss (`FINER`), only narrows what the levels before it leave. The truth is
in all of these intervals with the probability that is asked for (Bonferroni), so in what they have in common, too.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import USUAL, checked_confidence, reach
from hazemap.estimate.mean_intervals import IntervalEstimates
from hazemap.machine_code.arrays import Floats

FINER = 0.1
"""The part of the chance to miss that each finer level gets; the first has what is left."""

AT_ONCE = 1 << 12
"""Places whose edges are in memory at one time."""

ROUNDED = 2.0**-20
"""By so much of a person the number below an edge is off, for each of them: who has many records is rounded."""

QUIETEST = 1e-12
"""A standard deviation, in people, below which there is no noise to speak of."""

SUREST = 1 - 2.0**-52
"""The largest confidence that can be asked of noise."""


@dataclass(frozen=True, eq=False)
class BinTree:
    """How many bins each level has, each a multiple of the one before, and the standard deviation of their counters.

    `people` is that of the number of people, and how many counters that is the sum of: no noise where it is known. Each
    counter's noise has the excess `kurtosis`.

    >>> tree = BinTree((4,), (1.0,), (0.0, 1), 3.0)
    >>> counters, people = np.array([[10.0, 20.0, 30.0, 40.0]]), np.array([100.0])
    >>> found = tree.quantiles(counters, people, 0.5, 0.95)
    >>> float(found.value[0].round(2)), found.low, found.high
    (2.67, array([2.]), array([3.]))
    """

    sizes: tuple[int, ...]
    stddevs: tuple[float, ...]
    people: tuple[float, int]
    kurtosis: float

    @property
    def finest(self) -> int:
        """How many bins the finest level has."""
        return self.sizes[-1]

    @cached_property
    def _below(self) -> Floats:
        """The number below each finest edge as a function of that of people and the counters, float64[K + 1, 1 + …]."""
        count = self.finest
        levels = [np.kron(np.eye(size), np.ones((1, count // size))) for size in self.sizes]
        weights = np.repeat([max(stddev, QUIETEST) ** -2 for stddev in self.stddevs], self.sizes)
        design = np.concatenate(levels)
        covariance = np.linalg.inv(design.T @ (weights[:, None] * design))
        bins = covariance @ (design.T * weights)
        given = covariance.sum(axis=1) / (covariance.sum() + self.people[0] ** 2)
        bins = np.column_stack([given, bins - np.outer(given, bins.sum(axis=0))])
        return np.concatenate([np.zeros((1, bins.shape[1])), np.cumsum(bins, axis=0)])

    def _excess(self, rank: float) -> Floats:
        """How many more than a part `rank` of the people are below each finest edge: the weights of the counters."""
        if not 0 < rank < 1:
            raise InputError(f"the rank of a quantile must be between 0 and 1, such as 0.5; found {rank:g}")
        excess: Floats = self._below - rank * self._below[-1]
        return excess

    def _spread(self, excess: Floats) -> tuple[Floats, Floats]:
        """The standard deviation of each, and its excess kurtosis."""
        stddev, number = self.people
        parts = (excess * np.concatenate([[stddev], np.repeat(self.stddevs, self.sizes)])) ** 2
        variance = parts.sum(axis=1)
        fourth = (parts[:, 1:] ** 2).sum(axis=1) + parts[:, 0] ** 2 / number
        return np.sqrt(variance), self.kurtosis * fourth / np.where(variance > 0, variance, 1) ** 2

    def needed(self, rank: float, part: float, confidence: float = 0.95) -> float:
        """The number of people from which on noise leaves an interval of evenly spread values in this part of all."""
        stddev, kurtosis = self._spread(self._excess(rank))
        step = self.finest // self.sizes[0]
        return float((2 * reach(confidence, kurtosis) * stddev)[::step].max() / part)

    def quantiles(self, counters: Floats, people: Floats, rank: float, confidence: float) -> IntervalEstimates:
        """The quantile of each place in finest bins, 0 … K, float64[places, all bins] and float64[places] in.

        The best guess is where the shape of the numbers below the edges (`_shape`), which knows of no rank, passes its
        part of the people, within the ends: so guesses of rising ranks rise. Its standard error is a quarter of the
        95 % interval, which knows how wide bins are. A place with no people at all by the best guess has no value
        (NaN). O(places · K · counters).
        """
        checked_confidence(confidence)
        stddev, kurtosis = self._spread(self._excess(rank))
        asked, usual = ([reach(each, kurtosis) * stddev for each in self._sure(sure)] for sure in (confidence, USUAL))
        found = np.empty((4, len(people)))
        for start in range(0, len(people), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            below = np.column_stack([people[some], counters[some]]) @ self._below.T
            wanted = rank * below[:, -1:]
            off = np.maximum(people[some, None], 0) * ROUNDED
            low, high = self._ends(below - wanted, [margin + off for margin in asked])
            least, most = self._ends(below - wanted, [margin + off for margin in usual])
            known = people[some] > 0
            value = np.clip(_crossing(self._shape(below) - wanted), low, high)
            found[:, some] = np.where(known, value, np.nan), np.where(known, (most - least) / 4, np.inf), low, high
        return IntervalEstimates(*found)

    def _sure(self, confidence: float) -> Iterator[float]:
        """The confidence of each level."""
        miss, finer = 1 - confidence, len(self.sizes) - 1
        yield min(1 - miss * (1 - FINER * finer), SUREST)
        yield from [min(1 - miss * FINER, SUREST)] * finer

    def _ends(self, edges: Floats, margins: list[Floats]) -> tuple[Floats, Floats]:
        """Where the quantile may be, narrowed level by level."""
        low, high = np.zeros(len(edges)), np.full(len(edges), float(self.finest))
        for size, margin in zip(self.sizes, margins, strict=True):
            step = self.finest // size
            low, high = _narrowed(edges[:, ::step], margin[:, ::step], step, low, high)
        return low, high

    def _shape(self, below: Floats) -> Floats:
        """The number below each finest edge, never falling: of the first level the nearest bins that are not negative.

        A finer level differs from an even spread over the bins of the one before by so much as stands out of twice its
        noise, in each of these bins (James and Stein 1961), and is not negative either.
        """
        shape = _nearest_positive(np.diff(below[:, :: self.finest // self.sizes[0]], axis=1), below[:, -1:])
        for size, coarse in zip(self.sizes[1:], self.sizes, strict=False):
            fan, noise = size // coarse, 2 * size // coarse * self._apart(size, coarse)
            parts, whole = (np.diff(below[:, :: self.finest // level], axis=1) for level in (size, coarse))
            apart = parts.reshape(-1, coarse, fan) - whole[:, :, None] / fan
            seen = (apart**2).sum(axis=2)
            kept = np.maximum(1 - np.divide(noise, seen, out=np.ones_like(seen), where=seen > 0), 0)
            inner = np.maximum(shape[:, :, None] / fan + kept[:, :, None] * apart, 0)
            sums = inner.sum(axis=2)
            inner *= np.divide(shape, sums, out=np.zeros_like(sums), where=sums > 0)[:, :, None]
            shape = inner.reshape(len(below), size)
        return np.concatenate([np.zeros((len(below), 1)), np.cumsum(shape, axis=1)], axis=1)

    def _apart(self, size: int, coarse: int) -> float:
        """The variance of a bin of a level less its even part of the bin of the level before."""
        first, whole = (self._below[self.finest // level] for level in (size, coarse))
        return float(self._spread((first - whole * coarse / size)[None])[0][0] ** 2)


def _narrowed(edges: Floats, margin: Floats, step: int, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """From the first bin that is not rejected to the end of the last one, within ends that are known already.

    Nobody is below the first edge and everybody below the last one, so these are rejected nowhere. Where every bin is
    rejected, the ends stay.
    """
    below, above = edges < -margin, edges > margin  # surely before the quantile; surely behind it
    below[:, -1] = above[:, 0] = False
    at = np.arange(edges.shape[1]) * step
    left = ~(above[:, :-1] | below[:, 1:]) & (at[:-1] >= low[:, None]) & (at[1:] <= high[:, None])
    some = left.any(axis=1)
    first, last = left.argmax(axis=1), left.shape[1] - left[:, ::-1].argmax(axis=1)
    return np.where(some, first * step, low), np.where(some, last * step, high)


def _nearest_positive(numbers: Floats, total: Floats) -> Floats:
    """The nearest numbers that are not negative and add up to a total, of each row; nothing where it is not positive.

    They are what is left above a level (Held, Wolfe and Crowder 1974).
    """
    largest = -np.sort(-numbers, axis=1)
    levels = (np.cumsum(largest, axis=1) - total) / np.arange(1, numbers.shape[1] + 1)
    number = np.maximum((largest > levels).sum(axis=1), 1)
    level = levels[np.arange(len(numbers)), number - 1]
    return np.where(total > 0, np.maximum(numbers - level[:, None], 0), 0)


def _crossing(rising: Floats) -> Floats:
    """Where numbers at the edges 0 … K that never fall pass 0, on a line inside a bin; an end where they do nowhere."""
    row, last = np.arange(len(rising)), rising.shape[1] - 1
    behind = np.clip((rising < 0).sum(axis=1), 1, last)
    before, rise = rising[row, behind - 1], rising[row, behind] - rising[row, behind - 1]
    value: Floats = behind - 1 + np.clip(-before / np.where(rise > 0, rise, 1), 0, 1)
    return value


def monotone(numbers: Floats, low: float = 0.0, high: float = 1.0) -> Floats:
    """The non-decreasing numbers in [low, high] nearest to these in ℓ₂: isotonic regression, then clipped. O(n).

    To clip them gives the nearest under the bounds, too (Németh and Németh 2012).

    >>> monotone(np.array([0.1, 0.4, 0.2, 1.3]))
    array([0.1, 0.3, 0.3, 1. ])
    """
    from scipy.optimize import isotonic_regression

    nearest: Floats = np.clip(isotonic_regression(numbers).x, low, high)
    return nearest
