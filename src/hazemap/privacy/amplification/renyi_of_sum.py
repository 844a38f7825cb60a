"""Rényi divergence of a sum of reports, for those who choose the next round's sizes on the way.

**The filter.** Let every round t have an order-α divergence ρ_t and a δ_t that may depend on all answers before it, and
stop before Σ ρ_t > ρ or Σ δ_t > Δ. Then the whole is (ε, δ)-DP with
δ = Δ + e^((α − 1)(ρ − ε)) (1 − 1/α)^(α − 1)/α.

Proof. Let the losses (m_i, l_i, ∞) dominate the first round, and let ψ(γ) be the greatest H_γ of the rounds after it,
over the first answer y. ψ is convex, falls and is at most 1, so it is a mixture of functions max(0, 1 − γ e^(−l)), and
so H_γ = ∫ H_{γ/L₁}(rest given y) dP₁ ≤ ∫ ψ(γ/L₁) dP₁ ≤ δ₁ + Σ m_i ψ(γ e^(−l_i)). By induction
ψ(γ) ≤ Δ − δ₁ + c γ^(1 − α) e^((α − 1)(ρ − ρ₁)), c = (1 − 1/α)^(α − 1)/α; put in e^((α − 1) ρ₁) = Σ m_i e^((α − 1) l_i).
At the end H_γ = max(0, 1 − γ) ≤ c γ^(1 − α) e^((α − 1)ρ), as c γ^(1 − α) x^(α − 1) ≥ max(0, 1 − γ/x) for every x > 0.
Where the m_i add up to M > 1, by rounding, take m_i/M and add M − 1 to δ₁, as ψ ≤ 1. ∎

Feldman and Zrnic 2021 and Lécuyer 2021 have the filter for Rényi divergence, Whitehouse et al. 2023 for zCDP.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Floats
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.certified_bounds import UNIT, float_below, rounded_up
from hazemap.privacy.amplification.neighbours import Neighbours, SumRound, losses
from hazemap.privacy.amplification.privacy_loss_distribution import PrivacyLossDistribution

_FINEST = Fraction(1, 1 << 80)
_ORDERS = tuple(1 + 10 ** (i / 40 - 1.5) for i in range(240))


@dataclass(frozen=True)
class RenyiPrice:
    """Divergences of one round at each order, above 1, rounded up, but for the probability `delta`.

    Prices of rounds add up, order by order, and so do their deltas: also where each round was chosen on the way, at an
    order that was fixed beforehand.

    >>> one = renyi_of_sum(BitFlipLaw.asymmetric(4), 10_000, [32.0])
    >>> round(float(one.divergences[0]), 4), one.plus(one).epsilon(Fraction(1, 10**6)) < 1
    (0.0421, True)
    """

    orders: tuple[float, ...]
    divergences: tuple[Fraction, ...]
    delta: Fraction

    def plus(self, other: "RenyiPrice") -> "RenyiPrice":
        """Both rounds; the orders must be the same."""
        if self.orders != other.orders:
            raise InputError("Rényi prices add up order by order: state both at the same orders")
        both = tuple(a + b for a, b in zip(self.divergences, other.divergences, strict=True))
        return RenyiPrice(self.orders, both, self.delta + other.delta)

    def epsilon(self, delta: Fraction) -> Fraction:
        """ε at this δ, by the best of the orders, rounded up; for a filter, of the one order that was fixed."""
        if delta <= self.delta:
            raise InputError(f"this price needs a δ above {float(self.delta):.3g} to be converted")
        left = math.log(float_below(delta - self.delta))
        found = math.inf
        for order, divergence in zip(self.orders, self.divergences, strict=True):
            gain = math.log1p(-1 / order) - (left + math.log(order)) / (order - 1)
            found = min(found, float(divergence) * (1 + 1e-12) + gain + 1e-12 * (1 + abs(left)) * (1 + 1 / (order - 1)))
        return rounded_up(max(found, 0.0))


def renyi_of_sum(
    law: BitFlipLaw,
    honest: int,
    orders: Sequence[float],
    neighbours: Neighbours = Neighbours.REPLACEMENT,
    spill: Fraction = Fraction(1, 10**12),
) -> RenyiPrice:
    """Rényi divergence of a sum of reports at these orders, whatever the others hold, but for about `spill`."""
    if not orders or not all(1.001 <= order <= 1e7 for order in orders):
        raise InputError("Rényi divergences are computed at orders between 1.001 and 10,000,000")
    ways = losses([SumRound(law, honest)], float(spill), neighbours)
    worst = np.max([_divergences(way, np.array(orders)) for way in ways], axis=0)
    local = neighbours.local(law)
    found = tuple(min(local, Fraction(math.ceil(Fraction(x) / _FINEST)) * _FINEST) for x in worst.tolist())
    return RenyiPrice(tuple(orders), found, _left_out(ways))


def renyi_symmetric(honest: int, epsilon: Fraction, delta: Fraction) -> Fraction:
    """ε of a sum of symmetric reports by theorem C.3 of McMillan et al. 2022, rounded up; never above 2ε₀.

    The divergence is twice that of binary randomised response, at each order. The paper leaves the worst data of the
    others open; here they are covered as for the exact law, which is always tighter.

    >>> round(float(renyi_symmetric(1000, Fraction(1), Fraction(1, 10**6))), 3)
    0.198
    """
    law = BitFlipLaw.symmetric(epsilon)
    spill = min(Fraction(1, 10**12), delta / 10**6)
    if spill < Fraction(1, 10**40):
        return law.replacement
    price = renyi_of_sum(law, honest, _ORDERS, spill=spill)
    return law.replacement if delta <= price.delta else min(law.replacement, price.epsilon(delta))


def _divergences(way: PrivacyLossDistribution, orders: Floats) -> Floats:
    """ln(Σ m e^((α − 1) l))/(α − 1) at every order, rounded up."""
    excess = math.log(max(1.0, float(way.mass.sum())))  # that is in δ_t
    logarithms = np.log(way.mass, out=np.full(len(way.mass), -np.inf), where=way.mass > 0)
    logarithms -= excess
    found = np.empty(len(orders))
    for index, order in enumerate(orders - 1):
        terms = logarithms + order * way.losses
        top = float(terms.max())
        error = (len(terms) + 2000 + abs(top)) * 4 * UNIT
        found[index] = max(0.0, top + math.log(float(np.exp(terms - top).sum())) + error) / order * (1 + 4 * UNIT)
    return found


def _left_out(ways: Sequence[PrivacyLossDistribution]) -> Fraction:
    return Fraction(max(way.infinite + max(0.0, float(way.mass.sum()) * (1 + 1e-12) - 1) for way in ways))
