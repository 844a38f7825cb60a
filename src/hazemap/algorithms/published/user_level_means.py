"""The mean of a value in one cell (speed in one hexagon and hour) where each person has many samples.

Privacy model: VALUES ONLY (`hazemap.privacy.statement_facts`). How many samples each person gives is public; what they
are is protected, all samples of a person together (Rameshwar et al. 2024). The lengths of arrays, and how many samples
a person counts for, are chosen from public numbers of samples alone.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import ClassVar, NamedTuple

import numpy as np

from hazemap.encoders.sample_statistics import RobustMeanScores, ValueSums
from hazemap.errors import InputError
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.queries.noisy_queries import Choice, Prices, Rounds
from hazemap.tables.sample_grouping import SampleCounts
from hazemap.values.quantizer import Quantizer


class Mean(NamedTuple):
    """A private mean, in units of the value.

    `stddev` is the standard deviation of its noise, without what grouping and clipping add; NaN where the noise depends
    on how people's means lie.
    """

    value: float
    stddev: float


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
        most = self.most or self.length(laplace_epsilon_of(prices))
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


def laplace_epsilon_of(prices: Prices) -> float:
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

    That error is the largest bias of the mean of arrays plus the mean size of its noise, as a part of the range:
    1 − Σ min(m_ℓ, m)/Σ m_ℓ + m/(ε Σ min(m_ℓ, m)) (Rameshwar et al. 2024, equation 1).

    >>> some = SampleCounts(np.array([1, 9, 5, 9, 400]))
    >>> worst_case_length(some, 0.01), worst_case_length(some, 100)
    (1, 400)
    """
    lengths, kept, _ = contributions.distinct
    return int(lengths[np.argmin(1 - kept / contributions.total + lengths / (epsilon * kept))])
