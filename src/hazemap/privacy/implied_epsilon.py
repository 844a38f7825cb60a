"""The ε that a budget in ρ implies, and what so much of it means in words."""

import math
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache

from hazemap.privacy.budget import Budget, PrivacyAmount, PureDP, log_delta

USUAL = 3
"""ε in all that a data set is let pay, where nobody says more or less."""

DELTA = Fraction(1, 10**6)
"""At this δ an amount of ρ is said as ε."""

_SLACK = 1e-9  # of ln δ: far above the rounding error of `log_delta`


@lru_cache(maxsize=256)
def implied_epsilon(rho: Fraction, delta: Fraction) -> Fraction:
    """The ε with which ρ-zCDP is (ε, δ)-private: the least one, rounded up to four digits.

    >>> float(implied_epsilon(Fraction(1, 2), Fraction(1, 10**6)))
    5.222
    """
    goal = math.log(delta) - _SLACK
    rounded = max(float(rho), 1e-300)
    low, high = 0.0, rounded + 2 * math.sqrt(rounded * -goal)  # Bun and Steinke 2016, proposition 1.3
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if log_delta(rounded, middle) <= goal else (middle, high)
    with localcontext(prec=4, rounding=ROUND_CEILING):
        return Fraction(+Decimal(high))


def amount_of(budget: Budget) -> PrivacyAmount:
    """A budget as so much ε, where it is pure, or ρ."""
    return PrivacyAmount("ε", budget.epsilon) if isinstance(budget, PureDP) else PrivacyAmount("ρ", budget.rho)


def much(spent: PrivacyAmount) -> str | None:
    """What it means that so much is spent in all, in words; None up to the usual cap.

    >>> much(PrivacyAmount("ε", Fraction(3))), much(PrivacyAmount("ε", Fraction(13)))[:61]
    (None, 'ε = 13 in all is much: whoever has all its releases may be up')
    """
    if spent.value <= 0:
        return None
    epsilon = spent.value if spent.measure == "ε" else implied_epsilon(spent.value, DELTA)
    if epsilon <= USUAL:
        return None
    times = f"{math.exp(min(float(epsilon), 700.0)):,.0f}" if epsilon < 14 else "more than a million"
    implied = "" if spent.measure == "ε" else f" (ε = {float(epsilon):.3g} at δ = {float(DELTA):g})"
    return (
        f"{spent}{implied} in all is much: whoever has all its releases may be up to {times} times as sure as before "
        f"(in odds) that somebody is in the data, or was somewhere; at ε = {USUAL} it is {math.exp(USUAL):.0f} times"
    )
