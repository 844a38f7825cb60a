"""Privacy budgets as exact rationals.

Three definitions, for neighbours that differ by one person added or removed:

* `PureDP(epsilon)`: pure ε-differential privacy (Dwork et al. 2006). Answered with discrete Laplace noise.
* `ZCDP(rho)`: zero-concentrated differential privacy (Bun and Steinke 2016). Discrete Gaussian noise.
* `ApproxDP(epsilon, delta)`: (ε, δ). Held and divided as the largest ρ whose conversion stays within it
  (Canonne, Kamath and Steinke 2020, proposition 12), so parts of it add up exactly as well.

A part of a budget is a `share` of it, a rational between 0 and 1. `implied_epsilon` is what a budget in
ρ stands for.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_DOWN, Decimal, localcontext
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Literal

from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.files.number_text import is_rational

Number = int | float | str | Fraction

LONGEST = 640
"""Digits of a number that is given as text, at most."""


def exact(number: Number, what: str = "the number") -> Fraction:
    """The rational a person meant by `0.1`: its decimal digits, not the binary float next to it.

    >>> exact(0.1)
    Fraction(1, 10)
    """
    try:
        if isinstance(number, bool):
            raise ValueError("true and false are not numbers")
        return Fraction(number if isinstance(number, int | Fraction) else _short(str(number)))
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{what} must be a finite number, not {number!r:.60}") from None


def _short(text: str) -> str:
    """A number as text, if it has few enough digits when it is written out: 1e999999999 would fill the memory."""
    if not is_rational(text):
        raise ValueError("no number in digits")
    exponent = text.lower().partition("e")[2]
    if len(text) > LONGEST or len(exponent) > 5 or (exponent and abs(int(exponent)) > LONGEST):
        raise ValueError("too many digits")
    return text


def _positive(number: Number, what: str) -> Fraction:
    value = exact(number, what)
    if value <= 0:
        raise InputError(f"{what} must be above 0, not {number}")
    return value


@dataclass(frozen=True)
class PureDP:
    """Pure ε-differential privacy.

    >>> PureDP(1).part(Fraction(1, 20))
    PureDP(epsilon=Fraction(1, 20))
    """

    epsilon: Fraction

    def __init__(self, epsilon: Number) -> None:
        object.__setattr__(self, "epsilon", _positive(epsilon, "epsilon"))

    @property
    def rho(self) -> Fraction:
        """The ρ it implies (Bun and Steinke 2016, proposition 1.4)."""
        return self.epsilon**2 / 2

    def part(self, share: Fraction) -> "PureDP":
        """What a share of it buys."""
        return PureDP(self.epsilon * share)

    def __str__(self) -> str:
        return f"ε = {_shown(self.epsilon)}"


@dataclass(frozen=True)
class ZCDP:
    """Zero-concentrated differential privacy.

    >>> str(ZCDP("0.5"))
    'ρ = 0.5'
    """

    rho: Fraction

    def __init__(self, rho: Number) -> None:
        object.__setattr__(self, "rho", _positive(rho, "rho"))

    def part(self, share: Fraction) -> "ZCDP":
        """What a share of it buys."""
        return ZCDP(self.rho * share)

    def __str__(self) -> str:
        return f"ρ = {_shown(self.rho)}"


@dataclass(frozen=True)
class ApproxDP:
    """(ε, δ)-differential privacy, spent as zCDP.

    >>> round(float(ApproxDP(1, 1e-6).rho), 4)
    0.0244
    """

    epsilon: Fraction
    delta: Fraction

    def __init__(self, epsilon: Number, delta: Number) -> None:
        object.__setattr__(self, "epsilon", _positive(epsilon, "epsilon"))
        object.__setattr__(self, "delta", _positive(delta, "delta"))
        if self.delta >= 1:
            raise InputError(f"delta must be below 1, not {delta}")

    @cached_property
    def rho(self) -> Fraction:
        """The largest ρ (rounded down to 40 bits) that implies it."""
        return _rho_within(float(self.epsilon), math.log(self.delta.numerator) - math.log(self.delta.denominator))

    def part(self, share: Fraction) -> ZCDP:
        """What a share of it buys."""
        return ZCDP(self.rho * share)

    def __str__(self) -> str:
        return f"(ε, δ) = ({_shown(self.epsilon)}, {float(self.delta):.3g})"


Budget = PureDP | ZCDP | ApproxDP


def make_up(parts: Iterable[Budget], whole: Budget) -> bool:
    """Whether these parts of a budget are exactly all of it: ε's add up under pure ε, ρ's otherwise.

    >>> make_up([PureDP(1).part(Fraction(1, 10)), PureDP("0.9")], PureDP(1))
    True
    """
    each = list(parts)
    if isinstance(whole, PureDP):
        return all(isinstance(part, PureDP) for part in each) and (
            sum((part.epsilon for part in each if isinstance(part, PureDP)), Fraction(0)) == whole.epsilon
        )
    return (
        not any(isinstance(part, PureDP) for part in each)
        and sum((part.rho for part in each), Fraction(0)) == whole.rho
    )


@dataclass(frozen=True)
class PrivacyAmount:
    """So much privacy, or none: ε's of pure differential privacy, or ρ's of zero-concentrated.

    >>> str(PrivacyAmount("ε", Fraction(0)))
    'ε = 0'
    """

    measure: Literal["ε", "ρ"]
    value: Fraction

    def __str__(self) -> str:
        """Nine digits, rounded down: who asks for what is shown to be left is not refused."""
        with localcontext(prec=9, rounding=ROUND_DOWN):
            return f"{self.measure} = {float(decimal(self.value)):.9g}"


def decimal(value: Fraction) -> Decimal:
    """A rational in digits, rounded as the context says."""
    return Decimal(value.numerator) / Decimal(value.denominator)


def log_delta(rho: float, epsilon: float) -> float:
    """The least ln δ found such that ρ-zCDP implies (ε, δ): over all α > 1 in Canonne et al. 2020, proposition 12.

    Any α gives a valid bound, so the search need not find the best one to be right.
    """

    def bound(alpha: float) -> float:
        return (alpha - 1) * (alpha * rho - epsilon) + (alpha - 1) * math.log1p(-1 / alpha) - math.log(alpha)

    low, high = 1 + 1e-9, max(2.0, (epsilon + 1) / (2 * rho) + 2) * 4
    for _ in range(200):  # ternary search in a convex function
        third = (high - low) / 3
        if low + third == low and high - third == high:
            break  # no double lies between
        if bound(low + third) < bound(high - third):
            high -= third
        else:
            low += third
    return bound((low + high) / 2)


def _rho_within(epsilon: float, goal: float) -> Fraction:
    low, high = 0.0, epsilon + 1
    goal -= 1e-9  # outward: far above the rounding error of the few operations in `bound`
    for _ in range(100):
        middle = (low + high) / 2
        if middle and log_delta(middle, epsilon) <= goal:
            low = middle
        else:
            high = middle
        if math.floor(low * 2**40) == math.floor(high * 2**40):
            break
    rho = Fraction(math.floor(low * 2**40), 2**40)
    if rho <= 0:
        raise InputError("this (epsilon, delta) is too small to spend: no ρ above 2⁻⁴⁰ stays within it")
    return rho


def _shown(value: Fraction) -> str:
    try:
        return f"{float(value):.6g}"
    except OverflowError:  # the number of a hostile task, which is refused in words
        return f"{Decimal(value.numerator) / Decimal(value.denominator):.6g}"


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


@dataclass(frozen=True)
class ReportPrice:
    """(ε, δ), upper bounds in exact rationals; `rho`, where it is known, is zCDP but for the probability `spill`.

    A pure price, with δ = 0, implies ρ = ε²/2 (Bun and Steinke 2016, proposition 1.4; approximate zCDP: section 8).

    >>> ReportPrice(Fraction(1, 10), Fraction(0)).in_zcdp
    (Fraction(1, 200), Fraction(0, 1))
    """

    epsilon: Fraction
    delta: Fraction
    rho: Fraction | None = None
    spill: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.epsilon < 0 or not 0 <= self.delta < 1 or (self.rho is not None and self.rho < 0):
            raise InputError("a price has an ε and a ρ of 0 or more, and a δ from 0 to below 1")
        if not 0 <= self.spill < 1 or (self.spill and self.rho is None):
            raise InputError("the spill of a price is that of its ρ: 0 or more, and below 1")

    @property
    def in_zcdp(self) -> tuple[Fraction, Fraction] | None:
        """ρ and spill that are known to hold; None where none are."""
        if self.rho is not None:
            return self.rho, self.spill
        return None if self.delta else (self.epsilon**2 / 2, Fraction(0))

    def within(self, other: "ReportPrice") -> bool:
        """Whether this price is no more than another, in ε and δ, and in ρ where the other states one."""
        if self.epsilon > other.epsilon or self.delta > other.delta:
            return False
        mine = self.in_zcdp
        return other.rho is None or (mine is not None and mine[0] <= other.rho and mine[1] <= other.spill)

    def __str__(self) -> str:
        return f"(ε, δ) = ({float(self.epsilon):.6g}, {float(self.delta):.3g})"
