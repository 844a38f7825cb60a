"""Budgets: exact to hold and to divide, and never converted to more privacy than they give."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP, exact, log_delta

shares = st.lists(st.fractions(Fraction(1, 1000), 1), min_size=1, max_size=20)


def gaussian_log_delta(rho: float, epsilon: float) -> float:
    """ln δ of the Gaussian mechanism that is exactly ρ-zCDP (Balle and Wang 2018, theorem 8), with 80 digits."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(80):
        sigma, e = 1 / mpmath.sqrt(2 * mpmath.mpf(rho)), mpmath.mpf(epsilon)
        upper = mpmath.ncdf(1 / (2 * sigma) - e * sigma)
        return float(mpmath.log(upper - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * sigma) - e * sigma)))


@pytest.mark.parametrize(
    ("number", "meant"),
    [
        (0.1, Fraction(1, 10)),
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        ("1e-6", Fraction(1, 10**6)),
        (1e-6, Fraction(1, 10**6)),
        (2, Fraction(2)),
        (np.float64(0.3), Fraction(3, 10)),
        (np.int64(3), Fraction(3)),
        (Fraction(2, 7), Fraction(2, 7)),
    ],
)
def test_a_number_means_its_decimal_digits(number, meant):
    assert exact(number) == meant


def test_a_number_as_text_has_640_digits_at_most_written_out():
    """An exponent has five letters at most, zeros and sign among them."""
    for text in ("7" * 640, "1e640", "1e-640", "1E640", "2e00640", "3e+0640", "1/" + "9" * 638, "-1e-9"):
        assert exact(text) == Fraction(text)
    for text in (
        "7" * 641,
        "1e641",
        "1e-641",
        "1E641",
        "2e000640",
        "3e+00640",
        "1/" + "9" * 639,
        "1e99999999",
        True,
        False,
    ):
        with pytest.raises(InputError, match="the number must be a finite number"):
            exact(text)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, "much", "", "1/0", None])
def test_what_is_no_finite_number_is_refused(number):
    with pytest.raises(InputError, match="epsilon must be a finite number"):
        PureDP(number)


@pytest.mark.parametrize("number", [0, -1, 0.0, "-0.5"])
def test_a_budget_is_above_zero(number):
    for budget, what in ((PureDP, "epsilon"), (ZCDP, "rho"), (lambda e: ApproxDP(e, 1e-6), "epsilon")):
        with pytest.raises(InputError, match=f"{what} must be above 0"):
            budget(number)


@pytest.mark.parametrize("delta", [0, 1, 2, -1e-6])
def test_delta_lies_between_zero_and_one(delta):
    with pytest.raises(InputError, match="delta must be"):
        ApproxDP(1, delta)


@pytest.mark.slow
@given(parts=shares)
def test_parts_of_a_budget_add_up_exactly(parts):
    whole = sum(parts)
    assert sum(PureDP("0.3").part(p / whole).epsilon for p in parts) == Fraction(3, 10)
    assert sum(ZCDP("0.3").part(p / whole).rho for p in parts) == Fraction(3, 10)
    approximate = ApproxDP("0.3", 1e-9)
    assert sum(approximate.part(p / whole).rho for p in parts) == approximate.rho


def test_budgets_of_equal_numbers_are_equal_and_show_them():
    assert PureDP(0.1) == PureDP("1/10")
    assert hash(PureDP(0.1)) == hash(PureDP("1/10"))
    assert str(PureDP(0.1)) == "ε = 0.1"
    assert str(ApproxDP(1, 1e-6)) == "(ε, δ) = (1, 1e-06)"


def test_pure_privacy_implies_concentrated_privacy():
    """Bun and Steinke 2016, proposition 1.4; randomised response has the largest divergence of all ε-DP mechanisms."""
    epsilon = 1.5
    p = math.exp(epsilon) / (1 + math.exp(epsilon))
    for alpha in (1.001, 1.5, 2, 10, 100):
        divergence = math.log(p**alpha * (1 - p) ** (1 - alpha) + (1 - p) ** alpha * p ** (1 - alpha)) / (alpha - 1)
        assert divergence <= alpha * float(PureDP(epsilon).rho)


