"""Nobody is trusted: every person randomises what they say before it leaves them.

It is the baseline that secure aggregation is measured against: the noise of n people is about √n times as large as
that which one curator would add. A person's vector is 1 in one place and 0 elsewhere, and the randomisers throw a coin
for every place (randomised response, Warner 1965); their functions of sums draw, undo and describe what becomes of the
reports of many people together.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import exp, expm1, sinh, sqrt
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Floats, Ints
from hazemap.encoders import Encoder
from hazemap.errors import InputError, Unanswerable
from hazemap.noisy_queries import Answer, Query, Question
from hazemap.privacy.budget import Budget, PureDP
from hazemap.privacy.random_stream import Stream
from hazemap.privacy.samplers.bernoulli import Coin, binomial, fair, spread, toss
from hazemap.tables.votes import VotesTable
from hazemap.trust.checked_contribution import within

_MOST = 500.0  # above it an ε leaves no noise that a float could see


class Randomiser(Protocol):
    """What one person does to their vector, and what the sum of all says of the truth."""

    def report(self, stream: Stream, place: int | None, size: int) -> NDArray[np.uint8]:
        """What one person sends: their vector with coins thrown over it, uint8[size]. `place` is None for zeros."""
        ...

    def sums(self, stream: Stream, counts: Ints, people: int) -> Ints:
        """The sum of the reports of `people` people of whom counts[i] have their 1 at i: drawn from its exact law."""
        ...

    def unbiased(self, sums: Ints, people: int) -> Floats:
        """The counts, from the sums of the reports."""
        ...

    def variance(self, people: int, count: Floats) -> Floats:
        """Of `unbiased`, where the count is this."""
        ...

    def kurtosis(self, people: int) -> float:
        """Excess kurtosis of `unbiased` in a cell of nobody."""
        ...


@dataclass(frozen=True)
class _UnaryEncoding:
    """A report of a coin for every place, that throws another one for the place of the 1."""

    epsilon: Fraction

    def report(self, stream: Stream, place: int | None, size: int) -> NDArray[np.uint8]:
        """What one person sends: O(size) coins."""
        bits = spread(toss(stream, Coin(self.epsilon, plus=1), -(-size // 64)))[:size].copy()
        if place is not None:
            bits[place] = self._one(stream, int(bits[place]))
        return bits

    def _one(self, stream: Stream, flipped: int) -> int:
        """What is sent for a 1; `flipped` says whether the coin would turn a 0 into a 1."""
        raise NotImplementedError

    def kurtosis(self, people: int) -> float:
        """(1 − 6q(1 − q))/(n q(1 − q)), q = 1/(e^ε + 1), in a cell of nobody."""
        q = 1 / (exp(_float(self.epsilon)) + 1)
        return (1 - 6 * q * (1 - q)) / (people * q * (1 - q))


@dataclass(frozen=True)
class Symmetric(_UnaryEncoding):
    """Each bit is kept with probability e^ε/(1 + e^ε): ε-DP for the removal of a person's data.

    Neighbours: one person's vector is replaced by zeros, their report is still sent. That moves one bit, so reports
    are told apart by e^ε at most; replacing it by another person's vector moves two and costs 2ε. Unbiased:
    (e^ε + 1)/(e^ε − 1) Σ − n/(e^ε − 1), of variance n e^ε/(e^ε − 1)², whatever the count.

    >>> bits = Symmetric(Fraction(1)).report(Stream.from_os(), 3, 8)
    >>> bits.shape, round(float(Symmetric(Fraction(1)).variance(100, np.zeros(1))[0]), 2)
    ((8,), 92.07)
    """

    def _one(self, stream: Stream, flipped: int) -> int:  # noqa: ARG002 - the coin is thrown
        return 1 - flipped

    def sums(self, stream: Stream, counts: Ints, people: int) -> Ints:
        """Those with a 1 there, less the flipped ones of them, and the flipped ones of the others."""
        lie = Coin(self.epsilon, plus=1)
        return counts - binomial(stream, lie, counts) + binomial(stream, lie, people - counts)

    def unbiased(self, sums: Ints, people: int) -> Floats:
        """(e^ε + 1)/(e^ε − 1) Σ − n/(e^ε − 1)."""
        rest = 1 / expm1(_float(self.epsilon))
        return np.asarray((1 + 2 * rest) * sums - people * rest, dtype=np.float64)

    def variance(self, people: int, count: Floats) -> Floats:
        """That is n/(4 sinh²(ε/2)), for every count."""
        return np.full(np.shape(count), people / (4 * sinh(_float(self.epsilon) / 2) ** 2))


@dataclass(frozen=True)
class Asymmetric(_UnaryEncoding):
    """A 1 is kept with probability ½, a 0 becomes 1 with q = 1/(e^ε + 1): ε-DP for the replacement of a person's data.

    Optimised unary encoding (Wang et al. 2017): neighbours differ in the vector of one person. Unbiased:
    2(e^ε + 1)/(e^ε − 1) Σ − 2n/(e^ε − 1), of variance 4n e^ε/(e^ε − 1)² + count.

    >>> bits = Asymmetric(Fraction(1)).report(Stream.from_os(), 3, 8)
    >>> bits.shape, round(float(Asymmetric(Fraction(1)).variance(100, np.zeros(1))[0]), 1)
    ((8,), 368.3)
    """

    def _one(self, stream: Stream, flipped: int) -> int:  # noqa: ARG002 - a fair coin decides
        return stream.below(2)

    def sums(self, stream: Stream, counts: Ints, people: int) -> Ints:
        """Half of those with a 1 there, and some of the others."""
        return fair(stream, counts) + binomial(stream, Coin(self.epsilon, plus=1), people - counts)

    def unbiased(self, sums: Ints, people: int) -> Floats:
        """2(e^ε + 1)/(e^ε − 1) Σ − 2n/(e^ε − 1)."""
        rest = 1 / expm1(_float(self.epsilon))
        return np.asarray((2 + 4 * rest) * sums - 2 * people * rest, dtype=np.float64)

    def variance(self, people: int, count: Floats) -> Floats:
        """4n e^ε/(e^ε − 1)² + count."""
        variance: Floats = people / sinh(_float(self.epsilon) / 2) ** 2 + np.clip(count, 0, people)
        return variance


def _float(epsilon: Fraction) -> float:
    return float(min(epsilon, Fraction(_MOST)))


_ROUNDING = 0.25  # the variance of rounding a number up or down at random, at most
_STEP = 30  # shares are multiples of 2^−30
MOST = 2.0**62
"""Larger numbers are cut down to this one: a little ε makes them, and no crowd."""

_DEAREST = 64  # a share that is asked for is at most this


@dataclass(frozen=True)
class LocalPrices:
    """What a share of a budget buys where each person randomises alone: noise grows with √people."""

    budget: PureDP
    people: int
    randomiser: Callable[[Fraction], Randomiser]

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        """The standard deviation of the noise in each sum, where people are spread evenly."""
        count = np.array([self.people / max(encoder.size, 1)])
        noise = self.randomiser(self.budget.part(share).epsilon).variance(self.people, count)
        return sqrt(float(noise[0]) + _ROUNDING)

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """The least multiple of 2^−30 that buys a standard deviation this small; 64 if no share will do."""
        low, high = 0, 1
        while high < _DEAREST << _STEP and self.stddev(encoder, Fraction(high, 1 << _STEP)) > stddev:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            enough = self.stddev(encoder, Fraction(middle, 1 << _STEP)) <= stddev
            low, high = (low, middle) if enough else (middle, high)
        return Fraction(high, 1 << _STEP)


@dataclass(frozen=True)
class LocalReports:
    """Answers from reports that every person randomised: in simulation, by the exact law of their sum.

    All of `people` report in every round, also those without a row, whose vector is zero: silence would tell. Rounds
    compose: a person pays the shares of all. The price of a round is the ε of `randomiser`, which says between which
    neighbours. Only queries to which a person adds a single 1 can be answered. Answers are the unbiased numbers,
    rounded up or down at random so that they stay unbiased; that adds at most ¼ to the variance, which is stated with
    it. (Where the variance depends on the count, the noisy one is put in.) Drawing costs about people · cells / 4
    bytes of the stream, memory O(cells).

    >>> from hazemap import AtMostRows, Flat, MemoryTable, Quadtree, Unrecorded, run
    >>> rng = np.random.default_rng(5)
    >>> table = MemoryTable(np.arange(9_000), {"lon": rng.normal(0, 9, 9_000), "lat": rng.normal(0, 9, 9_000)})
    >>> made = run(Flat(Quadtree.world(depth=3), 2), LocalReports(table, 9_000), PureDP(1), Unrecorded())
    >>> made.value.stddev.round(1)[:2]
    array([91., 91.])
    """

    table: VotesTable
    people: int
    randomiser: Callable[[Fraction], Randomiser] = Symmetric
    stream: Stream = field(default_factory=Stream.from_os)

    def __post_init__(self) -> None:
        if self.people < 1:
            raise InputError(f"reports come from 1 person or more, not from {self.people}")

    def prices(self, budget: Budget) -> LocalPrices:
        """What a share of this budget buys; `InputError` unless it is in pure ε."""
        return LocalPrices(_pure(budget), self.people, self.randomiser)

    def answers(self, question: type[Question]) -> bool:
        """Sums, and nothing else."""
        return question is Query

    def answer(self, question: Question, price: Budget) -> Answer:
        """The unbiased numbers, with the law of their errors."""
        if not isinstance(question, Query) or question.cohort is not None:
            raise Unanswerable("reports of everyone answer queries for sums; they do not choose, and have no cohorts")
        if question.encoder.sensitivity.l1 != 1:
            raise Unanswerable(
                f"a person randomises a vector with a single 1, but this query lets them add "
                f"{question.encoder.sensitivity.l1} in all: ask one level at a time, of one row a person"
            )
        counts = question.encoder.total(self.table)
        if counts.sum() > self.people:
            raise InputError(f"{self.people:,} people were said to report, but more have a row that counts")
        within(counts, question.encoder.sensitivity, self.people)
        chosen = self.randomiser(_pure(price).epsilon)
        numbers = chosen.unbiased(chosen.sums(self.stream, counts, self.people), self.people)
        luck = (self.stream.words(len(numbers)) >> np.uint64(11)) * 2.0**-53
        variance = chosen.variance(self.people, numbers) + _ROUNDING
        constant = variance[:1] if len(variance) and (variance == variance[0]).all() else variance
        sums = np.clip(np.floor(numbers + luck), -MOST, MOST).astype(np.int64)
        return Answer(sums, np.sqrt(constant), chosen.kurtosis(self.people), self.people)


def _pure(budget: Budget) -> PureDP:
    if not isinstance(budget, PureDP):
        raise InputError(f"randomised response spends pure ε, not {budget}: give epsilon alone, without delta or rho")
    return budget
