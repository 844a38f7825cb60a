"""The ε that a run's budget comes to: methods are told shares and prices, never a budget."""

from fractions import Fraction
from math import sqrt

from hazemap.domains.ruler import Ruler
from hazemap.encoders.value_sums import ValueSums
from hazemap.rounds import Prices


def epsilon_of(prices: Prices) -> float:
    """√2 Δ/σ for a sum with fine noise: of pure ε it is ε, of ρ the ε whose noise has the same deviation."""
    fine = ValueSums(Ruler(0, 1), most=1)
    return sqrt(2) * fine.sensitivity.l1 / prices.stddev(fine, Fraction(1))
