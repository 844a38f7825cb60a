"""Spends a small share of the budget to find bounds of the values that nobody declared."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, log2
from typing import ClassVar, NamedTuple

import numpy as np

from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate.mean_intervals import loudest
from hazemap.machine_code.arrays import Floats
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.queries.noisy_queries import Answer, Prices, Query, Rounds
from hazemap.tables.contribution_bounding import OneVote
from hazemap.values.histogram_bins import FloatGrid, HistogramBins, Log2Bins
from hazemap.values.quantizer import far_enough_apart

FINEST = (64, 32)
"""Into how many bins of equal width a range is cut at most; and then once more what is left of it."""

CLEAR, MUCH = 5, 0.05
"""More people than these standard errors, and this part of all, outside the range that was found show it too small."""


@dataclass(frozen=True)
class ValueBounds:
    """Bounds of a value, and what finding them cost: of all votes no more than parts `below` and `above` of people lie
    outside, as far as noise lets anybody say.

    >>> ValueBounds(0.0, 64.0, 0.001, 0.011, Fraction(7, 100)).low
    0.0
    """

    low: float
    high: float
    below: float
    above: float
    spent: Fraction


@dataclass(frozen=True)
class PrivateValueBounds:
    """Ask how large values are, by powers of two; then where they lie between these, in bins of equal width.

    Every person has one vote, spread over their records (`OneVote`): so a person moves *all* bins together by one vote,
    however many records they have. First the octaves: the largest in which a crowd stands out of the noise bounds the
    values on both sides. Then this range is cut into as many bins as that many people allow, and bins are left out at
    both ends that hold no more than `beyond` of the votes; if little is left of the range, once again.

    A third of a share goes to each step. What a step does not need is left over for the values. If no crowd stands
    out for the first of the `shares`, the next is tried; if none does for the last either, the bounds are
    the widest there are, ±2⁴⁰. A bound that is declared is kept.

    >>> PrivateValueBounds(FloatGrid()).shares
    (Fraction(1, 10), Fraction(1, 5))
    """

    line: FloatGrid
    low: float | None = None
    high: float | None = None
    shares: tuple[Fraction, ...] = (Fraction(1, 10), Fraction(1, 5))
    beyond: Fraction = Fraction(1, 100)
    bounding: OneVote = OneVote()
    disclosure: ClassVar[Disclosure] = Disclosure((Learned.BOUNDS,))

    def __post_init__(self) -> None:
        if not self.shares or min(self.shares) <= 0 or sum(self.shares) >= 1 or not 0 < self.beyond < Fraction(1, 2):
            raise InputError(
                "the shares that find bounds must be positive and add up to less than 1, and "
                "the part of people left out must be small"
            )
        if self.low is not None and self.high is not None:
            raise InputError("both bounds are declared, so there is nothing left to find")

    def rounds(self, prices: Prices) -> Rounds[ValueBounds]:  # noqa: ARG002 - every step takes a third of a share
        """One query for the octaves, perhaps a second; one or two for bins between them."""
        return self._steps()

    def read(self, answers: Sequence[Answer]) -> ValueBounds:
        """The bounds that these answers of an earlier run give."""
        steps = self._steps()
        try:
            next(steps)
            for answer in answers:
                steps.send(answer)
        except StopIteration as end:
            found: ValueBounds = end.value
            return found
        raise InputError("this run did not find the bounds: some of its answers are missing")

    def _steps(self) -> Rounds[ValueBounds]:
        spent, beyond = Fraction(0), float(self.beyond)
        octaves = Log2Bins(self.line)
        for share in self.shares:
            answer = yield Query(Counts(octaves, self.bounding), share / 3)
            spent += share / 3
            top = topmost(*self._people(answer), beyond)
            if top is not None:
                break
        else:
            return self._widest(octaves.upto(octaves.size - 1), spent)
        size = octaves.upto(top.last)
        low, high = -size if self.low is None else self.low, size if self.high is None else self.high
        if not low < high:  # few values lie within the bound that was declared: perhaps in another unit
            return self._widest(octaves.upto(octaves.size - 1), spent)
        below = above = 0.0
        sizes, noise = self._people(answer)
        for most in FINEST:
            bins = HistogramBins.between(self.line, low, high, best_bins(top.people, noise[0], most))
            answer = yield Query(Counts(bins, self.bounding), share / 3)
            spent += share / 3
            counts, noise = self._people(answer)
            missed = max(counts[0] if self.low is None else 0, counts[-1] if self.high is None else 0)
            if missed > MUCH * top.people + CLEAR * noise[0] and top.last < octaves.size - 1 and not above:
                # A crowd lies outside that did not stand out by itself: it is where the most are of what is larger.
                size = octaves.upto(top.last + 1 + int(np.argmax(sizes[top.last + 1 :])))
                low, high = -size if self.low is None else self.low, size if self.high is None else self.high
                below = above = 1.0
                continue
            found = ends(counts, noise, beyond)
            width, edges = high - low, bins.edges
            if self.low is None:
                low, below = max(low, float(edges[found.first])), found.before
            if self.high is None:
                high, above = min(high, float(edges[found.last + 1])), found.behind
            if high - low > width / 4:
                break
        if not far_enough_apart(low, high):  # of an edge of bins that lies beside the bound that was declared
            return self._widest(octaves.upto(octaves.size - 1), spent)
        return ValueBounds(low, high, below, above, spent)

    def _widest(self, size: float, spent: Fraction) -> ValueBounds:
        """Where no bounds can be found: the widest there are, and any part of people may lie outside."""
        low = self.low if self.low is not None else min(-size, 2 * (self.high or 0.0))
        high = self.high if self.high is not None else max(size, 2 * (self.low or 0.0))
        return ValueBounds(low, high, float(self.low is None), float(self.high is None), spent)

    def _people(self, answer: Answer) -> tuple[Floats, tuple[float, float]]:
        unit = self.bounding.unit
        return answer.sums / unit, (float(answer.stddev.max()) / unit, answer.kurtosis)


Noise = tuple[float, float]

CHANCE, FURTHER = 0.01, 0.05
"""How probable it is that noise alone looks like a crowd where there is nobody; and like one more beside a crowd."""

PENALTY = 2.0
"""A bin belongs to a crowd if it adds more than this many standard errors."""

SLACK = 2.0
"""This many times more may be left out, where noise hides it."""

SURE = 3.0
"""Standard errors that are added to what is said to lie beyond."""


class Top(NamedTuple):
    """The last bin that holds a crowd, and how many there are in all of them."""

    last: int
    people: float


class HistogramRange(NamedTuple):
    """Bins `first` to `last` hold most; no more than parts `before` and `behind` of all lie outside, as far as noise
    lets anybody say (three standard errors are added).
    """

    first: int
    last: int
    before: float
    behind: float


def topmost(counts: Floats, noise: Noise, beyond: float) -> Top | None:
    """The last bin that holds many, but for a part `beyond` of all; None where noise could explain everything.

    A crowd is a run of bins whose sum noise alone would bring to *any* run in less than 1 case of 100 (a union bound:
    half of the chance for runs of one bin, a quarter for those of two, …). Of these runs that one is taken whose sum,
    less two standard errors a bin, is largest; then others beside it. Their last bins are left out while no more than
    `beyond` of the crowds is in them: so a few values that are a thousand times too large change nothing. O(bins²).
    """
    crowds = np.zeros(len(counts), dtype=bool)
    todo = [(0, len(counts))]
    while todo:
        begin, end = todo.pop()
        run = _crowd(counts[begin:end], noise, (FURTHER if crowds.any() else CHANCE) / len(counts))
        if run is not None:
            first, last = begin + run[0], begin + run[1]
            crowds[first : last + 1] = True
            todo += [(begin, first), (last + 1, end)]
    if not crowds.any():
        return None
    held = np.where(crowds, counts, 0.0)
    people = float(held.sum())
    above = np.cumsum(held[::-1])[::-1]  # what is in a bin and in those after it
    return Top(int(np.flatnonzero(above > beyond * people).max()), people)


def _crowd(counts: Floats, noise: Noise, chance: float) -> tuple[int, int] | None:
    """The best run among these bins; noise alone may look like one that begins at a given bin with this probability."""
    size = len(counts)
    until = np.concatenate([[0.0], np.cumsum(counts)])
    sums = until[None, 1:] - until[:-1, None]  # from bin i to the end of bin j
    lengths = np.arange(size)[None, :] - np.arange(size)[:, None] + 1
    enough = np.array([_enough(length, noise, chance) for length in range(1, size + 1)])
    loud = (lengths > 0) & (sums > enough[np.maximum(lengths, 1) - 1])
    if not loud.any():
        return None
    at = int(np.argmax(np.where(loud, sums - PENALTY * noise[0] * lengths, -np.inf)))
    return divmod(at, size)


@lru_cache(maxsize=1024)
def _enough(length: int, noise: Noise, chance: float) -> float:
    """What noise alone brings to a run of `length` bins with a probability that, over all lengths, adds up to less."""
    return loudest(length, noise, chance / 2 ** (2 * ceil(log2(length)) + 1))


def best_bins(people: float, stddev: float, most: int) -> int:
    """A power of two: as many bins as leave about eight standard errors in each of a quarter of them; at least 8.

    As many as there may be where noise is 0, as at an ε of a million.

    >>> best_bins(1_000, 28, 128), best_bins(100_000, 28, 128), best_bins(200, 0, 128)
    (16, 128, 128)
    """
    wanted = people / (2 * stddev) if stddev > 0 else most
    return int(min(max(2 ** round(log2(max(wanted, 1.0))), 8), most))


def ends(counts: Floats, noise: Noise, beyond: float) -> HistogramRange:
    """Of a histogram whose outermost bins are what lies outside: all bins but those with a part `beyond` at each side.

    From each side bins are left out until the noisy sum of those before stays above `beyond` of all and one and a half
    standard errors (or `SLACK` times as much, if that is less). Where there are few people noise decides, and more or
    less of them may be left out; how many at most is said. O(bins).
    """
    people = max(float(counts.sum()), 1.0)
    errors = noise[0] * np.sqrt(np.arange(1, len(counts) + 1))
    upto, behind = np.cumsum(counts), np.cumsum(counts[::-1])
    limit = beyond * people + np.minimum(1.5 * errors, (SLACK - 1) * beyond * people)
    first, left_behind = max(_stays(upto, limit), 1), max(_stays(behind, limit), 1)
    last = len(counts) - 1 - left_behind
    if first > last:
        first, last = 1, len(counts) - 2

    def most(sums: Floats, left_out: int) -> float:
        """What may lie in the bins that are left out, as a part of all."""
        sure = max(float(sums[left_out - 1]), 0.0) + SURE * float(errors[left_out - 1])
        return min(sure / people, 1.0)

    return HistogramRange(first, last, most(upto, first), most(behind, len(counts) - 1 - last))


def _stays(sums: Floats, limit: Floats) -> int:
    """How many bins come before the sum is above the limit for good."""
    return len(sums) - int(np.argmin(np.append((sums > limit)[::-1], False)))
