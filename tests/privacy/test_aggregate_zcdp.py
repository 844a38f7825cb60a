"""The ρ of a sum of reports is that of the worst company, by brute force over all of it."""

from fractions import Fraction
from math import exp, log

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

from hazemap.errors import InputError
from hazemap.privacy import aggregate_zcdp
from hazemap.privacy.aggregate_zcdp import LEAST_DELTA, rho_of_sum
from hazemap.privacy.amplification.bit_flip_law import BitFlipLaw
from hazemap.privacy.amplification.neighbours import Neighbours
from hazemap.privacy.amplification.renyi_of_sum import zcdp_of_sum
from hazemap.privacy.budget import ApproxDP, log_delta
from hazemap.privacy.local_randomisers import Asymmetric, Symmetric, UnaryEncoding

LAWS = [
    *(kind(Fraction(epsilon)) for kind in (Asymmetric, Symmetric) for epsilon in ("0.3", "2", "4")),
    UnaryEncoding(Fraction(9, 10), Fraction(1, 50)),
    UnaryEncoding(Fraction(1, 3), Fraction(1, 4)),
]
ALPHAS = 1 + np.geomspace(1e-3, 1e5, 100)


def divergences(p: float, q: float, company: int, people: int) -> float:
    """max D_α/α of both directions where `company` of the others name the bin too: from the exact law."""
    x = np.convolve(
        binom.pmf(np.arange(company + 1), company, p), binom.pmf(np.arange(people - company), people - 1 - company, q)
    )
    one, zero = np.append(0, x), np.append(x, 0)
    law_p, law_q = np.log(p * one + (1 - p) * zero), np.log(q * one + (1 - q) * zero)
    return max(
        float(logsumexp(alpha * a + (1 - alpha) * b)) / (alpha - 1) / alpha
        for alpha in ALPHAS
        for a, b in ((law_p, law_q), (law_q, law_p))
    )


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("people", [1, 2, 5, 16])
def test_no_company_costs_more_than_it_says(law, people):
    """All numbers of others who name the bin; where there are few people it is not far above the worst."""
    p, q = law.chances
    worst = max(divergences(p, q, company, people) for company in range(people))
    found = float(rho_of_sum(law, people))
    assert worst <= found * (1 + 1e-9)
    assert found <= float(law.removal) ** 2 / 2 * (1 + 1e-9)
    # The twin counts half as many people again as there are.
    if people == 16 and q > 0.01:
        assert float(rho_of_sum(law, 24)) < worst


@pytest.mark.parametrize(("epsilon", "people"), [(1, 1_000), (4, 1_000), (4, 100_000), (6, 100_000)])
def test_many_people_cost_hardly_more_than_gaussian_noise_of_their_variance(epsilon, people):
    law = Asymmetric(Fraction(epsilon))
    q = 1 / (exp(epsilon) + 1)
    gauss = (0.5 - q) ** 2 / (2 * people * q * (1 - q))
    assert gauss < rho_of_sum(law, people) < 1.12 * gauss


@pytest.mark.parametrize(("epsilon", "people"), [(4, 1_000), (1, 300), (6, 10_000)])
def test_two_computations_agree(epsilon, people):
    """The other one bounds privacy losses on a grid, from hockey-stick divergences, and leaves out 10^−12."""
    other = zcdp_of_sum(BitFlipLaw.asymmetric(epsilon), people, Neighbours.REMOVAL)
    assert float(rho_of_sum(Asymmetric(Fraction(epsilon)), people)) == pytest.approx(float(other.rho), rel=0.04)


def test_more_people_cost_less_and_a_larger_epsilon_more():
    prices = [rho_of_sum(Asymmetric(Fraction(3)), people) for people in (1, 2, 10, 100, 1_000, 10_000)]
    assert prices == sorted(prices, reverse=True)
    prices = [rho_of_sum(Asymmetric(Fraction(epsilon)), 2_000) for epsilon in (1, 2, 3, 5, 8, 40, 900)]
    assert prices == sorted(prices)
    with pytest.raises(InputError, match="1 honest person or more"):
        rho_of_sum(Asymmetric(Fraction(3)), 0)


def test_intervals_cover_all_company_once():
    for p, q in ((0.5, 0.02), (0.5, 0.27), (0.98, 0.02), (0.9, 1e-6)):
        for others in (1, 2, 50, 4_999):
            spans = list(aggregate_zcdp._cover(others, p, q))
            assert [a for low, high in spans for a in range(low, high + 1)] == list(range(others + 1))


@pytest.mark.parametrize(("named", "rest", "p", "q"), [(0, 900, 0.5, 0.01), (700, 40_000, 0.5, 0.02), (3, 9, 0.9, 0.1)])
def test_what_is_outside_of_a_window_is_below_2_to_the_minus_100(named, rest, p, q):
    """The window holds all that floats can see, and its ends are below 2^−100 where something was cut off."""
    law_p, law_q = aggregate_zcdp._pair(p, q, named, rest)
    for law in (law_p, law_q):
        assert np.exp(law).sum() == pytest.approx(1, abs=1e-9)
    for end in (0, -1):
        assert law_q[end] < -100 * log(2) or len(law_q) in (named + rest + 2, 0) or end == 0


def test_budgets_leave_room_for_what_windows_cut_off():
    """A thousand million rounds of 2^−100 fit into what `ApproxDP.rho` leaves of its δ."""
    for epsilon in (Fraction(1, 100), Fraction(1), Fraction(8)):
        for delta in (LEAST_DELTA, Fraction(1, 10**6), Fraction(1, 10)):
            spent = log_delta(float(ApproxDP(epsilon, delta).rho), float(epsilon))
            assert float(delta) * 9e-10 > 1e9 * 2**-100
            assert spent < log(float(delta)) - 9e-10


def test_a_chord_is_at_its_largest_where_its_derivative_says():
    for left, right, one, two in ((0.01, 0.0115, 1e-4, 1.2e-4), (3.0, 3.5, 1.0, 1.4), (2.0, 9.0, 5.0, 5.1)):
        b = (two - one) / (right - left)
        t = np.linspace(left, right, 10_001)
        line = (one + b * (t - left)) / (t * (t + 1))
        assert aggregate_zcdp._chord(left, right, one, two) == pytest.approx(line.max(), rel=1e-9)
