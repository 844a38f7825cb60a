"""Between which data of one person a price of a sum of reports holds, and that price by the exact law of the sum."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from hazemap.errors import InputError
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.certified_bounds import float_below, rounded_up
from hazemap.privacy.amplification.privacy_loss_distribution import PrivacyLossDistribution
from hazemap.privacy.amplification.sum_of_reports import coordinate_losses

LARGEST_SUM = 10**8
"""A larger sum is priced as this one: it gives away less, since dropping a report is post-processing."""

MOST_ROUNDS = 1_000_000


class ReportNeighbours(Enum):
    """What one person's report may be made from instead. Someone reports either way.

    >>> ReportNeighbours.REMOVAL.local(BitFlipLaw.symmetric(Fraction(1)))
    Fraction(1, 1)
    """

    REPLACEMENT = "another one-hot vector"
    REMOVAL = "a vector of zeros"
    RANDOM_REPORT = "a one-hot vector chosen at random"

    def local(self, law: BitFlipLaw) -> Fraction:
        """ε of one report, rounded up."""
        return law.removal if self is ReportNeighbours.REMOVAL else law.replacement

    def allowed(self, delta: Fraction, bins: int | None) -> Fraction:
        """The δ of a replacement that this δ buys.

        A random bin of k is the true one with probability 1/k. So, by joint convexity, δ ≤ (1 − 1/k) δ of replacement.
        """
        if self is not ReportNeighbours.RANDOM_REPORT or bins is None:
            return delta
        if bins < 2:
            raise InputError("a random report needs two bins or more: of one bin it is the true one")
        return min(delta * Fraction(bins, bins - 1), Fraction(1))


@dataclass(frozen=True)
class SumRound:
    """A round of a schedule that was fixed before anything was asked: the law, how many honest reports, how often."""

    law: BitFlipLaw
    honest: int
    times: int = 1

    def __post_init__(self) -> None:
        if type(self.honest) is not int or type(self.times) is not int:
            raise InputError("the reports of a sum and its rounds are counted in whole numbers")
        if self.honest < 1:
            raise InputError(f"a sum has 1 honest report or more, the person's own, not {self.honest}")
        if not 1 <= self.times <= MOST_ROUNDS:
            raise InputError(f"a round is asked between 1 and {MOST_ROUNDS:,} times, not {self.times}")


def losses(
    schedule: Sequence[SumRound], spill: float, neighbours: ReportNeighbours
) -> tuple[PrivacyLossDistribution, ...]:
    """Losses of all rounds together, of each direction that has to be looked at.

    A replacement moves one coordinate each way, so the losses of both directions are alike. A removal moves one.
    """
    alone = neighbours is ReportNeighbours.REMOVAL
    done: list[PrivacyLossDistribution] = []
    part = spill / sum(4 * one.times for one in schedule)
    for one in schedule:
        coordinate = coordinate_losses(one.law, min(one.honest, LARGEST_SUM), part)
        ways = [coordinate.forward, coordinate.backward]
        if not alone:
            ways = [ways[0].compose(ways[1], part)]
        ways = [way.rounds(one.times, part) for way in ways]
        done = [a.compose(b, part) for a, b in zip(done, ways, strict=True)] if done else ways
    return tuple(done)


SMALLEST_DELTA = 1e-40
"""For a smaller δ the floats of the exact law show nothing, and the local ε₀ is the price."""

SPILL = 1e-6
"""The part of δ that may go to what the grids leave out."""


def exact_sum(
    schedule: Sequence[SumRound], delta: Fraction, neighbours: ReportNeighbours = ReportNeighbours.REPLACEMENT
) -> Fraction:
    """ε of all rounds of a schedule together, rounded up; never above the sum of the local ε₀.

    The questions may be chosen on the way, from what the rounds before said. The laws of the reports, the sizes of the
    sums and the number of rounds may not: they are the schedule. It covers whatever the other people hold. Tight to
    about 1 % for δ ≥ 10⁻⁹ (the absolute errors of the transforms are below 10⁻¹¹); a bound for every δ.

    >>> from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
    >>> once = SumRound(BitFlipLaw.asymmetric(3), 10_000)
    >>> round(float(exact_sum([once], Fraction(1, 10**6))), 3)
    0.11
    """
    local = sum((one.times * neighbours.local(one.law) for one in schedule), Fraction(0))
    goal = float_below(delta)
    if goal < SMALLEST_DELTA or not schedule:
        return local
    priced = max(way.epsilon(goal) for way in losses(schedule, goal * SPILL, neighbours))
    return local if math.isinf(priced) else min(local, rounded_up(priced))
