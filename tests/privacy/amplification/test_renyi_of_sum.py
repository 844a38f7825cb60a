"""Rényi prices of sums: above the truth of small sums, added up round by round, and looser than the exact law."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from tests.privacy.amplification.exact_laws import configurations, coordinate, replacement
from tests.privacy.amplification.exact_laws import divergence as exact_divergence

from hazemap.errors import InputError
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.certified_bounds import exp_bounds
from hazemap.privacy.amplification.neighbours import ReportNeighbours, SumRound, exact_sum
from hazemap.privacy.amplification.zcdp_of_sum import renyi_of_sum, renyi_symmetric

MICRO = Fraction(1, 10**6)
ORDERS = [1.1, 2.0, 5.0, 40.0]


def divergence(order, likely, unlikely):
    total = sum(likely)
    with mpmath.workdps(40):
        terms = (
            (mpmath.mpf(p) / total) ** order * (mpmath.mpf(q) / total) ** (1 - order)
            for p, q in zip(likely, unlikely, strict=True)
        )
        return float(mpmath.log(mpmath.fsum(terms)) / (order - 1))


@pytest.mark.parametrize(
    ("keep", "turn_on"),
    [(Fraction(1, 2), Fraction(1, 10)), (Fraction(3, 4), Fraction(1, 4)), (Fraction(24, 25), Fraction(1, 5))],
)
def test_no_configuration_of_the_others_has_a_larger_divergence(keep, turn_on):
    law = BitFlipLaw.unary(keep, turn_on)
    for honest in (1, 2, 4, 7):
        both = renyi_of_sum(law, honest, ORDERS)
        alone = renyi_of_sum(law, honest, ORDERS, ReportNeighbours.REMOVAL)
        for index, order in enumerate(ORDERS):
            pairs = [replacement(keep, turn_on, honest, a, b) for a, b in configurations(honest)]
            truth = max(divergence(order, p, q) for p, q in pairs)
            assert truth * (1 - 1e-9) <= both.divergences[index] <= law.replacement
            pairs = [[coordinate(keep, turn_on, honest, a, own) for own in (True, False)] for a in range(honest)]
            truth = max(max(divergence(order, p, q), divergence(order, q, p)) for p, q in pairs)
            assert truth * (1 - 1e-9) <= alone.divergences[index] <= truth * 1.5 + 0.01


def test_rounds_that_are_added_up_cost_more_than_by_the_exact_law_and_not_much_more():
    law = BitFlipLaw.asymmetric(4)
    orders = list(1 + np.geomspace(1, 100, 60))
    price = renyi_of_sum(law, 10**4, orders)
    total = price
    for _ in range(9):
        total = total.plus(price)
    exact = exact_sum([SumRound(law, 10**4, times=10)], MICRO)
    assert exact < total.epsilon(MICRO) < Fraction(12, 10) * exact
    assert 0 < total.delta == 10 * price.delta < Fraction(1, 10**10)
    with pytest.raises(InputError, match="same orders"):
        price.plus(renyi_of_sum(law, 10**4, [3.0]))
    with pytest.raises(InputError, match="above"):
        price.epsilon(price.delta)


def test_an_analyst_who_chooses_the_next_law_by_the_answer_stays_within_the_filter():
    """The second law is either of two, whichever gives away more then; the filter counts the dearer one."""
    first, second = (
        (Fraction(1, 2), Fraction(1, 5)),
        [(Fraction(1, 2), Fraction(1, 4)), (Fraction(2, 3), Fraction(1, 3))],
    )
    order = 6.0
    dearer = max(renyi_of_sum(BitFlipLaw.unary(*law), 3, [order]).divergences[0] for law in second)
    paid = renyi_of_sum(BitFlipLaw.unary(*first), 3, [order]).divergences[0] + dearer
    for epsilon in (0.5, 1.0, 2.0):
        gamma = exp_bounds(Fraction(epsilon))[1]
        likely, unlikely = replacement(*first, 3, 2, 0)
        rests = [replacement(*law, 3, *b) for law in second for b in configurations(3)]
        delta = sum(
            Fraction(p, sum(likely)) * max(exact_divergence(*rest, gamma * q / p) for rest in rests)
            for p, q in zip(likely, unlikely, strict=True)
        )
        claimed = np.exp((order - 1) * (float(paid) - epsilon)) * (1 - 1 / order) ** (order - 1) / order
        assert 0 < float(delta) <= claimed + 1e-11


@pytest.mark.parametrize(
    ("honest", "epsilon", "price"), [(1000, 1, 0.1982), (10**4, 4, 0.4840), (10**4, 1, 0.0568), (10**6, 6, 0.1151)]
)
def test_theorem_c_3_costs_what_the_design_says_and_more_than_the_exact_law(honest, epsilon, price):
    found = renyi_symmetric(honest, Fraction(epsilon), MICRO)
    assert float(found) == pytest.approx(price, rel=3e-3)
    assert found > exact_sum([SumRound(BitFlipLaw.symmetric(epsilon), honest)], MICRO)


def test_orders_out_of_range_are_refused():
    for orders in ([], [1.0], [0.5], [float("nan")], [float("inf")]):
        with pytest.raises(InputError, match="orders"):
            renyi_of_sum(BitFlipLaw.asymmetric(1), 10, orders)
    assert renyi_symmetric(100, Fraction(1), Fraction(1, 10**50)) == 2
