"""The published means of one cell that `BalancedMean` is compared with (Rameshwar et al. 2024).

Privacy model of all: VALUES ONLY (`hazemap.privacy.statement_facts`), as there.
"""

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log, sqrt
from typing import ClassVar

from hazemap.algorithms.published.user_level_means import Mean, laplace_epsilon_of
from hazemap.encoders.sample_statistics import ArrayBins, ArrayMeans, ArrayQuantiles, ValueSums
from hazemap.errors import InputError
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.queries.noisy_queries import Answer, Choice, Measure, Prices, Query, Question, Rounds
from hazemap.tables.sample_grouping import Grouping, SampleCounts
from hazemap.values.quantizer import Quantizer


@dataclass(frozen=True)
class PlainMean:
    """Mean + Lap(U m/(ε Σ min(m_ℓ, m))): of all samples, or of at most `most` of each person.

    >>> import numpy as np
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

    >>> import numpy as np
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

    >>> import numpy as np
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
        return min(Fraction(ceil(2 / laplace_epsilon_of(prices)), arrays), Fraction(1, 4))


@dataclass(frozen=True)
class LevyMean(_OfArrays):
    """A bin with a median of the array means is chosen; they are clipped to its middle ± 1.5 widths (Levy et al. 2021).

    A bin is τ = (U/2) √((2/m) ln(2K/δ)) wide: if all samples were independent, all means would lie within the three
    bins with probability 1 − δ. `share_of_choice` of the budget goes to the choice.

    >>> import numpy as np
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


def worst_case_error(contributions: SampleCounts, length: int, epsilon: float) -> float:
    """Largest bias of Array-Averaging over all tables plus the mean size of its noise, as a part of the range U.

    1 − Σ min(m_ℓ, m)/Σ m_ℓ + m/(ε Σ min(m_ℓ, m)) (Rameshwar et al. 2024, equation 1).

    >>> import numpy as np
    >>> worst_case_error(SampleCounts(np.array([2, 2])), 1, 1.0)
    1.0
    """
    kept = int(contributions.kept(length).sum())
    return 1 - kept / contributions.total + length / (epsilon * kept)
