"""What is said of noise is true of noise; what a budget buys is what it pays for."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hazemap.errors import InputError
from hazemap.privacy.budget import ZCDP, ApproxDP, PureDP
from hazemap.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace, noise_for, share_for
from hazemap.privacy.random_stream import Stream
from hazemap.tables.contribution_bounding import Sensitivity

STEP = Fraction(1, 1 << 30)
WIDTHS = [Fraction(1, 10), Fraction(1, 2), Fraction(1), Fraction(17, 5), Fraction(399, 100), Fraction(4), Fraction(100)]

budgets = st.one_of(
    st.builds(PureDP, st.fractions(Fraction(1, 1000), 20)),
    st.builds(ZCDP, st.fractions(Fraction(1, 1000), 20)),
    st.builds(ApproxDP, st.fractions(Fraction(1, 100), 10), st.sampled_from([1e-9, 1e-6, 1e-3])),
)
sensitivities = st.builds(Sensitivity, st.integers(1, 1 << 16), st.integers(1, 1 << 32))


def summed(logarithm, reach: int):
    """Standard deviation and excess kurtosis of the law exp(logarithm(z)), by summing 60 digits."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        weight = [mpmath.exp(logarithm(mpmath.mpf(z))) for z in range(reach)]
        total = 2 * mpmath.fsum(weight) - weight[0]
        second = 2 * mpmath.fsum(w * z**2 for z, w in enumerate(weight)) / total
        fourth = 2 * mpmath.fsum(w * z**4 for z, w in enumerate(weight)) / total
        return float(mpmath.sqrt(second)), float(fourth / second**2 - 3)


@pytest.mark.parametrize("scale", [Fraction(1, 50), *WIDTHS])
def test_laplace_moments_are_those_of_the_discrete_law(scale):
    stddev, kurtosis = summed(lambda z: -z * scale.denominator / scale.numerator, int(150 * scale) + 30)
    noise = DiscreteLaplace(scale)
    assert noise.stddev == pytest.approx(stddev, rel=1e-13)
    assert noise.kurtosis == pytest.approx(kurtosis, rel=1e-12)


@pytest.mark.parametrize("variance", [Fraction(1, 50), *WIDTHS])
def test_gaussian_moments_are_those_of_the_discrete_law(variance):
    stddev, kurtosis = summed(lambda z: -(z**2) * variance.denominator / (2 * variance.numerator), 300)
    noise = DiscreteGaussian(variance)
    assert noise.stddev == pytest.approx(stddev, rel=1e-13)
    assert noise.kurtosis == pytest.approx(kurtosis, rel=1e-12, abs=1e-12)
    assert noise.stddev <= math.sqrt(variance) * (1 + 1e-15)


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e-3, 1.0, 1e9, 1e40])
def test_moments_are_finite_at_any_width(scale):
    for noise in (DiscreteLaplace(Fraction(scale)), DiscreteGaussian(Fraction(scale))):
        assert math.isfinite(noise.stddev)
        assert math.isfinite(noise.kurtosis)


def test_moments_that_no_float_holds_are_those_of_the_largest_exponent():
    """e⁷⁰⁰ is near the end of a float: what is narrower is shown as that wide."""
    for scale in (Fraction(1, 10**9), Fraction(1, 701), Fraction(1, 700)):
        assert DiscreteLaplace(scale).kurtosis == 2 + math.cosh(700)
    assert DiscreteLaplace(Fraction(1, 699)).kurtosis == 2 + math.cosh(699)
    for variance in (Fraction(1, 1500), Fraction(1, 1400)):
        assert DiscreteGaussian(variance).kurtosis == pytest.approx(math.exp(700) / 2, rel=1e-9)
    assert DiscreteGaussian(Fraction(1, 1398)).kurtosis == pytest.approx(math.exp(699) / 2, rel=1e-9)
    huge = Fraction(10**400)
    assert DiscreteGaussian(huge).stddev == math.sqrt(np.finfo(np.float64).max)
    assert DiscreteLaplace(1 / huge).stddev == 0


