"""Which standard errors an answer may claim, by the prices of the trust model that gave it."""

from math import sqrt
from typing import NamedTuple

import numpy as np

from hazemap.federated.trust.cohort_assumptions import SecureSumPrices
from hazemap.federated.trust.randomised_reports import ROUNDING, ReportPrices
from hazemap.federated.trust.shuffled import ShuffledReportPrices, ShufflePrices
from hazemap.machine_code.arrays import Floats
from hazemap.privacy.mechanisms import noise_for
from hazemap.queries.noisy_queries import Answer, Prices, Query

NEAR = 1e-6
"""How far standard errors may be apart that are the same: they are sums in another order."""


class ClaimableErrors(NamedTuple):
    """The least and the largest standard error of each number: of one number where all have the same."""

    least: Floats
    largest: Floats

    def fits(self, claimed: Floats) -> bool:
        """Whether these are claimed; O(numbers)."""
        return bool(((claimed >= self.least * (1 - NEAR)) & (claimed <= self.largest * (1 + NEAR))).all())


def claimable(prices: Prices, question: Query, answer: Answer) -> ClaimableErrors:
    """What this answer may claim, by what its share of the budget buys.

    Noise that devices make together, and that of randomised reports, is of as many people as the answer says it is
    over. That number is not checked here, except that no round is opened with fewer than the trust model says.
    """
    encoder, share, people = question.encoder, question.share, answer.people
    if isinstance(prices, SecureSumPrices) and people is not None:
        cohort = prices.cohort
        one = noise_for(prices.budget.part(share), encoder.sensitivity).stddev
        honest = [cohort.honest(size) for size in cohort.shards]
        fewest = max(people, min(cohort.survivors(size) for size in cohort.shards))
        return _both(one * sqrt(fewest / max(honest)), one * sqrt(fewest / min(honest)))
    if isinstance(prices, ShufflePrices) and people is not None:
        one = noise_for(prices.budget.part(share), encoder.sensitivity).stddev
        return _only(one * sqrt(max(people, prices.batch.minimum) / prices.batch.honest))
    if isinstance(prices, ReportPrices | ShuffledReportPrices) and people is not None:
        law = prices.law(share) if isinstance(prices, ShuffledReportPrices) else prices.law(share, encoder.size)
        sums = answer.sums.astype(np.float64)
        # the variance may depend on the count, of which the answer has a whole number beside it
        variances = np.stack([law.variance(people, sums + step) for step in (-1.0, 0.0, 1.0)]) + ROUNDING
        return ClaimableErrors(np.sqrt(variances.min(axis=0)), np.sqrt(variances.max(axis=0)))
    return _only(prices.stddev(encoder, share))


def _only(stddev: float) -> ClaimableErrors:
    return _both(stddev, stddev)


def _both(least: float, largest: float) -> ClaimableErrors:
    return ClaimableErrors(np.array([least]), np.array([largest]))