@pytest.mark.parametrize("rho", [1e-9, 1e-4, 0.01, 0.1, 0.5, 1, 5])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 0.5, 1, 2, 8, 30])
def test_the_conversion_never_promises_more_than_the_gaussian_mechanism_gives(rho, epsilon):
    """The Gaussian mechanism is ρ-zCDP, so a conversion below its exact δ would be wrong."""
    assert log_delta(rho, epsilon) >= gaussian_log_delta(rho, epsilon)


@pytest.mark.parametrize(("rho", "epsilon"), [(0.001, 0.1), (0.02, 1), (0.1, 2), (1, 8), (5, 30)])
def test_the_conversion_agrees_with_dp_accounting(rho, epsilon):
    """Above the exact δ of the Gaussian, and what its Rényi accountant finds, up to the grid of orders there."""
    accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld.privacy_loss_mechanism import GaussianPrivacyLoss
    from dp_accounting.rdp import RdpAccountant

    stddev = math.sqrt(1 / (2 * rho))
    ours = math.exp(log_delta(rho, epsilon))
    assert ours > GaussianPrivacyLoss(stddev).get_delta_for_epsilon(epsilon)
    orders = 1 + np.geomspace(1e-3, 1e5, 4000)
    theirs = RdpAccountant(orders).compose(accounting.GaussianDpEvent(stddev)).get_delta(epsilon)
    assert ours == pytest.approx(theirs, rel=1e-4)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1, 10])
@pytest.mark.parametrize("delta", ["1e-300", "1e-12", "1e-6", "0.01", "0.5"])
def test_rho_is_the_largest_that_stays_within(epsilon, delta):
    budget = ApproxDP(epsilon, delta)
    goal, rho = math.log(float(delta)), float(budget.rho)
    assert log_delta(rho, epsilon) <= goal
    assert log_delta(rho * (1 + 1e-6) + 2.0**-39, epsilon) > goal
    assert gaussian_log_delta(rho, epsilon) < goal


@pytest.mark.parametrize(
    ("epsilon", "delta", "rho"),
    [
        ("1", "1e-6", 26_779_672_613),
        ("0.1", "1e-9", 194_765_782),
        ("8", "0.01", 2_713_389_614_212),
        ("0.001", "0.5", 424_799_011_109),
        ("1e-2", "1e-300", 40_544),
    ],
)
def test_rho_stays_what_it_was(epsilon, delta, rho):
    """In units of 2⁻⁴⁰: whoever reads a ledger or a statement finds the same."""
    assert ApproxDP(epsilon, delta).rho == Fraction(rho, 1 << 40)
    assert ApproxDP(epsilon, delta).part(Fraction(1, 3)) == ZCDP(Fraction(rho, 3 << 40))


@pytest.mark.parametrize(
    ("rho", "epsilon", "wanted"),
    [
        (1e-9, 1e-3, -264.122861),
        (1e-4, 0.5, -633.574471),
        (0.02, 1, -16.2430632),
        (0.5, 2, -2.91336004),
        (1, 1, -0.706245123),
        (5, 0.1, -0.00721236352),
        (5, 30, -33.3495408),
        (100, 300, -101.387493),
    ],
)
def test_the_least_delta_is_found_to_nine_digits(rho, epsilon, wanted):
    """Against a grid of 200,000 orders."""
    assert float(f"{log_delta(rho, epsilon):.9g}") == wanted
    alpha = 1 + np.geomspace(1e-9, max(2.0, (epsilon + 1) / (2 * rho) + 2) * 4, 200_000)
    grid = (alpha - 1) * (alpha * rho - epsilon) + (alpha - 1) * np.log1p(-1 / alpha) - np.log(alpha)
    assert log_delta(rho, epsilon) == pytest.approx(grid.min(), rel=1e-6, abs=1e-9)


def test_a_conversion_that_is_too_generous_is_found_out():
    """The twin reads ρ as 1/σ², not 1/(2σ²)."""
    assert log_delta(0.5 / 2, 1) < gaussian_log_delta(0.5, 1)


def test_a_delta_below_every_float_can_be_asked():
    assert 0 < ApproxDP(1, "1e-400").rho < ApproxDP(1, "1e-300").rho


def test_a_budget_too_small_to_spend_is_refused():
    with pytest.raises(InputError, match="too small to spend"):
        _ = ApproxDP("1e-9", "1e-9").rho
