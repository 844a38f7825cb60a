"""The ε that a run's budget comes to: methods are told shares and prices, never a budget."""

from fractions import Fraction
from math import sqrt

from hazemap.encoders.single_cell_sums import ValueSums
from hazemap.queries import Prices
from hazemap.values.quantizer import Quantizer


def epsilon_of(prices: Prices) -> float:
    """√2 Δ/σ for a sum with fine noise: of pure ε it is ε, of ρ the ε whose noise has the same deviation."""
    fine = ValueSums(Quantizer(0, 1), most=1)
    return sqrt(2) * fine.sensitivity.l1 / prices.stddev(fine, Fraction(1))
