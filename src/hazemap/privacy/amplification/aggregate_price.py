"""What a person's report costs them against whoever sees only sums of reports: the tightest bound that is proved.

Beside the exact law of the sum there are bounds for any ε₀-DP reports whose order is lost, so for their sum, which know
nothing of the law of a report (`theorem_3_1`, `clone_bound`). `best_unary` is the encoding that counts best at a price.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hazemap.errors import InputError, Refused
from hazemap.machine_code.arrays import Floats
from hazemap.privacy.amplification.bit_flip_law import LARGEST_EPSILON, BitFlipLaw
from hazemap.privacy.amplification.certified_bounds import (
    UNIT,
    binomial,
    exp_bounds,
    float_below,
    ln_bounds,
    rounded_up,
    square_root_above,
)
from hazemap.privacy.amplification.neighbours import LARGEST_SUM, ReportNeighbours, SumRound, exact_sum
from hazemap.privacy.amplification.sum_of_reports import CoordinatePair
from hazemap.privacy.amplification.zcdp_of_sum import renyi_symmetric
from hazemap.privacy.budget import Number, exact


@dataclass(frozen=True)
class AggregatePrice:
    """(ε, δ) of the sum, ε rounded up; the bound that gave it; and what has to be true for it, in words.

    >>> price = aggregate_price(BitFlipLaw.asymmetric(4), 100_000, Fraction(1, 10**6))
    >>> round(float(price.epsilon), 4), price.bound
    (0.0567, 'the exact law of the sum')
    """

    epsilon: Fraction
    delta: Fraction
    bound: str
    assumptions: tuple[str, ...]


def aggregate_price(
    law: BitFlipLaw,
    honest: int,
    delta: Number,
    rounds: int = 1,
    neighbours: ReportNeighbours = ReportNeighbours.REPLACEMENT,
    bins: int | None = None,
) -> AggregatePrice:
    """The price of `rounds` sums of at least `honest` reports each, the person's own among them.

    It compares all bounds that are proved for the case: the local ε₀, theorem 3.1, clones and theorem C.3 (added up
    over the rounds, each at δ/rounds), and the exact law. It is never above rounds · ε₀. It holds for every larger sum
    too, since dropping a report is post-processing. `bins` is how many bins a random report chooses from.
    """
    given = _delta(delta)
    schedule = SumRound(law, honest, rounds)
    local = rounds * neighbours.local(law)
    allowed = neighbours.allowed(given, bins)
    found = [(local, "the local ε₀ of the reports")]
    if 0 < allowed < 1:
        each = allowed / rounds
        found.append((exact_sum([schedule], allowed, neighbours), "the exact law of the sum"))
        counted = min(honest, LARGEST_SUM)
        if (by_theorem := theorem_3_1(honest, law.replacement, each)) is not None:
            found.append((rounds * by_theorem, "theorem 3.1 of McMillan et al. 2022"))
        found.append((rounds * clone_bound(counted, law.replacement, each), "clones (Feldman et al. 2022)"))
        if law.mirrored:
            by_renyi = rounds * renyi_symmetric(counted, law.removal, each)
            found.append((by_renyi, "theorem C.3 of McMillan et al. 2022"))
    epsilon, bound = min(found, key=lambda one: one[0])
    return AggregatePrice(epsilon, given, bound, _assumptions(honest, rounds, neighbours, bound == found[0][1]))


def minimum_cohort(
    law: BitFlipLaw,
    epsilon: Number,
    delta: Number,
    rounds: int = 1,
    neighbours: ReportNeighbours = ReportNeighbours.REPLACEMENT,
) -> int:
    """The least number of honest reports in a sum whose exact price is at most ε, by bisection.

    The price of n reports holds for every larger sum, by proof, so compare sizes with this number, not prices again:
    where covers change, a price as computed might rise in its last digits.
    `Refused` where no sum up to 10⁸ is enough.

    >>> minimum_cohort(BitFlipLaw.asymmetric(4), 1, Fraction(1, 10**6))
    447
    """
    goal, given = exact(epsilon, "epsilon"), _delta(delta)
    if goal <= 0:
        raise InputError("a price is above 0: ask for an epsilon above 0")

    def enough(honest: int) -> bool:
        return exact_sum([SumRound(law, honest, rounds)], given, neighbours) <= goal

    if enough(1):
        return 1
    low, high = 1, 64
    while not enough(high):
        if high >= LARGEST_SUM:
            raise Refused(
                f"no sum of up to {LARGEST_SUM:,} reports brings them down to ε = {float(goal):.6g}: "
                "choose a smaller ε₀, fewer rounds, or a larger ε"
            )
        low, high = high, min(4 * high, LARGEST_SUM)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _delta(delta: Number) -> Fraction:
    value = exact(delta, "delta")
    if not 0 <= value < 1:
        raise InputError(f"delta must be at least 0 and below 1, not {float(value):.6g}")
    return value


def _assumptions(honest: int, rounds: int, neighbours: ReportNeighbours, local: bool) -> tuple[str, ...]:
    unit = f"One person's report is made from their one-hot vector or from {neighbours.value}; they report either way."
    if local:
        return (unit, "Each report is randomised by its device as stated. Nothing is assumed of the others.")
    said = (
        unit,
        f"Only the sum is seen, and at least {honest:,} of its reports, this one included, are honest: randomised as "
        "stated, with fresh coins, and told to nobody. Nothing is assumed of what they say.",
        "No party can open, or obtain by subtracting two sums, one with fewer honest reports.",
    )
    if rounds == 1:
        return said
    schedule = f"The {rounds:,} rounds, their laws and their sizes were fixed beforehand; the questions need not be."
    return (*said, schedule)


_FINE = 1 << 48
"""turn_on is a multiple of 1/_FINE, keep one of 1/1024."""

_KEEPS = 1024


class BestUnary(NamedTuple):
    """The probabilities with which a person's own bit and another bit are sent as 1."""

    keep: Fraction
    turn_on: Fraction


