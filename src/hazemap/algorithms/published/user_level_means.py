"""The mean of a value in one cell (speed in one hexagon and hour) where each person has many samples.

Privacy model of all methods here: VALUES ONLY (`hazemap.privacy.statement_facts`). How many samples each person gives
is public; what they are is protected, all samples of a person together (Rameshwar et al. 2024). The lengths of arrays,
and how many samples a person counts for, are chosen from public numbers of samples alone.
"""

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log, sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from hazemap.encoders.one_cell_statistics import ArrayBins, ArrayMeans, ArrayQuantiles, RobustMeanScores, ValueSums
from hazemap.errors import InputError
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.queries.noisy_queries import Answer, Choice, Measure, Prices, Query, Question, Rounds
from hazemap.tables.sample_grouping import Grouping, SampleCounts
from hazemap.values.quantizer import Quantizer


class Mean(NamedTuple):
    """A private mean, in units of the value.

    `stddev` is the standard deviation of its noise. What grouping and clipping add is not in it, nor does any answer
    say how much that is; it is NaN where the noise depends on how people's means lie.
    """

    value: float
    stddev: float


@dataclass(frozen=True)
class PlainMean:
    """Mean + Lap(U m/(ε Σ min(m_ℓ, m))): of all samples, or of at most `most` of each person.

    >>> PlainMean(Quantizer(0, 65), SampleCounts(np.array([3, 10]))).most
    10
    """

    quantizer: Quantizer
    contributions: SampleCounts
    most: int = 0
    disclosure: ClassVar[Disclosure] = Disclosure((Learned.ONLY_VALUES,))

    def __post_init__(self) -> None:
        if self.most < 0:
            raise InputError(f"the number of samples per person must be 0 (all of them) or more, not {self.most}")
        object.__setattr__(self, "most", min(self.most or self.contributions.most, self.contributions.most))

    def rounds(self, prices: Prices) -> Rounds[Mean]:  # noqa: ARG002 - one query needs no price
        """One sum."""
        answer = yield Query(ValueSums(self.quantizer, self.most), Fraction(1))
        samples = int(self.contributions.kept(self.most).sum())
        return _mean(self.quantizer, answer, samples)


def _mean(quantizer: Quantizer, answer: Answer, number: int) -> Mean:
    """The mean of `number` readings, from a noisy sum of them."""
    return Mean(quantizer.value(answer.sums[0] / number), quantizer.width(float(answer.stddev[0]) / number))


@dataclass(frozen=True)
class _OfArrays:
    """What averages the means of arrays of equal length."""

    quantizer: Quantizer
    contributions: SampleCounts
    grouping: Grouping
    disclosure: ClassVar[Disclosure] = Disclosure((Learned.ONLY_VALUES,))

    def _clipped(self, low: int, high: int, share: Fraction) -> Generator[Question, Answer, Mean]:
        """The mean of array means clipped to the readings `low` … `high`, which are taken one apart at least."""
        steps = self.quantizer.steps
        low, high = max(min(low, high, steps - 1), 0), min(max(low + 1, high), steps)
        answer = yield Measure(ArrayMeans(self.quantizer, self.contributions, self.grouping, low, high), share)
        return _mean(self.quantizer, answer, self.grouping.arrays(self.contributions).number)


@dataclass(frozen=True)
class ArrayAveraging(_OfArrays):
    """(1/K̄) Σ array means + Lap(f U/(K̄ ε)) (Rameshwar et al. 2024): the mean of the means of arrays of equal length.

    >>> from hazemap.tables.sample_grouping import BestFit
    >>> ArrayAveraging(Quantizer(0, 65), SampleCounts(np.array([3, 10])), BestFit(3)).grouping.most
    3
    """

    def rounds(self, prices: Prices) -> Rounds[Mean]:  # noqa: ARG002 - one query needs no price
        """One sum of means."""
        return (yield from self._clipped(0, self.quantizer.steps, Fraction(1)))


