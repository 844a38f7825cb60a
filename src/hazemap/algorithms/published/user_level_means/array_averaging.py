"""The mean of the means of arrays of equal length."""

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction

from hazemap.algorithms.published.user_level_means.noisy_mean import Mean
from hazemap.encoders.single_cell_sums import ArrayMeans
from hazemap.queries import Answer, Measure, Prices, Question, Rounds
from hazemap.tables.sample_arrays import Grouping, SampleCounts
from hazemap.values.quantizer import Quantizer


@dataclass(frozen=True)
class ArrayAveraging:
    """(1/K̄) Σ array means + Lap(f U/(K̄ ε)) (Rameshwar et al. 2024). VALUES ONLY.

    >>> import numpy as np
    >>> from hazemap.tables.sample_arrays import BestFit
    >>> ArrayAveraging(Quantizer(0, 65), SampleCounts(np.array([3, 10])), BestFit(3)).grouping.most
    3
    """

    quantizer: Quantizer
    contributions: SampleCounts
    grouping: Grouping

    def rounds(self, prices: Prices) -> Rounds[Mean]:  # noqa: ARG002 - one query needs no price
        """One sum of means."""
        mean = yield from averaged(self, 0, self.quantizer.steps, Fraction(1))
        return mean


class Grouped:
    """Whatever groups the samples of a cell into arrays."""

    quantizer: Quantizer
    contributions: SampleCounts
    grouping: Grouping


def averaged(
    method: "ArrayAveraging | Grouped", low: int, high: int, share: Fraction
) -> Generator[Question, Answer, Mean]:
    """The mean of array means clipped to the readings `low` … `high`, which are taken one apart at least."""
    steps = method.quantizer.steps
    low, high = max(min(low, high, steps - 1), 0), min(max(low + 1, high), steps)
    answer = yield Measure(ArrayMeans(method.quantizer, method.contributions, method.grouping, low, high), share)
    number = method.grouping.arrays(method.contributions).number
    return Mean(
        method.quantizer.value(answer.sums[0] / number), method.quantizer.width(float(answer.stddev[0]) / number)
    )