def best_unary(
    epsilon: Number, delta: Number, honest: int, local_cap: Number, share: Number = Fraction(1, 10)
) -> BestUnary:
    """The keep ≥ ½ and the turn_on for which a bin's count varies least, at a price of the sum and a local cap.

    The variance of the unbiased count of a bin that F = `share` · n people hold is
    (n q(1 − q) + F (p(1 − p) − q(1 − q)))/(p − q)²; for the mean over all of k bins, put in share = 1/k. The price is
    proved for every p and q, and that of the pair returned is computed by the exact law: at most (ε, δ) for a
    replacement, with n honest reports, and locally at most `local_cap`. That no other pair is better is only found by
    search: for each p the least q that both allow, and p by trisection, to about 1/100. Seconds.

    >>> best = best_unary(Fraction(1, 4), Fraction(1, 10**6), 100_000, 8)
    >>> best.keep > Fraction(9, 10)
    True
    """
    goal, given, cap, part = (
        exact(number, name)
        for number, name in ((epsilon, "epsilon"), (delta, "delta"), (local_cap, "local_cap"), (share, "share"))
    )
    if goal <= 0 or not 0 < given < 1 or not Fraction(1, 1000) <= cap <= LARGEST_EPSILON or not 0 <= part <= 1:
        raise InputError(
            "the best encoding needs epsilon above 0, delta between 0 and 1, a local cap between 0.001 and "
            f"{LARGEST_EPSILON}, and a share of people between 0 and 1"
        )
    known: dict[int, tuple[float, BestUnary]] = {}

    def tried(step: int) -> tuple[float, BestUnary]:
        if step not in known:
            keep = Fraction(step, _KEEPS)
            pair = BestUnary(keep, _least_turn_on(keep, goal, given, honest, cap))
            known[step] = _variance(pair, part), pair
        return known[step]

    low, high = _KEEPS // 2, _KEEPS - 1
    while high - low > 8:
        third = (high - low) // 3
        if tried(low + third)[0] <= tried(high - third)[0]:
            high -= third
        else:
            low += third
    for step in (low, (low + high) // 2, high, _KEEPS // 2):
        tried(step)
    return min(known.values())[1]


def _least_turn_on(keep: Fraction, epsilon: Fraction, delta: Fraction, honest: int, cap: Fraction) -> Fraction:
    """The least multiple of 1/_FINE found that keeps both prices: by the cap, else near to it in its logarithm."""
    by_cap = keep / (keep + exp_bounds(cap)[0] * (1 - keep))
    least = Fraction(math.ceil(by_cap * _FINE) + 1, _FINE)

    def price(turn_on: Fraction) -> Fraction:
        return exact_sum([SumRound(BitFlipLaw.unary(keep, turn_on), honest)], delta)

    if least >= keep:
        raise InputError("this local cap leaves too little between the two probabilities: choose a larger one")
    if price(least) <= epsilon:
        return least
    low, high = float(least), float(keep) * (1 - 1e-6)  # a fifth of a standard error of nothing: the price is about 0
    guess = low
    for _ in range(40):
        step = float(price(_exactly(guess)) / epsilon)
        low, high = (low, min(high, guess)) if step <= 1 else (max(low, guess), high)
        if high < low * 1.002 or 0.999 < step <= 1:
            break
        guess *= min(step, 3.0) ** 2 * 1.0005  # ε is about 1/√turn_on
        if not low < guess < high:
            guess = math.sqrt(low * high)
    found = _exactly(high)
    if price(found) > epsilon:
        raise InputError("no unary encoding with this keep is within the price: choose a larger epsilon or delta")
    return found


def _exactly(chance: float) -> Fraction:
    return Fraction(math.ceil(chance * _FINE), _FINE)


def _variance(pair: BestUnary, share: Fraction) -> float:
    """Of the unbiased count, for each person."""
    keep, turn_on = pair
    dark, loud = turn_on * (1 - turn_on), keep * (1 - keep)
    return float((dark + share * (loud - dark)) / (keep - turn_on) ** 2)


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
