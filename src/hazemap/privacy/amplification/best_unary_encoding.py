"""The unary encoding that counts best at a given price of the sum."""

import math
from fractions import Fraction
from typing import NamedTuple

from hazemap.errors import InputError
from hazemap.privacy.amplification.bit_flip_law import LARGEST_EPSILON, BitFlipLaw
from hazemap.privacy.amplification.certified_bounds import exp_bounds
from hazemap.privacy.amplification.neighbours import SumRound, exact_sum
from hazemap.privacy.budget import Number, exact

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
