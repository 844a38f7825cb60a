"""Intervals of shares: their coverage is computed, not simulated, for tiny counts and every strength of the noise."""

from itertools import product

import numpy as np
import pytest

from hazemap.estimate.marked_counts import MarkedShares

CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.99)


def law(epsilon):
    """Discrete Laplace noise: numbers, probabilities, standard deviation, excess kurtosis."""
    r, reach = np.exp(-epsilon), int(np.ceil(38 / epsilon))
    z = np.arange(-reach, reach + 1)
    p = (1 - r) / (1 + r) * r ** np.abs(z)
    stddev = np.sqrt(2 * r) / (1 - r)
    return z, p, stddev, (p * z**4.0).sum() / stddev**4 - 3


def held(epsilon, marked, without, confidence, narrower=1.0):
    """How probable it is that the interval holds the true share, summed over all noise."""
    z, p, stddev, kurtosis = law(epsilon)
    of_marked, of_without = (part.ravel() for part in np.meshgrid(z, z))
    noise = (stddev * narrower, stddev * narrower)
    found = MarkedShares(1.0 * marked + of_marked, 1.0 * without + of_without, noise, (kurtosis, kurtosis), 1.0)
    low, high = found.interval(confidence)
    assert ((low >= 0) & (high <= 1) & (low <= high)).all()
    known = ~np.isnan(found.values)
    assert ((low <= found.values) & (found.values <= high))[known].all()
    true = marked / (marked + without)
    return float((np.outer(p, p).ravel() * ((low <= true + 1e-12) & (true <= high + 1e-12))).sum())


@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 3, 5])
@pytest.mark.parametrize("confidence", CONFIDENCES)
def test_intervals_hold_for_every_tiny_count(epsilon, confidence):
    for marked, without in product((0, 1, 2, 5, 30), (0, 1, 4, 20, 300)):
        if marked + without:
            assert held(epsilon, marked, without, confidence) >= confidence


def test_with_less_noise_than_there_is_they_would_not():
    assert held(0.5, 30, 300, 0.95, narrower=0.5) < 0.85


def test_they_are_little_longer_than_they_must_be_where_there_are_people():
    assert held(0.5, 300, 500, 0.95) < 0.962


def test_several_sides_have_the_noise_of_their_sum():
    rng, rounds = np.random.default_rng(3), 40_000
    z, p, stddev, kurtosis = law(1)
    noise = rng.choice(z, p=p / p.sum(), size=(8, rounds))
    marked, without = 20 + noise[:2].sum(axis=0), 60 + noise[2:].sum(axis=0)
    found = MarkedShares(marked, without, (stddev * 2**0.5, stddev * 6**0.5), (kurtosis / 2, kurtosis / 6), 1.0)
    low, high = found.interval(0.95)
    share = ((low <= 0.25) & (high >= 0.25)).mean()
    assert 0.945 <= share <= 0.975  # 6.9 standard errors below 0.9525, which is what it should hold at least


def test_nobody_is_known_to_be_there():
    nobody = MarkedShares(np.array([3.0, -4.0]), np.array([-5.0, 0.0]), (5.0, 5.0))
    assert np.isnan(nobody.values).all()
    low, high = nobody.interval()
    assert low.tolist() == [0, 0] and high.tolist() == [1, 1]


def test_people_who_are_a_sample_make_noise_less_peaked():
    """Kurtosis of noise, in the variance of noise and of a sample of 40 people."""
    p, found = np.array([0.3]), MarkedShares(np.array([12.0]), np.array([28.0]), (2.0, 1.0), (3.0, 1.5))
    parts = [(0.7 * 2) ** 2, (0.3 * 1) ** 2]
    for sampled, more in ((False, 0.0), (True, 40 * 0.3 * 0.7)):
        kurtosis = (3 * parts[0] ** 2 + 1.5 * parts[1] ** 2) / (sum(parts) + more) ** 2
        assert found._kurtosis(p, np.array([40.0]), sampled) == pytest.approx(kurtosis)