@dataclass(frozen=True)
class QuantileMean(_OfArrays):
    """Array means clipped to their private `rank` and 1 − `rank` quantiles (Smith 2011), then averaged.

    With `rank` None, 2/ε arrays are cut off at each end (Amin et al. 2019), a quarter of all at most: ε is what the
    whole budget buys, √2 · Δ/σ, so it is public. (The authors' code reads this rank off the private means.)

    >>> from hazemap.tables.sample_grouping import BestFit
    >>> QuantileMean(Quantizer(0, 65), SampleCounts(np.array([3, 10])), BestFit(3)).rank
    Fraction(1, 10)
    """

    rank: Fraction | None = Fraction(1, 10)
    share_of_choice: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        if self.rank is not None and not 0 <= self.rank < Fraction(1, 2):
            raise InputError(f"the rank at which means are clipped must be at least 0 and below 1/2, not {self.rank}")

    def rounds(self, prices: Prices) -> Rounds[Mean]:
        """Two choices, asked together, and a sum."""
        rank = self.dependent(prices) if self.rank is None else self.rank
        ends = ArrayQuantiles(self.quantizer, self.contributions, self.grouping, (rank, 1 - rank))
        chosen = yield Choice(ends, self.share_of_choice)
        low, high = sorted(int(reading) for reading in chosen.sums)
        return (yield from self._clipped(low, high, 1 - self.share_of_choice))

    def dependent(self, prices: Prices) -> Fraction:
        """2/ε of all arrays, as a part of them: from the budget and public numbers alone."""
        arrays = self.grouping.arrays(self.contributions).number
        return min(Fraction(ceil(2 / _epsilon_of(prices)), arrays), Fraction(1, 4))


@dataclass(frozen=True)
class LevyMean(_OfArrays):
    """A bin with a median of the array means is chosen; they are clipped to its middle ± 1.5 widths (Levy et al. 2021).

    A bin is τ = (U/2) √((2/m) ln(2K/δ)) wide: if all samples were independent, all means would lie within the three
    bins with probability 1 − δ. `share_of_choice` of the budget goes to the choice.

    >>> from hazemap.tables.sample_grouping import BestFit
    >>> LevyMean(Quantizer(0, 650, steps=650), SampleCounts(np.full(50, 200)), BestFit(200)).width
    82
    """

    failure: Fraction = Fraction(1, 5)
    share_of_choice: Fraction = Fraction(1, 2)

    @property
    def width(self) -> int:
        """τ, in readings."""
        arrays = self.grouping.arrays(self.contributions).number
        part = sqrt(2 / self.grouping.most * log(2 * arrays / self.failure)) / 2
        return min(max(ceil(part * self.quantizer.steps), 1), self.quantizer.steps)

    def rounds(self, prices: Prices) -> Rounds[Mean]:  # noqa: ARG002 - shares are fixed
        """A choice and a sum."""
        bins = ArrayBins(self.quantizer, self.contributions, self.grouping, self.width)
        chosen = yield Choice(bins, self.share_of_choice)
        low = int(chosen.sums[0] - 1) * self.width
        high = min(low + 3 * self.width, self.quantizer.steps)
        return (yield from self._clipped(max(low, 0), high, 1 - self.share_of_choice))


