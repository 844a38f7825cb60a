"""What a release under the full model costs under values-only, where one person's values are replaced by others.

Two tables are neighbours of the full model if they differ by one person added or removed, and of values-only if one
person's values differ. Replacing is removing and adding: from D by way of D without the person to D'. So a mechanism
M of the full model is private under replacement as it is for groups of two:

* pure ε costs 2ε: P(M(D) ∈ S) ≤ e^ε P(M(D°) ∈ S) ≤ e^2ε P(M(D') ∈ S);
* ρ costs 4ρ: a group of k costs k²ρ (Bun and Steinke 2016, proposition 1.9);
* (ε, δ) that is spent as a ρ, as every `ApproxDP` here is, costs 4ρ; one that is known as (ε, δ) alone costs
  (2ε, (1 + e^ε) δ): P(M(D) ∈ S) ≤ e^ε P(M(D°) ∈ S) + δ ≤ e^ε (e^ε P(M(D') ∈ S) + δ) + δ.

The other way round nothing finite follows: a release under values-only may tell whereabouts exactly.
"""

from decimal import Context, Decimal
from fractions import Fraction

from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, ApproxDP, Budget, PureDP


def for_a_replacement(price: Budget, rho: Fraction | None = None) -> Budget:
    """What a price of the full model costs under values-only; `rho` is the one it was booked with, if it was.

    >>> for_a_replacement(PureDP(1)), for_a_replacement(ZCDP("0.1"))
    (PureDP(epsilon=Fraction(2, 1)), ZCDP(rho=Fraction(2, 5)))
    """
    if isinstance(price, PureDP):
        return PureDP(2 * price.epsilon)
    return ZCDP(4 * (price.rho if rho is None else rho))


def pair_for_a_replacement(pair: ApproxDP) -> ApproxDP:
    """What a release costs of which (ε, δ) alone is known, and no ρ: e^ε is rounded up to 40 digits.

    `InputError` where nothing is left of the promise, δ being 1 or more.

    >>> double = pair_for_a_replacement(ApproxDP("0.5", "1e-6"))
    >>> double.epsilon, round(float(double.delta) * 1e6, 4)
    (Fraction(1, 1), 2.6487)
    """
    epsilon, delta = pair.epsilon, pair.delta
    context = Context(prec=40, Emax=10**6)
    power = Fraction(-(-epsilon.numerator * 10**40 // epsilon.denominator), 10**40)  # at least ε
    if power > 1000:
        raise InputError(f"{pair} of one person added or removed promises nothing where a person is replaced")
    exponential = context.next_plus(context.exp(Decimal(power.numerator) / Decimal(power.denominator)))
    double = (1 + Fraction(exponential)) * delta
    if double >= 1:
        raise InputError(f"{pair} of one person added or removed promises nothing where a person is replaced")
    return ApproxDP(2 * epsilon, double)
