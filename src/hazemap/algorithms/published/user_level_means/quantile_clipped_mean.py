"""The mean of array means between two private quantiles of them."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from hazemap.algorithms.published.user_level_means.array_averaging import Grouped, averaged
from hazemap.algorithms.published.user_level_means.budget_epsilon import epsilon_of
from hazemap.algorithms.published.user_level_means.noisy_mean import Mean
from hazemap.encoders.array_quantile_scores import ArrayQuantiles
from hazemap.errors import InputError
from hazemap.queries import Choice, Prices, Rounds
from hazemap.tables.sample_arrays import Grouping, SampleCounts
from hazemap.values.quantizer import Quantizer


@dataclass(frozen=True)
class QuantileMean(Grouped):
    """Array means clipped to their private `rank` and 1 − `rank` quantiles (Smith 2011), then averaged. VALUES ONLY.

    With `rank` None, 2/ε arrays are cut off at each end (Amin et al. 2019), a quarter of all at most: ε is what the
    whole budget buys, √2 · Δ/σ, so it is public. (The authors' code reads this rank off the private means.)

    >>> import numpy as np
    >>> from hazemap.tables.sample_arrays import BestFit
    >>> QuantileMean(Quantizer(0, 65), SampleCounts(np.array([3, 10])), BestFit(3)).rank
    Fraction(1, 10)
    """

    quantizer: Quantizer
    contributions: SampleCounts
    grouping: Grouping
    rank: Fraction | None = Fraction(1, 10)
    share_of_choice: Fraction = Fraction(1, 2)

    def __post_init__(self) -> None:
        if self.rank is not None and not 0 <= self.rank < Fraction(1, 2):
            raise InputError(f"means are clipped at a rank from 0 to below 1/2, not {self.rank}")

    def rounds(self, prices: Prices) -> Rounds[Mean]:
        """Two choices, asked together, and a sum."""
        rank = self.dependent(prices) if self.rank is None else self.rank
        ends = ArrayQuantiles(self.quantizer, self.contributions, self.grouping, (rank, 1 - rank))
        chosen = yield Choice(ends, self.share_of_choice)
        low, high = sorted(int(reading) for reading in chosen.sums)
        mean = yield from averaged(self, low, high, 1 - self.share_of_choice)
        return mean

    def dependent(self, prices: Prices) -> Fraction:
        """2/ε of all arrays, as a part of them: from the budget and public numbers alone."""
        arrays = self.grouping.arrays(self.contributions).number
        return min(Fraction(ceil(2 / epsilon_of(prices)), arrays), Fraction(1, 4))
