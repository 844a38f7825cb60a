"""Drift: p-values that are true where nothing changed, and small where something did."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom, chi2

from hazemap.estimate.noise_drift import LEAST, changed_p, holm, law_of, moved_p
from hazemap.privacy.mechanisms import DiscreteGaussian, DiscreteLaplace
from hazemap.privacy.random_stream import Stream

TRIALS = 1500
LAWS = {
    "laplace": (DiscreteLaplace(Fraction(4)), DiscreteLaplace(Fraction(4))),
    "two prices": (DiscreteLaplace(Fraction(2)), DiscreteLaplace(Fraction(15, 2))),
    "gaussian": (DiscreteGaussian(Fraction(30)), DiscreteGaussian(Fraction(60))),
    "narrow": (DiscreteLaplace(Fraction(1, 3)), DiscreteLaplace(Fraction(1, 3))),
}


def laws(noises):
    return tuple(law_of(noise.stddev, noise.kurtosis) for noise in noises)


def drawn(noises, size, trials, seed):
    stream = Stream.fixed(bytes([seed]))
    return [noise.draw(stream, size * trials).reshape(trials, size) for noise in noises]


def false_alarms(noises, size, told=None):
    """How many of the trials in which nothing changed have p ≤ 0.05 and 0.01."""
    before, after = drawn(noises, size, TRIALS, 7)
    chances = np.array([changed_p(old, new, told or laws(noises)) for old, new in zip(before, after, strict=True)])
    return (chances <= 0.05).sum(), (chances <= 0.01).sum()


@pytest.mark.parametrize("size", [3, 60])
@pytest.mark.parametrize("kind", LAWS)
def test_where_nothing_changed_p_is_small_as_rarely_as_it_says(kind, size):
    """The stream is fixed; with a fresh one this would fail less often than once in 10^9."""
    five, one = false_alarms(LAWS[kind], size)
    assert binom.sf(five - 1, TRIALS, 0.05) > 1e-9 and binom.sf(one - 1, TRIALS, 0.01) > 1e-9
    if size > 3:  # and hardly more rarely: it is exact but for whole numbers
        assert five > TRIALS * 0.05 / 3


def test_groups_of_many_sums_are_as_true_and_not_blind():
    noises = LAWS["laplace"]
    before, after = drawn(noises, 5_000, 60, 3)
    chances = np.array([changed_p(old, new, laws(noises)) for old, new in zip(before, after, strict=True)])
    assert (chances <= 0.05).sum() <= binom.isf(1e-9, 60, 0.05) and np.median(chances) < 0.8
    moved = after[0] + np.repeat([4, -4], 2_500)
    assert changed_p(before[0], moved, laws(noises)) < 1e-6


@pytest.mark.parametrize(
    "wrong", [(("laplace", 4.0), ("laplace", 2.0)), (("gaussian", 31.75), ("gaussian", 31.75))], ids=["price", "shape"]
)
def test_a_test_that_takes_the_noise_for_less_or_of_another_shape_is_found_out(wrong):
    """Twins: one release's noise taken for half as wide; Laplace noise taken for Gaussian of its variance."""
    five, one = false_alarms(LAWS["laplace"], 60, wrong)
    assert binom.sf(five - 1, TRIALS, 0.05) < 1e-9 or binom.sf(one - 1, TRIALS, 0.01) < 1e-9


def test_for_gaussian_noise_it_is_the_chi_squared_test():
    chances, found = [], []
    before, after = drawn(LAWS["gaussian"], 40, 50, 5)
    for old, new in zip(before, after, strict=True):
        found.append(changed_p(old, new, laws(LAWS["gaussian"])))
        chances.append(chi2.sf(((old - new) ** 2 / 90).sum(), 40))
    np.testing.assert_allclose(found, chances, atol=5e-3)


def test_it_is_the_sum_over_all_outcomes_of_one_difference():
    ratio = np.exp(-1 / 2.0)
    z = np.arange(-200, 201)
    one = (1 - ratio) / (1 + ratio) * ratio ** np.abs(z)
    both = np.convolve(one, one)
    for seen in (1, 3, 10):
        exact = both[np.abs(np.arange(-400, 401)) >= seen].sum()
        found = changed_p(np.array([0]), np.array([seen]), (("laplace", 2.0), ("laplace", 2.0)))
        assert exact <= found <= exact * 1.001 + 1e-8


@pytest.mark.parametrize(
    "noise", [DiscreteLaplace(Fraction(1, 5)), DiscreteLaplace(Fraction(10**4)), DiscreteGaussian(Fraction(9))]
)
def test_a_law_is_known_from_its_error_and_kurtosis(noise):
    family, width = law_of(noise.stddev, noise.kurtosis)
    truth = noise.scale if isinstance(noise, DiscreteLaplace) else noise.variance
    assert family in type(noise).__name__.lower() and width == pytest.approx(float(truth), rel=1e-5)


@pytest.mark.parametrize(
    ("stddev", "kurtosis"), [(0.0, 0.0), (np.inf, 3.0), (np.nan, 3.0), (1.0, 0.0), (9.0, 1.2), (9.0, np.nan)]
)
def test_noise_of_no_known_law_is_not_tested(stddev, kurtosis):
    assert law_of(stddev, kurtosis) is None


def test_noise_too_wide_to_work_out_is_not_tested_and_no_numbers_are_no_change():
    wide = ("laplace", 1e9)
    assert changed_p(np.zeros(2, np.int64), np.ones(2, np.int64), (wide, wide)) is None
    assert changed_p(np.zeros(0, np.int64), np.zeros(0, np.int64), (wide, wide)) == 1.0


def test_a_total_that_moved_within_its_noise_has_a_large_p():
    stream = Stream.fixed(b"9")
    noise = DiscreteLaplace(Fraction(10))
    difference = noise.draw(stream, 2_000) - noise.draw(stream, 2_000)
    error = noise.stddev * 2**0.5
    moves, which = np.unique(difference, return_inverse=True)
    chances = np.array([moved_p(float(each), error, noise.kurtosis) for each in moves])[which]
    assert binom.sf((chances <= 0.05).sum() - 1, 2_000, 0.05) > 1e-9 and (chances <= 0.05).sum() > 20
    twin = np.array([moved_p(float(each), noise.stddev, noise.kurtosis) for each in moves])[which]  # one noise of two
    assert binom.sf((twin <= 0.05).sum() - 1, 2_000, 0.05) < 1e-9
    assert moved_p(1e6, error, 3.0) == LEAST


def test_holm_corrects_for_all_that_is_tested_and_keeps_the_order():
    assert holm([]) == [] and holm([None]) == [None]
    assert holm([0.5, 0.01, None, 0.01]) == [0.5, 0.03, None, 0.03]
    chance = np.random.default_rng(5)
    alarms = sum(min(holm(list(chance.random(30)))) <= 0.05 for _ in range(2_000))
    assert binom.sf(alarms - 1, 2_000, 0.05) > 1e-9
