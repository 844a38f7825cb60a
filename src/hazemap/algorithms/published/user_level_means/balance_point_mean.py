"""Where people balance: a robust mean chosen in one question, with no array and no clipping range to be paid for."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hazemap.algorithms.published.user_level_means.budget_epsilon import epsilon_of
from hazemap.algorithms.published.user_level_means.noisy_mean import Mean
from hazemap.encoders.robust_mean_scores import RobustMeanScores
from hazemap.errors import InputError
from hazemap.queries import Choice, Prices, Rounds
from hazemap.tables.sample_arrays import SampleCounts
from hazemap.values.quantizer import Quantizer


@dataclass(frozen=True)
class BalancedMean:
    """Huber's (1964) M-estimate of people's means, by permute-and-flip over the quantizer. VALUES ONLY.

    Person ℓ has weight c_ℓ = min(m_ℓ, m) and pulls at t with their mean's distance, clipped to ±h, h = `reach` · U.
    With K = Σ c_ℓ/m, of which a part p lies within h, the choice is off by about 4h/(ε K p): a quarter of U/(ε K̄),
    which the mean of arrays is off by, and no budget goes to a clipping range first. No sample is left out of a
    person's mean, so that means are close to each other; whoever is far from everybody pulls no more than h.

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

    def __post_init__(self) -> None:
        if not 0 < self.reach <= 1 or self.most < 0:
            raise InputError("a reach is a part of the range, and a weight 1 or more, or 0 for the best one")

    def rounds(self, prices: Prices) -> Rounds[Mean]:
        """One choice."""
        most = self.most or self.length(epsilon_of(prices))
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
