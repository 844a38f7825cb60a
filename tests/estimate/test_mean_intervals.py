"""Means and variances from noisy counters: unbiased, and in their intervals as often as they say."""

from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest

from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import reach
from hazemap.estimate.mean_intervals import loudest, means, means_known
from hazemap.estimate.value_estimates import variances, variances_known

TRIALS = 60_000
# A binomial share of 60,000 trials around 0.95 stays within 0.0053 of it but for 1 in 10⁹ runs; the intervals' law is
# an approximation (Cornish and Fisher), which may be off by 0.005 itself.
WITHIN = 0.0105


def noise(law: str, counters: int, stddev: float, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if law == "Laplace":
        return rng.laplace(0, stddev / 2**0.5, (TRIALS, counters))
    return rng.normal(0, stddev, (TRIALS, counters))


LAWS = {"Laplace": 3.0, "Gaussian": 0.0}


def moments(people: float, mean: float, square: float) -> np.ndarray:
    return people * np.array([1 - 2 * mean + square, 2 * (mean - square), square])


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("mean", [0.02, 0.3, 0.5, 0.98])
@pytest.mark.parametrize("people", [100.0, 300.0, 5000.0])
def test_intervals_of_means_hold_95_of_100(law, mean, people):
    counters = people * np.array([1 - mean, mean]) + noise(law, 2, 10.0)
    found = means(counters, np.array([0.0, 1]), (10.0, LAWS[law]), 0.95)
    assert abs(((found.low <= mean) & (mean <= found.high)).mean() - 0.95) < WITHIN


@pytest.mark.parametrize("law", LAWS)
def test_intervals_of_means_hold_at_least_so_often_however_few_people_there_are(law):
    for people in (0.0, 5.0, 20.0, 60.0):
        counters = people * np.array([0.7, 0.3]) + noise(law, 2, 10.0)
        found = means(counters, np.array([0.0, 1]), (10.0, LAWS[law]), 0.95)
        assert ((found.low <= 0.3) & (found.high >= 0.3)).mean() > 0.95 - WITHIN


def test_an_interval_that_took_the_number_of_people_for_exact_is_found_out():
    """The twin that must fail: value ± 1.96 · noise of the numerator / people."""
    counters = 100 * np.array([0.1, 0.9]) + noise("Gaussian", 2, 10.0)
    total, people = counters[:, 1], counters.sum(axis=1)
    held = np.abs(total / people - 0.9) <= 1.96 * 10 / people
    centred = np.abs((total - people / 2) / people - 0.4) <= 1.96 * 10 / 2**0.5 / people
    assert abs(held.mean() - 0.95) > WITHIN or abs(centred.mean() - 0.95) > WITHIN
    assert abs(centred.mean() - 0.95) > WITHIN


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize(
    ("mean", "square"),
    [(0.3, 0.15), *(pytest.param(*other, marks=pytest.mark.slow) for other in ((0.5, 0.26), (0.1, 0.02), (0.5, 0.5)))],
)
def test_variances_are_unbiased_and_in_their_intervals(law, mean, square):
    counters = moments(1000.0, mean, square) + noise(law, 3, 10.0)
    found = variances(counters, (10.0, LAWS[law]), 0.95)
    truth = square - mean**2
    held = (found.low <= truth) & (truth <= found.high)
    assert 0.95 - WITHIN < held.mean() < 0.98  # where the truth is an end of what is possible, more than 95
    if 0.02 < truth < 0.23:  # elsewhere the value is clipped to what is possible
        assert abs(found.value.mean() - truth) < 6 * found.value.std() / TRIALS**0.5 + 1e-4


def test_a_mean_of_many_people_is_unbiased():
    counters = moments(2000.0, 0.3, 0.15) + noise("Laplace", 3, 10.0)
    found = means(counters, np.array([0, 0.5, 1]), (10.0, 3.0), 0.95)
    assert abs(found.value.mean() - 0.3) < 6 * found.value.std() / TRIALS**0.5 + 1e-5
    assert found.stddev.mean() == pytest.approx(found.value.std(), rel=0.03)


def test_without_noise_everything_is_exact():
    counters = np.array([[25.0, 50, 25], [0, 0, 7]])
    quiet = (1e-9, 3.0)
    assert means(counters, np.array([0, 0.5, 1]), quiet, 0.95).value == pytest.approx([0.5, 1])
    assert variances(counters, quiet, 0.95).value == pytest.approx([0.0, 0], abs=1e-9)


def test_where_nobody_seems_to_be_nothing_is_said_and_everything_is_possible():
    for empty in (np.array([[-5.0, -4]]), np.array([[0.0, 0]]), np.array([[20.0, -19]])):
        found = means(empty, np.array([0.0, 1]), (10.0, 3.0), 0.95)
        assert (found.low.tolist(), found.high.tolist()) == ([0.0], [1.0])
        assert empty.sum() > 0 or np.isnan(found.value[0])
    nothing = variances(np.array([[-5.0, -4, 1]]), (10.0, 3.0), 0.95)
    assert np.isnan(nothing.value[0])
    assert (nothing.low.tolist(), nothing.high.tolist()) == ([0.0], [0.25])


@pytest.mark.parametrize("law", LAWS)
def test_noise_is_as_rarely_louder_as_it_is_said_to_be(law):
    sums = noise(law, 3, 10.0, seed=5).sum(axis=1)
    for chance in (0.03, 0.01, 1e-3):
        spread = 5 * (chance / TRIALS) ** 0.5  # a binomial share passes this in fewer than 1 of 10⁶ runs
        louder = (sums > loudest(3, (10.0, LAWS[law]), chance)).mean()
        assert louder <= chance + spread
        assert louder >= (chance - spread if law == "Laplace" else 0.6 * chance - spread)  # taken as 64 Laplace numbers
    assert (sums > loudest(3, (5.0, LAWS[law]), 0.01)).mean() > 0.02  # the twin: of half the noise


@pytest.mark.parametrize("counters", [1, 2, 3, 20])
@pytest.mark.parametrize("chance", [0.01, 1e-6, 1e-12])
def test_less_heavy_noise_of_the_same_width_is_not_louder(counters, chance):
    loud = [loudest(counters, (1.0, kurtosis), chance) for kurtosis in (3.0, 2.0, 1.0, 0.3, 0.01, 0.0)]
    assert all(a >= b - 1e-9 for a, b in pairwise(loud))
    exact = NormalDist().inv_cdf(1 - chance) * counters**0.5
    assert exact <= loud[-1] <= 1.1 * exact


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(InputError):
        reach(1.0, np.zeros(1))


DRAWS = 40_000
"""0.95 ± 5.3 standard errors is ± 0.006; the intervals are a little long in places, never short by more."""


def laplace(rng: np.random.Generator, stddev: float, *shape: int) -> np.ndarray:
    return rng.laplace(0, stddev / np.sqrt(2), shape)


def held(found, truth: float) -> float:
    return float(((found.low <= truth) & (truth <= found.high)).mean())


@pytest.mark.parametrize("stddev", [1.0, 20.0])
def test_means_and_variances_hold(stddev):
    """P < 1e-6 of a failure: 5.3 standard errors of 40,000 draws."""
    rng = np.random.default_rng(1)
    y = np.repeat([0.1, 0.25, 0.9], 100)
    people = np.full(DRAWS, 300.0)
    sums, bent = y.sum() + laplace(rng, stddev, DRAWS), (y * (1 - y)).sum() + laplace(rng, stddev, DRAWS)
    noise = (stddev, 3.0)
    assert 0.944 < held(means_known(sums, people, noise, 0.95), y.mean()) < 0.962
    # Of so few people as with the louder noise a variance is not told, and may be anything that is possible.
    assert 0.944 < held(variances_known(sums, bent, people, noise, 0.95), y.var()) < (0.966 if stddev == 1 else 1.1)
    assert variances_known(sums, bent, people, noise, 0.95).value.mean() == pytest.approx(y.var(), abs=stddev / 300)


def test_intervals_that_are_half_as_wide_do_not_hold():
    """The twin that must fail: as if the noise had half its standard deviation."""
    rng = np.random.default_rng(1)
    sums = 100 + laplace(rng, 5.0, DRAWS)
    assert held(means_known(sums, np.full(DRAWS, 300.0), (2.5, 3.0), 0.95), 1 / 3) < 0.944


def test_a_mean_stays_within_the_bounds_and_its_interval_shows_how_wide_the_noise_is():
    found = means_known(np.array([-50.0, 50.0]), np.full(2, 10.0), (4.0, 0.0), 0.95)
    assert found.value.tolist() == [0.0, 1.0]
    assert found.high - found.low == pytest.approx(np.full(2, 2 * 1.96 * 0.4), rel=1e-3)
