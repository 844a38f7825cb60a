"""The ρ of a sum of reports is that of the worst company, by brute force over all of it, in exact rationals."""

from fractions import Fraction
from math import exp, log

import mpmath
import numpy as np
import pytest
from tests.privacy.amplification.exact_laws import Weights, configurations, coordinate, replacement

from hazemap.errors import InputError
from hazemap.privacy.amplification import zcdp_of_sum as module
from hazemap.privacy.amplification.bit_flip_law import SMALLEST_EPSILON, BitFlipLaw
from hazemap.privacy.amplification.certified_bounds import exp_bounds
from hazemap.privacy.amplification.neighbours import ReportNeighbours, SumRound, exact_sum
from hazemap.privacy.amplification.sum_of_reports import cover
from hazemap.privacy.amplification.zcdp_of_sum import LEAST_DELTA, SPILL, renyi_of_sum, zcdp_of_sum
from hazemap.privacy.budget import ApproxDP, log_delta
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric, UnaryEncoding

COINS = [
    (Fraction(1, 2), Fraction(1, 10)),
    (Fraction(3, 4), Fraction(1, 4)),
    (Fraction(24, 25), Fraction(1, 5)),
    (Fraction(1, 3), Fraction(1, 4)),
    (Fraction(9, 10), Fraction(1, 1000)),
]
ORDERS = [2, 3, 7, 40]


def moment(likely: Weights | list[int], unlikely: Weights | list[int], order: int) -> Fraction:
    """Σ P^α Q^(1 − α), exactly."""
    total = sum(Fraction(p) ** order / Fraction(q) ** (order - 1) for p, q in zip(likely, unlikely, strict=True))
    return total / sum(likely)


MANY_ORDERS = (1.0001, *np.geomspace(1.05, 100, 25))


def dearest(pairs) -> float:
    """The largest D_α/α found, in 30 digits."""
    found = 0.0
    with mpmath.workdps(30):
        for p, q in pairs:
            whole = sum(p)
            for order in MANY_ORDERS:
                terms = (mpmath.mpf(a) / whole * (mpmath.mpf(a) / b) ** (order - 1) for a, b in zip(p, q, strict=True))
                found = max(found, float(mpmath.log(mpmath.fsum(terms)) / (order - 1) / order))
    return found


def removals(keep, turn_on, honest):
    """Both directions of one coordinate, for every number of others who hold the bin."""
    for holders in range(honest):
        told, hidden = (coordinate(keep, turn_on, honest, holders, own) for own in (True, False))
        yield told, hidden
        yield hidden, told


@pytest.mark.parametrize(("keep", "turn_on"), COINS)
def test_no_company_costs_more_than_it_says_and_the_worst_costs_as_much(keep, turn_on):
    """Exact rationals at whole α; what is found is within 0.5 % of the worst. The twin counts twice the people."""
    law = BitFlipLaw.unary(keep, turn_on)
    for honest in (1, 2, 4):
        for neighbours, pairs in (
            (ReportNeighbours.REMOVAL, list(removals(keep, turn_on, honest))),
            (
                ReportNeighbours.REPLACEMENT,
                [replacement(keep, turn_on, honest, a, b) for a, b in configurations(honest)],
            ),
        ):
            found = zcdp_of_sum(law, honest, neighbours)
            assert found.delta == 0
            for order in ORDERS:
                worst = max(moment(p, q, order) for p, q in pairs)
                assert worst <= exp_bounds(found.rho * order * (order - 1))[0]
            worst = dearest(pairs)
            assert worst <= float(found.rho) < worst * 1.005
            if turn_on > Fraction(1, 100):
                assert float(zcdp_of_sum(law, 2 * honest, neighbours).rho) < worst


@pytest.mark.parametrize(("keep", "turn_on"), COINS[:3])
def test_losses_of_all_companies_together_cost_hardly_more_than_each_of_them(keep, turn_on, monkeypatch):
    """The way of large sums, compared with that of small ones; it may not be below it."""
    law = BitFlipLaw.unary(keep, turn_on)
    for neighbours in (ReportNeighbours.REMOVAL, ReportNeighbours.REPLACEMENT):
        small = zcdp_of_sum(law, 90, neighbours).rho
        with monkeypatch.context() as patched:
            patched.setattr(module, "_SMALL", 0)
            large = zcdp_of_sum.__wrapped__(law, 90, neighbours).rho
        assert small <= large < small * Fraction(110, 100)


