"""The price of sums of reports by the exact law of the sum."""

import math
from collections.abc import Sequence
from fractions import Fraction

from hazemap.privacy.amplification.certified_bounds import float_below, rounded_up
from hazemap.privacy.amplification.neighbours import Neighbours, SumRound, losses

SMALLEST_DELTA = 1e-40
"""For a smaller δ the floats of the exact law show nothing, and the local ε₀ is the price."""

SPILL = 1e-6
"""The part of δ that may go to what the grids leave out."""


def exact_sum(
    schedule: Sequence[SumRound], delta: Fraction, neighbours: Neighbours = Neighbours.REPLACEMENT
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
