"""Intervals where the number of people is known: they hold as often as they say, and are what they should be."""

import numpy as np
import pytest

from hazemap.errors import InputError
from hazemap.estimate.ratio_estimates import means_known, quantiles_known
from hazemap.estimate.variance_estimates import variances_known

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


@pytest.mark.parametrize("rank", [0.1, 0.5, 0.93])
def test_quantiles_hold(rank):
    """The truth is where the exact counts, on lines inside bins, pass the rank. Intervals of a line may be longer."""
    rng = np.random.default_rng(2)
    counts = np.array([5.0, 10, 40, 90, 80, 40, 30, 5])
    people = np.full(DRAWS, counts.sum())
    truth = float(np.interp(rank * counts.sum(), np.concatenate([[0], np.cumsum(counts)]), np.arange(9)))
    found = quantiles_known(counts + laplace(rng, 8.0, DRAWS, 8), rank, people, (8.0, 3.0), 0.95)
    assert held(found, truth) > 0.944
    assert (found.low <= found.value).all() and (found.value <= found.high).all()
    exact = quantiles_known(counts[None], rank, people[:1], (1e-9, 3.0), 0.95)
    assert exact.value[0] == pytest.approx(truth) and exact.high[0] - exact.low[0] < 1e-6


def test_a_known_number_makes_quantiles_surer():
    from hazemap.estimate import ratio_estimates as ratios

    rng = np.random.default_rng(3)
    counts = rng.multinomial(500, np.full(16, 1 / 16), 2000) + laplace(rng, 8.0, 2000, 16)
    known = quantiles_known(counts, 0.5, np.full(2000, 500.0), (8.0, 3.0), 0.95)
    noisy = ratios.quantiles(counts, 0.5, (8.0, 3.0), 0.95)
    assert np.median(known.high - known.low) <= np.median(noisy.high - noisy.low) * 1.001


def test_a_mean_stays_within_the_bounds_and_its_interval_shows_how_wide_the_noise_is():
    found = means_known(np.array([-50.0, 50.0]), np.full(2, 10.0), (4.0, 0.0), 0.95)
    assert found.value.tolist() == [0.0, 1.0]
    assert found.high - found.low == pytest.approx(np.full(2, 2 * 1.96 * 0.4), rel=1e-3)


def test_a_rank_that_is_none_is_refused():
    with pytest.raises(InputError, match="rank between 0 and 1"):
        quantiles_known(np.ones((1, 4)), 1.0, np.full(1, 4.0), (1.0, 0.0), 0.95)
