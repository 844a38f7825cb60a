"""Bounds for any ε₀-DP reports whose order is lost, so for their sum: they know nothing of the law of a report."""

from fractions import Fraction
from functools import lru_cache

import numpy as np

from hazemap.machine_code.arrays import Floats
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.certified_bounds import (
    UNIT,
    binomial,
    exp_bounds,
    float_below,
    ln_bounds,
    rounded_up,
    square_root_above,
)
from hazemap.privacy.amplification.sum_of_reports import CoordinatePair

_LARGEST = 60
"""Beyond this ε₀ no sum that a computer could add amplifies anything by clones."""

_TOGETHER = 1e-3
"""Numbers of clones this near to each other are priced as the smallest of them."""


def theorem_3_1(honest: int, epsilon: Fraction, delta: Fraction) -> Fraction | None:
    """ε of the sum of n reports that are ε₀-DP for replacement (McMillan et al. 2022, theorem 3.1), rounded up.

    ln(1 + (e^ε₀ − 1)(4 √(2 ln(4/δ))/√((e^ε₀ + 1) n) + 4/n)) where ε₀ ≤ ln(n/(8 ln(2/δ)) − 1); else None.

    >>> float(theorem_3_1(100_000, Fraction(4), Fraction(1, 10**6)))
    0.407792588
    """
    if epsilon > _LARGEST:
        return None
    low, high = exp_bounds(epsilon)
    if 8 * (high + 1) * ln_bounds(2 / delta)[1] > honest:
        return None
    root = square_root_above(2 * ln_bounds(4 / delta)[1] / ((low + 1) * honest))
    return min(epsilon, rounded_up(ln_bounds(1 + (high - 1) * (4 * root + Fraction(4, honest)))[1]))


@lru_cache(maxsize=64)
def clone_bound(honest: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """ε of n shuffled reports that are ε₀-DP for replacement, by clones (Feldman et al. 2022), rounded up.

    With C ~ Bin(n − 1, 2/(e^ε₀ + 1)), A ~ Bin(C, ½) and D ~ Bern(e^ε₀/(e^ε₀ + 1)), (A + D, C − A + 1 − D) is compared
    with its mirror. C + 1 is the sum of both, so it is known, and given C the pair is randomised response among C fair
    coins. A further coin is post-processing; so numbers of clones up to 0.1 % apart are priced as the least of them.
    The bound is for one sum whose reports are seen; never above ε₀. At most some hundred windows of O(√n).

    >>> float(clone_bound(1000, Fraction(3), Fraction(1, 10**6)))
    0.823111388
    """
    goal = float_below(delta)
    if epsilon > _LARGEST or goal < 1e-40:
        return epsilon
    low, high = exp_bounds(epsilon)
    tail = goal * 1e-7
    clones = binomial(honest - 1, float(2 / (low + 1)), float((high - 1) / (high + 1)), tail)
    response = BitFlipLaw.symmetric(epsilon).chances
    pairs: list[tuple[float, CoordinatePair]] = []
    index = 0
    while index < len(clones.mass):
        fewest = clones.start + index
        end = index + max(1, int(fewest * _TOGETHER))
        weight = float(clones.mass[index:end].sum()) * (1 + clones.relative + (end - index) * UNIT)
        pairs.append((weight, CoordinatePair(response, binomial(fewest, 0.5, 0.5, tail))))
        index = end

    def deltas(epsilons: Floats) -> Floats:
        total = np.full(len(epsilons), clones.outside)
        for weight, pair in pairs:
            total += weight * pair.forward(epsilons)
        return total * (1 + (len(pairs) + 4) * UNIT)

    least, most = 0.0, float(epsilon)
    while most - least > 1e-9 * most:
        points = np.linspace(least, most, 34)
        enough = np.nonzero(deltas(points) <= goal)[0]
        if not len(enough):
            return epsilon
        first = int(enough[0])
        if first == 0:
            return rounded_up(least)
        least, most = float(points[first - 1]), float(points[first])
    return min(epsilon, rounded_up(most))
