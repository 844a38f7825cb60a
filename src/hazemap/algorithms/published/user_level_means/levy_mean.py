"""The mean of array means near their median."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log, sqrt

from hazemap.algorithms.published.user_level_means.array_averaging import Grouped, averaged
from hazemap.algorithms.published.user_level_means.noisy_mean import Mean
from hazemap.encoders.array_quantile_scores import ArrayBins
from hazemap.queries import Choice, Prices, Rounds
from hazemap.tables.sample_arrays import Grouping, SampleCounts
from hazemap.values.quantizer import Quantizer


@dataclass(frozen=True)
class LevyMean(Grouped):
    """A bin with a median of the array means is chosen; they are clipped to its middle ± 1.5 widths (Levy et al. 2021).

    A bin is τ = (U/2) √((2/m) ln(2K/δ)) wide: if all samples were independent, all means would lie within the three
    bins with probability 1 − δ. VALUES ONLY. `share_of_choice` of the budget goes to the choice.

    >>> import numpy as np
    >>> from hazemap.tables.sample_arrays import BestFit
    >>> LevyMean(Quantizer(0, 650, steps=650), SampleCounts(np.full(50, 200)), BestFit(200)).width
    82
    """

    quantizer: Quantizer
    contributions: SampleCounts
    grouping: Grouping
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
        mean = yield from averaged(
            self, max(low, 0), min(low + 3 * self.width, self.quantizer.steps), 1 - self.share_of_choice
        )
        return mean
