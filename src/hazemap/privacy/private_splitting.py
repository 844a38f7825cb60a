"""A tree that is grown in private, for a price that does not depend on its depth (Zhang, Xiao and Xie 2016: PrivTree).

A cell v of depth d with c(v) votes is split iff b(v) + Z > θ, where b(v) = max(c(v) − d·δ, θ − δ) and Z is fresh
discrete Laplace noise of scale λ, r = e^(−1/λ). Only the tree is published. Counts are integers, and so is δ.

**What one more vote costs.** It raises by one the counts of the cells around it, a way down from the root. Let a cell
be split with probability p(b). If b < θ, one more vote multiplies p by 1/r exactly. If b = θ + j with j ≥ 0, then
p = 1 − r^j/(1 + r), and with u = r^j it is multiplied by (1 + r − ru)/(1 + r − u), whose logarithm is at most
u/(2 − u)/λ: both sides are 0 for r = 1, and minus their derivatives by r are u(2 − u)/((1 + rw)(r + w)) and
u/((2 − u) r), w = 1 − u; the second is not less, as (1 + rw)(r + w) − r(1 + w)² = w(1 − r)² ≥ 0.

Of the cells of a tree that were split on the way down, let the last whose b changes be i = 0, the one above it i = 1,
and so on. The change of b says c − dδ ≥ θ − δ for the last; counts grow upwards and d falls, so b ≥ θ + (i − 1)δ for
i ≥ 1. That is the point of the bias δ: with e^(−δ/λ) ≤ 1/β the costs fall like 1/β^(i−1), and the tree costs at most

    (1/λ) · (1 + 1 + Σ 1/(2β^i − 1), i = 1, 2 …)

with as many terms in all as the tree has depths that can be split. The cell where the way ends is less likely to stay
unsplit, so its term is on the other side, and no more than 1/λ. (The authors bound u/(2 − u) by u: 1 + β/(β − 1) =
(2β − 1)/(β − 1). For β = 4 that is 2.333, and the sum above 2.186, so the noise is 6 % less.)

**What a person costs.** Their votes can be added one after the other, each at this price: with at most k votes k times
as much, wherever they are. So λ = k/ε · (the sum above), and δ is the least integer with e^(−δ/λ) ≤ 1/β.

`tests/privacy/test_private_splitting.py` compares all trees of small squares, for all neighbours.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log

from hazemap.errors import InputError
from hazemap.privacy.samplers.bernoulli import exp_bounds

_GRAIN = 1 << 20  # sums are rounded up to multiples of 1/_GRAIN, so that rationals stay short


@dataclass(frozen=True)
class SplittingNoise:
    """The noise and the bias with which a tree is grown.

    >>> SplittingNoise.within(Fraction(1, 2), most=1, fan=4, depth=10)
    SplittingNoise(scale=Fraction(2291763, 524288), decay=7)
    """

    scale: Fraction
    decay: int

    @classmethod
    def within(cls, epsilon: Fraction, most: int, fan: int, depth: int) -> "SplittingNoise":
        """What makes a tree cost ε, where a person has at most `most` votes and cells of `depth` depths are split."""
        if epsilon <= 0 or most < 1 or fan < 2 or depth < 1:
            raise InputError(
                "a tree is grown for an epsilon above 0, 1 vote a person or more, and 1 depth or more of cells that "
                f"are cut in 2 or more; found {epsilon}, {most}, {depth} and {fan}"
            )
        scale = most * times(fan, depth) / epsilon
        low = max(0, ceil(float(scale) * log(fan) * (1 - 1e-9)) - 1)  # too little; a float may be wrong by millions
        high = low + 1
        while not _fallen(high, scale, fan):
            high = low + 2 * (high - low)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if _fallen(middle, scale, fan) else (middle, high)
        return cls(scale, high)


def times(fan: int, depth: int) -> Fraction:
    """How many times what one cell costs a whole tree costs, rounded up: the sum in the text above.

    >>> [round(float(times(4, depth)), 4) for depth in (1, 2, 3, 4, 24)]
    [1.0, 2.0, 2.1429, 2.1751, 2.1856]
    """
    every = sum((Fraction(1, 2 * fan**i - 1) for i in range(1, depth - 1)), Fraction(min(depth, 2)))
    return Fraction(ceil(every * _GRAIN), _GRAIN)


def _fallen(decay: int, scale: Fraction, fan: int) -> bool:
    """Whether e^(−decay/scale) ≤ 1/fan, for certain."""
    bits = 64
    _, high = exp_bounds(decay / scale, bits)
    return high * fan <= 1 << bits
