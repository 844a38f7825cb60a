"""Bounds for any randomiser: their published figures, and the truth of small sums below them."""

from fractions import Fraction
from math import comb

import pytest
from tests.privacy.amplification.exact_laws import coin, divergence, worst_removal, worst_replacement

from hazemap.privacy.amplification.aggregate_price import clone_bound, theorem_3_1
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.certified_bounds import exp_bounds
from hazemap.privacy.amplification.neighbours import SumRound, exact_sum

MICRO = Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("honest", "epsilon", "price"),
    [(1000, 3, 0.823), (10**5, 4, 0.118), (10**4, 6, 1.472), (10**6, 8, 0.304), (1000, 8, 8), (10**4, 2, 0.1144)],
)
def test_clones_cost_what_the_design_says(honest, epsilon, price):
    assert float(clone_bound(honest, Fraction(epsilon), MICRO)) == pytest.approx(price, rel=1e-3, abs=6e-4)


@pytest.mark.parametrize(
    ("honest", "epsilon", "price"), [(10**5, 4, 0.4078), (10**6, 8, 0.7955), (10**4, 3, 0.6546), (1000, 1, 0.4876)]
)
def test_theorem_3_1_costs_what_the_design_says(honest, epsilon, price):
    assert float(theorem_3_1(honest, Fraction(epsilon), MICRO)) == pytest.approx(price, abs=5e-5)


def test_the_older_bounds_ask_for_the_cohorts_that_the_design_says():
    for epsilon, by_theorem, by_clones in ((4, 8764, 2203), (6, 67_865, 17_079)):
        assert theorem_3_1(by_theorem, Fraction(epsilon), MICRO) <= 1
        assert theorem_3_1(int(by_theorem * 0.997), Fraction(epsilon), MICRO) > 1
        assert clone_bound(int(by_clones * 1.001), Fraction(epsilon), MICRO) <= 1
        assert clone_bound(int(by_clones * 0.999), Fraction(epsilon), MICRO) > 1


def test_theorem_3_1_is_silent_beyond_its_condition():
    """ε₀ ≤ ln(n/(8 ln(2/δ)) − 1): for ε₀ = 3, δ = 10⁻⁶ from n = 2,448 on."""
    assert theorem_3_1(2447, Fraction(3), MICRO) is None
    assert theorem_3_1(2448, Fraction(3), MICRO) < 3
    assert theorem_3_1(10**9, Fraction(100), MICRO) is None


def exact_clones(honest: int, growth: Fraction, gamma: Fraction) -> Fraction:
    """δ of the pair of clones with e^ε₀ = `growth`, summed exactly over C."""
    clone, kept = 2 / (growth + 1), growth / (growth + 1)
    total = Fraction(0)
    for c in range(honest):
        weight = comb(honest - 1, c) * clone**c * (1 - clone) ** (honest - 1 - c)
        fair = [comb(c, k) for k in range(c + 1)]
        laws = (coin(fair, heads.numerator, heads.denominator) for heads in (kept, 1 - kept))
        total += weight * divergence(*laws, gamma)
    return total


@pytest.mark.parametrize("honest", [1, 2, 5, 8])
def test_the_price_of_clones_is_the_least_that_their_exact_delta_allows(honest):
    for epsilon in (Fraction(1), Fraction(7, 2)):
        for delta in (Fraction(1, 20), Fraction(1, 10**4)):
            price = clone_bound(honest, epsilon, delta)
            growth = exp_bounds(epsilon)[1]
            assert exact_clones(honest, growth, exp_bounds(price)[1]) <= delta * (1 + Fraction(1, 10**50))
            assert price < Fraction(1, 100) or exact_clones(honest, growth, exp_bounds(price * 999 / 1000)[0]) > delta


@pytest.mark.parametrize("honest", [1, 3, 8])
def test_no_configuration_of_the_others_gives_away_more_than_clones_do(honest):
    for keep, turn_on in ((Fraction(1, 2), Fraction(1, 10)), (Fraction(3, 4), Fraction(1, 4))):
        law = BitFlipLaw.unary(keep, turn_on)
        for delta in (Fraction(1, 10), Fraction(1, 1000)):
            gamma = exp_bounds(clone_bound(honest, law.replacement, delta))[1]
            assert worst_replacement(keep, turn_on, honest, gamma) <= delta
            assert worst_removal(keep, turn_on, honest, gamma) <= delta


def test_the_exact_law_is_tighter_than_clones_and_clones_than_the_theorem():
    for honest, epsilon in ((5000, 1), (50_000, 3), (10**6, 5)):
        exact = exact_sum([SumRound(BitFlipLaw.asymmetric(epsilon), honest)], MICRO)
        clones = clone_bound(honest, Fraction(epsilon), MICRO)
        assert exact < clones < theorem_3_1(honest, Fraction(epsilon), MICRO)


def test_hopeless_clones_cost_the_local_price():
    assert clone_bound(10**6, Fraction(90), MICRO) == 90
    assert clone_bound(10**6, Fraction(2), Fraction(1, 10**50)) == 2
    assert clone_bound(1, Fraction(1, 1000), MICRO) <= Fraction(1, 1000)