def test_noise_fits_64_bits_up_to_the_widest_that_is_drawn():
    for made, most in ((DiscreteLaplace, 1 << 50), (DiscreteGaussian, ((1 << 50) - 1) ** 2)):
        assert made(Fraction(most)).fits and not made(Fraction(most) + Fraction(1, 10**9)).fits
        assert made(Fraction(10**40)).widest == made(Fraction(most))


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP("0.3"), ApproxDP(2, 1e-6)], ids=str)
@pytest.mark.parametrize("stddev", [0.01, 0.5, 3.0, 1e4, 1e8])
def test_a_share_is_the_least_that_buys_its_standard_deviation(budget, stddev):
    sensitivity = Sensitivity(3, 7)
    share = share_for(budget, sensitivity, stddev)
    assert (share / STEP).denominator == 1 and noise_for(budget.part(share), sensitivity).stddev <= stddev
    assert share == STEP or noise_for(budget.part(share - STEP), sensitivity).stddev > stddev


def test_wide_laplace_noise_is_like_the_continuous_one():
    assert DiscreteLaplace(Fraction(10**12)).stddev == pytest.approx(math.sqrt(2) * 1e12, rel=1e-15)
    assert DiscreteLaplace(Fraction(10**12)).kurtosis == pytest.approx(3)


@pytest.mark.parametrize("noise", [DiscreteLaplace(Fraction(3)), DiscreteGaussian(Fraction(1, 3))])
def test_draws_have_the_moments_that_are_said(noise):
    """Five standard errors of each mean (false alarm below 1e-6), on a fixed stream."""
    drawn = noise.draw(Stream.fixed(b"moments"), 1 << 20).astype(float) / noise.stddev
    for power, expected in ((1, 0), (2, 1), (3, 0), (4, 3 + noise.kurtosis)):
        values = drawn**power
        assert abs(values.mean() - expected) < 5 * values.std() / math.sqrt(len(values))


def test_pure_budgets_buy_laplace_noise_and_the_others_gaussian():
    sensitivity = Sensitivity(3, 9)
    assert noise_for(PureDP("0.1"), sensitivity) == DiscreteLaplace(Fraction(30))
    assert noise_for(ZCDP("0.5"), sensitivity) == DiscreteGaussian(Fraction(9))
    assert noise_for(ZCDP("0.5"), Sensitivity(7, 5)) == DiscreteGaussian(Fraction(5))
    assert noise_for(PureDP("0.5"), Sensitivity(7, 5)) == DiscreteLaplace(Fraction(14))
    approximate = ApproxDP(1, 1e-6)
    assert noise_for(approximate, sensitivity) == noise_for(ZCDP(approximate.rho), sensitivity)
    assert noise_for(approximate.part(Fraction(1, 2)), sensitivity) == DiscreteGaussian(9 / approximate.rho)


@pytest.mark.parametrize(("l1", "epsilon"), [(1, Fraction(1)), (5, Fraction(1, 3)), (1000, Fraction(2))])
def test_laplace_noise_costs_what_the_budget_says_by_dp_accounting(l1, epsilon):
    loss = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
    noise = noise_for(PureDP(epsilon), Sensitivity(l1, l1 * l1))
    mechanism = loss.DiscreteLaplacePrivacyLoss(float(1 / noise.scale), sensitivity=l1)
    assert mechanism.get_delta_for_epsilon(float(epsilon) * (1 + 1e-9)) == pytest.approx(0, abs=1e-9)
    assert mechanism.get_delta_for_epsilon(float(epsilon) * 0.99) > 1e-4


@pytest.mark.parametrize("epsilon", [0.1, 1, 5])
@pytest.mark.parametrize("delta", [1e-9, 1e-6, 1e-2])
def test_gaussian_noise_stays_within_its_budget_by_dp_accounting(epsilon, delta):
    """Exactly computed for the discrete Gaussian: within δ, and not far within at nine tenths of the noise."""
    loss = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
    noise = noise_for(ApproxDP(epsilon, delta), Sensitivity(1, 1))
    stddev = math.sqrt(noise.variance)
    assert loss.DiscreteGaussianPrivacyLoss(stddev, sensitivity=1).get_delta_for_epsilon(epsilon) <= delta
    assert loss.DiscreteGaussianPrivacyLoss(stddev * 0.75, sensitivity=1).get_delta_for_epsilon(epsilon) > delta