@pytest.mark.parametrize(("epsilon", "people"), [(1, 1_000), (4, 1_000), (4, 100_000), (6, 100_000), (1, 1_000_000)])
def test_many_people_cost_hardly_more_than_gaussian_noise_of_their_variance(epsilon, people):
    law = BitFlipLaw.asymmetric(epsilon)
    q = 1 / (exp(epsilon) + 1)
    gauss = (0.5 - q) ** 2 / (2 * people * q * (1 - q))
    removal = zcdp_of_sum(law, people, ReportNeighbours.REMOVAL)
    assert gauss < removal.rho < 1.12 * gauss
    assert 0 < removal.delta <= SPILL
    both = zcdp_of_sum(law, people)
    assert 2 * gauss < both.rho <= 2 * removal.rho, "one direction is cheap where the other is dear"
    orders = [1.0011, 1.3, 7.7, 123.4, 5000.0, 10.0**6]
    for order, divergence in zip(orders, renyi_of_sum(law, people, orders).divergences, strict=True):
        assert divergence <= both.rho * Fraction(order) * Fraction(1001, 1000)


def test_what_rho_buys_is_more_than_the_exact_law_costs():
    law, delta = BitFlipLaw.symmetric(3), Fraction(1, 10**6)
    rho = float(zcdp_of_sum(law, 10_000).rho)
    epsilon = float(exact_sum([SumRound(law, 10_000)], delta))
    assert log_delta(rho, epsilon) > log(delta) > log_delta(rho, epsilon * 1.4)


def test_more_people_cost_less_and_a_larger_epsilon_more():
    prices = [zcdp_of_sum(BitFlipLaw.asymmetric(3), people).rho for people in (1, 2, 10, 100, 1_000, 10_000)]
    assert prices == sorted(prices, reverse=True)
    prices = [zcdp_of_sum(BitFlipLaw.asymmetric(epsilon), 2_000).rho for epsilon in (1, 2, 3, 5, 8, 40, 190)]
    assert prices == sorted(prices)
    with pytest.raises(InputError, match="1 honest person or more"):
        zcdp_of_sum(BitFlipLaw.asymmetric(3), 0)


@pytest.mark.parametrize("law", [Asymmetric(Fraction(64)), Symmetric(SMALLEST_EPSILON), Asymmetric(SMALLEST_EPSILON)])
def test_the_ends_of_what_a_task_may_ask_have_a_price(law):
    for people in (1, 50, 5_000):
        assert 0 < zcdp_of_sum(law.bit_flips, people).rho <= law.replacement**2 / 2


def test_a_report_and_its_price_have_the_same_coins():
    for law in (Asymmetric(Fraction(3)), Symmetric(Fraction(7, 2)), UnaryEncoding(Fraction(9, 10), Fraction(1, 50))):
        keep, _, turn_on, _ = law.bit_flips.chances
        assert (keep, turn_on) == pytest.approx(law.chances, rel=1e-14)
        assert float(law.bit_flips.removal) == pytest.approx(float(law.removal), rel=1e-8)


def test_intervals_cover_all_company_once():
    for law in (BitFlipLaw.asymmetric(4), BitFlipLaw.asymmetric(1), BitFlipLaw.symmetric(4)):
        for others in (1, 2, 50, 4_999):
            spans = list(cover(law, others))
            assert [a for low, high in spans for a in range(low, high + 1)] == list(range(others + 1))


def test_budgets_leave_room_for_what_windows_cut_off():
    """A thousand million rounds of 2^−100 fit into what `ApproxDP.rho` leaves of its δ."""
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(8)):
        for delta in (LEAST_DELTA, Fraction(1, 10**6), Fraction(1, 10)):
            spent = log_delta(float(ApproxDP(epsilon, delta).rho), float(epsilon))
            assert float(delta) * 9e-10 > 1e9 * float(SPILL)
            assert spent < log(float(delta)) - 9e-10


def test_a_chord_is_at_its_largest_where_its_derivative_says():
    for left, right, one, two in ((0.01, 0.0115, 1e-4, 1.2e-4), (3.0, 3.5, 1.0, 1.4), (2.0, 9.0, 5.0, 5.1)):
        b = (two - one) / (right - left)
        t = np.linspace(left, right, 10_001)
        line = (one + b * (t - left)) / (t * (t + 1))
        assert module._chord(left, right, one, two) == pytest.approx(line.max(), rel=1e-9)
