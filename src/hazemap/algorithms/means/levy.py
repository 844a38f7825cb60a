"""The mean of array means near their median."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log, sqrt

from hazemap.algorithms.means.array_averaging import Grouped, averaged
from hazemap.algorithms.means.mean import Mean
from hazemap.domains.ruler import Ruler
from hazemap.encoders.array_scores import ArrayBins
from hazemap.rounds import Choice, Prices, Rounds
from hazemap.tables.contributions import Contributions
from hazemap.tables.grouping import Grouping


@dataclass(frozen=True)
class LevyMean(Grouped):
    """A bin with a median of the array means is chosen; they are clipped to its middle ± 1.5 widths (Levy et al. 2021).

    A bin is τ = (U/2) √((2/m) ln(2K/δ)) wide: if all samples were independent, all means would lie within the three
    bins with probability 1 − δ. VALUES ONLY. `share_of_choice` of the budget goes to the choice.

    >>> import numpy as np
    >>> from hazemap.tables.grouping import BestFit
    >>> LevyMean(Ruler(0, 650, steps=650), Contributions(np.full(50, 200)), BestFit(200)).width
    82
    """

    ruler: Ruler
    contributions: Contributions
    grouping: Grouping
    failure: Fraction = Fraction(1, 5)
    share_of_choice: Fraction = Fraction(1, 2)

    @property
    def width(self) -> int:
        """τ, in readings."""
        arrays = self.grouping.arrays(self.contributions).number
        part = sqrt(2 / self.grouping.most * log(2 * arrays / self.failure)) / 2
        return min(max(ceil(part * self.ruler.steps), 1), self.ruler.steps)

    def rounds(self, prices: Prices) -> Rounds[Mean]:  # noqa: ARG002 - shares are fixed
        """A choice and a sum."""
        bins = ArrayBins(self.ruler, self.contributions, self.grouping, self.width)
        chosen = yield Choice(bins, self.share_of_choice)
        low = int(chosen.sums[0] - 1) * self.width
        mean = yield from averaged(
            self, max(low, 0), min(low + 3 * self.width, self.ruler.steps), 1 - self.share_of_choice
        )
        return mean