@pytest.mark.slow
@given(budget=budgets, sensitivity=sensitivities, logarithm=st.floats(-2, 12))
def test_the_share_for_a_standard_deviation_is_the_least_that_buys_it(budget, sensitivity, logarithm):
    stddev = math.exp(logarithm)
    share = share_for(budget, sensitivity, stddev)
    assert share > 0
    assert (share / STEP).denominator == 1
    assert noise_for(budget.part(share), sensitivity).stddev <= stddev
    if share > STEP:
        assert noise_for(budget.part(share - STEP), sensitivity).stddev > stddev


@pytest.mark.slow
@given(budget=budgets, sensitivity=sensitivities, share=st.fractions(Fraction(1, 10_000), 1))
def test_what_a_share_buys_is_bought_by_that_share(budget, sensitivity, share):
    stddev = noise_for(budget.part(share), sensitivity).stddev
    assume(stddev > 0)
    assert share - STEP < share_for(budget, sensitivity, stddev) < share + 2 * STEP


@pytest.mark.parametrize("stddev", [0.3, 1.0, 17.0, 5e4])
def test_the_share_of_a_pure_budget_is_the_papers_inverse(stddev):
    """Bagdasaryan et al. 2022, equation 8: r = ((v + 1) − √(2v + 1))/v, ε = −Δ ln r."""
    v = stddev**2
    epsilon = -7 * math.log(((v + 1) - math.sqrt(2 * v + 1)) / v)
    share = share_for(PureDP(2), Sensitivity(7, 49), stddev)
    assert float(share) == pytest.approx(epsilon / 2, rel=1e-5, abs=float(STEP))


def test_a_share_above_one_says_that_the_budget_is_too_small():
    assert share_for(PureDP("0.01"), Sensitivity(1, 1), 1.0) > 1
    assert share_for(ZCDP("0.01"), Sensitivity(1, 1), 1e-3) > 1


def test_any_noise_will_do_for_the_least_share():
    assert share_for(PureDP(1), Sensitivity(1, 1), 1e300) == STEP
    assert share_for(ZCDP(1), Sensitivity(1, 1), math.inf) == STEP


@pytest.mark.parametrize("stddev", [0.0, -1.0, math.nan])
def test_no_share_buys_noise_without_width(stddev):
    with pytest.raises(InputError, match="above 0"):
        share_for(PureDP(1), Sensitivity(1, 1), stddev)


def test_noise_without_width_and_sums_that_nobody_moves_are_refused():
    with pytest.raises(InputError, match="scale of noise"):
        DiscreteLaplace(Fraction(0))
    with pytest.raises(InputError, match="variance of noise"):
        DiscreteGaussian(Fraction(-1))
    with pytest.raises(InputError, match="a person must be able to move a sum by at least 1, not by"):
        noise_for(PureDP(1), Sensitivity(0, 0))
    for strange in (Sensitivity(0, 1), Sensitivity(1, 0), Sensitivity(-1, 1)):
        for budget in (PureDP(1), ZCDP(1)):
            with pytest.raises(InputError, match="a person must be able to move a sum by at least 1, not by"):
                noise_for(budget, strange)


def test_noise_too_wide_for_64_bits_can_be_described_but_not_drawn():
    noise = noise_for(PureDP("1e-18"), Sensitivity(1, 1))
    assert noise.stddev == pytest.approx(math.sqrt(2) * 1e18)
    with pytest.raises(InputError, match="spend more"):
        noise.draw(Stream.from_os(), 1)


def test_noise_is_drawn_as_whole_numbers():
    assert noise_for(ZCDP(1), Sensitivity(1, 1)).draw(Stream.from_os(), 10).dtype == np.int64
