"""The mean of the means of arrays of equal length."""

from collections.abc import Generator
from dataclasses import dataclass
from fractions import Fraction

from hazemap.algorithms.means.mean import Mean
from hazemap.domains.ruler import Ruler
from hazemap.encoders.value_sums import ArrayMeans
from hazemap.rounds import Answer, Measure, Prices, Question, Rounds
from hazemap.tables.contributions import Contributions
from hazemap.tables.grouping import Grouping


@dataclass(frozen=True)
class ArrayAveraging:
    """(1/K̄) Σ array means + Lap(f U/(K̄ ε)) (Rameshwar et al. 2024). VALUES ONLY.

    >>> import numpy as np
    >>> from hazemap.tables.grouping import BestFit
    >>> ArrayAveraging(Ruler(0, 65), Contributions(np.array([3, 10])), BestFit(3)).grouping.most
    3
    """

    ruler: Ruler
    contributions: Contributions
    grouping: Grouping

    def rounds(self, prices: Prices) -> Rounds[Mean]:  # noqa: ARG002 - one query needs no price
        """One sum of means."""
        mean = yield from averaged(self, 0, self.ruler.steps, Fraction(1))
        return mean


class Grouped:
    """Whatever groups the samples of a cell into arrays."""

    ruler: Ruler
    contributions: Contributions
    grouping: Grouping


def averaged(
    method: "ArrayAveraging | Grouped", low: int, high: int, share: Fraction
) -> Generator[Question, Answer, Mean]:
    """The mean of array means clipped to the readings `low` … `high`, which are taken one apart at least."""
    steps = method.ruler.steps
    low, high = max(min(low, high, steps - 1), 0), min(max(low + 1, high), steps)
    answer = yield Measure(ArrayMeans(method.ruler, method.contributions, method.grouping, low, high), share)
    number = method.grouping.arrays(method.contributions).number
    return Mean(method.ruler.value(answer.sums[0] / number), method.ruler.width(float(answer.stddev[0]) / number))