@dataclass(frozen=True)
class BalancedMean:
    """Huber's (1964) M-estimate of people's means, by permute-and-flip over the quantizer.

    Person ℓ has weight c_ℓ = min(m_ℓ, m) and pulls at t with their mean's distance, clipped to ±h, h = `reach` · U.
    With K = Σ c_ℓ/m, of which a part p lies within h, the choice is off by about 4h/(ε K p): a quarter of U/(ε K̄),
    which the mean of arrays is off by, and no budget goes to a clipping range first. No sample is left out of a
    person's mean, so that means are close to each other; somebody far from everybody pulls no more than h.

    m has the least expected square error, 2(4h/(ε K p))² + σ² Σ_ℓ (c_ℓ/Σc − m_ℓ/Σm)²: noise, and the bias of counting
    people for less than their samples if people's means differ by σ. Only ε and public numbers enter; p = 3/4, σ = 2h
    and the reach are constants, settled on the bus table of the paper. If people differ by more than h, it goes over
    into the median; by much less, its noise is 4h/(ε K) still.

    `most` fixes m. The standard deviation of the noise depends on p, which is private; that of p = 1 would be too
    small, so it is NaN.

    >>> crowd = SampleCounts(np.repeat([10, 40, 400], [100, 100, 20]))
    >>> [BalancedMean(Quantizer(0, 65), crowd).length(epsilon) for epsilon in (0.3, 1, 10)]
    [10, 400, 400]
    """

    quantizer: Quantizer
    contributions: SampleCounts
    reach: Fraction = Fraction(1, 16)
    most: int = 0
    disclosure: ClassVar[Disclosure] = Disclosure((Learned.ONLY_VALUES,))

    def __post_init__(self) -> None:
        if not 0 < self.reach <= 1 or self.most < 0:
            raise InputError("a reach must be between 0 and 1, and a weight at least 1, or 0 for the best one")

    def rounds(self, prices: Prices) -> Rounds[Mean]:
        """One choice."""
        most = self.most or self.length(_epsilon_of(prices))
        reach = max(round(self.reach * self.quantizer.steps), 1)
        chosen = yield Choice(RobustMeanScores(self.quantizer, most, reach), Fraction(1))
        return Mean(self.quantizer.value(float(chosen.sums[0])), float("nan"))

    def length(self, epsilon: float) -> int:
        """The m of the least expected error, of all distinct m_ℓ. O(n log n)."""
        lengths, kept, more = self.contributions.distinct
        counts, total = self.contributions.counts.astype(np.float64), self.contributions.total
        noise = 2 * (4 / (epsilon * (kept / lengths) * 0.75)) ** 2
        # Σ (c/Σc − m/Σm)² = Σc²/(Σc)² − 2 Σcm/(Σc Σm) + Σm²/(Σm)²
        people = np.diff(np.append(-more, 0))
        own, square = lengths * people, lengths**2 * people
        above = np.concatenate([np.cumsum(own[::-1])[::-1][1:], [0]])  # samples of people with more than this
        squares = np.cumsum(square) + lengths**2 * (more - people)
        products = np.cumsum(square) + lengths * above
        spread = squares / kept**2 - 2 * products / (kept * total) + (counts**2).sum() / total**2
        return int(lengths[np.argmin(noise + 4 * np.maximum(spread, 0.0))])


def _epsilon_of(prices: Prices) -> float:
    """The ε that a run's budget comes to: √2 Δ/σ for a sum with fine noise.

    Of pure ε it is ε itself, and of ρ the ε whose noise has the same deviation.
    """
    fine = ValueSums(Quantizer(0, 1), most=1)
    return sqrt(2) * fine.sensitivity.l1 / prices.stddev(fine, Fraction(1))


def median_length(contributions: SampleCounts) -> int:
    """The (lower) median of m_ℓ: within a factor 2 of the least noise of Array-Averaging (Rameshwar et al. 2024).

    >>> median_length(SampleCounts(np.array([1, 9, 5])))
    5
    """
    return int(np.sort(contributions.counts)[(contributions.people - 1) // 2])


def most_arrays(contributions: SampleCounts) -> int:
    """The m of the largest K√m, K = ⌊Σ min(m_ℓ, m)/m⌋, m one of the m_ℓ: the least noise of Levy's mean but for logs.

    >>> most_arrays(SampleCounts(np.array([1, 9, 5, 9, 9])))
    9
    """
    lengths, kept, _ = contributions.distinct
    return int(lengths[np.argmax(kept // lengths * np.sqrt(lengths))])


def worst_case_length(contributions: SampleCounts, epsilon: float) -> int:
    """m^(ε), the length with the least worst-case error: always one of the m_ℓ, and the longer the larger ε is.

    >>> some = SampleCounts(np.array([1, 9, 5, 9, 400]))
    >>> worst_case_length(some, 0.01), worst_case_length(some, 100)
    (1, 400)
    """
    lengths, kept, _ = contributions.distinct
    return int(lengths[np.argmin(_worst(lengths, kept, contributions.total, epsilon))])


def worst_case_error(contributions: SampleCounts, length: int, epsilon: float) -> float:
    """Largest bias of Array-Averaging over all tables plus the mean size of its noise, as a part of the range U.

    1 − Σ min(m_ℓ, m)/Σ m_ℓ + m/(ε Σ min(m_ℓ, m)) (Rameshwar et al. 2024, equation 1).

    >>> worst_case_error(SampleCounts(np.array([2, 2])), 1, 1.0)
    1.0
    """
    kept = np.array([contributions.kept(length).sum()])
    return float(_worst(np.array([length]), kept, contributions.total, epsilon)[0])


def _worst(lengths: Ints, kept: Ints, total: int, epsilon: float) -> Floats:
    return 1 - kept / total + lengths / (epsilon * kept)
