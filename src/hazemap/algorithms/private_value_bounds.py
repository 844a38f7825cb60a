"""Between which bounds do values lie? A small share of the budget finds the bounds that nobody declared."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hazemap.arrays import Floats
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate.histogram_range import best_bins, ends, topmost
from hazemap.queries import Answer, Prices, Query, Rounds
from hazemap.tables.contribution_bounding import OneVote
from hazemap.values.float_grid import FloatGrid, HistogramBins, Log2Bins

FINEST = (64, 32)
"""Into how many bins of equal width a range is cut at most; and then once more what is left of it."""

CLEAR, MUCH = 5, 0.05
"""So many standard errors, and this part of people, outside of the range that was found show that it was too small."""


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
    values on both sides. Then this range is cut into as many bins as so many people allow, and bins are left out at
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

    def __post_init__(self) -> None:
        if not self.shares or min(self.shares) <= 0 or sum(self.shares) >= 1 or not 0 < self.beyond < Fraction(1, 2):
            raise InputError("bounds are found with shares above 0 that add up to less than 1, and leave out few")
        if self.low is not None and self.high is not None:
            raise InputError("both bounds are declared, so there is none to be found")

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
        raise InputError("bounds were not found in this run: some of its answers are missing")

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
        return ValueBounds(low, high, below, above, spent)

    def _widest(self, size: float, spent: Fraction) -> ValueBounds:
        """Where no bounds can be found: the widest there are, and any part of people may lie outside."""
        low = self.low if self.low is not None else min(-size, 2 * (self.high or 0.0))
        high = self.high if self.high is not None else max(size, 2 * (self.low or 0.0))
        return ValueBounds(low, high, float(self.low is None), float(self.high is None), spent)

    def _people(self, answer: Answer) -> tuple[Floats, tuple[float, float]]:
        unit = self.bounding.unit
        return answer.sums / unit, (float(answer.stddev.max()) / unit, answer.kurtosis)
