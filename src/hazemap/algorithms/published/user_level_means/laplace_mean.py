"""The mean of all samples, with noise for the person who has most of them."""

from dataclasses import dataclass
from fractions import Fraction

from hazemap.algorithms.published.user_level_means.noisy_mean import Mean
from hazemap.encoders.single_cell_sums import ValueSums
from hazemap.errors import InputError
from hazemap.queries import Prices, Query, Rounds
from hazemap.tables.sample_arrays import SampleCounts
from hazemap.values.quantizer import Quantizer


@dataclass(frozen=True)
class PlainMean:
    """Mean + Lap(U m/(ε Σ min(m_ℓ, m))): of all samples, or of at most `most` of each person. VALUES ONLY.

    >>> import numpy as np
    >>> PlainMean(Quantizer(0, 65), SampleCounts(np.array([3, 10]))).most
    10
    """

    quantizer: Quantizer
    contributions: SampleCounts
    most: int = 0

    def __post_init__(self) -> None:
        if self.most < 0:
            raise InputError(f"of each person some samples count, or with 0 all, not {self.most}")
        object.__setattr__(self, "most", min(self.most or self.contributions.most, self.contributions.most))

    def rounds(self, prices: Prices) -> Rounds[Mean]:  # noqa: ARG002 - one query needs no price
        """One sum."""
        answer = yield Query(ValueSums(self.quantizer, self.most), Fraction(1))
        samples = int(self.contributions.kept(self.most).sum())
        return Mean(
            self.quantizer.value(answer.sums[0] / samples), self.quantizer.width(float(answer.stddev[0]) / samples)
        )
