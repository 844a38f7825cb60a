"""What a share of a budget buys where people add the noise themselves, shard by shard."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt

from hazemap.encoders import Encoder
from hazemap.privacy.budget import PureDP
from hazemap.privacy.mechanisms import noise_for, share_for
from hazemap.trust.cohorts import Cohort

_STEP = Fraction(1, 1 << 30)  # of the shares that `share_for` finds


@dataclass(frozen=True)
class SecureSumPrices:
    """The noise of a round in which as many people answer as the cohort declares.

    In a shard of which n people answered, each with a Pólya(1/N) share, noise has n/N times the variance σ² of one
    discrete Laplace number of scale Δ₁/ε; shards are independent, so the whole has Σ n/N · σ². The price is that of
    n = survivors, the least number with which a shard is opened. If more answer, there is more noise (at most
    1/(1 − dropout) times the variance, about what more people bring in counts): answers carry what is really in them.

    >>> from hazemap.encoders import Counts
    >>> from hazemap.cells import Leaves
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> prices = SecureSumPrices(PureDP(1), Cohort(100_000, 10_000, dropout=Fraction(0), corrupt=Fraction(0)))
    >>> counts = Counts(Leaves.at_level(Quadtree.world(depth=1), 1))
    >>> round(prices.stddev(counts, Fraction(1, 10)) / 10**0.5, 3)
    14.136
    """

    budget: PureDP
    cohort: Cohort

    @cached_property
    def parts(self) -> float:
        """Σ n/N: how many times the variance that a curator's noise would have."""
        sizes = self.cohort.shards
        return float(sum(Fraction(self.cohort.survivors(size), self.cohort.honest(size)) for size in sizes))

    def stddev(self, encoder: Encoder, share: Fraction) -> float:
        """The standard deviation of the noise in each sum."""
        return noise_for(self.budget.part(share), encoder.sensitivity).stddev * sqrt(self.parts)

    def share(self, encoder: Encoder, stddev: float) -> Fraction:
        """The least share that buys a standard deviation this small."""
        share = share_for(self.budget, encoder.sensitivity, stddev / sqrt(self.parts))
        return share if self.stddev(encoder, share) <= stddev else share + _STEP  # where the division was rounded
