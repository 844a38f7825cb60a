"""Histograms of a value: unbiased bins, intervals that hold, parts that never fall."""

import numpy as np

from hazemap.releases.statistic_estimates import Histogram

EDGES = np.linspace(0, 65, 14)


def test_intervals_of_bins_hold_95_of_100():
    chance, truth = np.random.default_rng(1), np.linspace(0, 120, 13)
    held = []
    for _ in range(2000):
        found = Histogram("c", "s", EDGES, truth + chance.laplace(0, 10, 13), 10 * 2**0.5, 3.0)
        low, high = found.interval()
        held.append((low <= truth) & (truth <= high))
    rate = np.mean(held)
    assert abs(rate - 0.95) < 0.0105  # a binomial share of 26,000 is off by 0.0068 in fewer than 1 of 10⁶ runs
    low, high = Histogram("c", "s", EDGES, truth, 5 * 2**0.5, 3.0).interval()
    wrong = np.abs(chance.laplace(0, 10, (2000, 13))) < (high - low) / 2
    assert wrong.mean() < 0.9  # the twin, of half the noise


def test_parts_never_fall_and_end_at_one():
    found = Histogram("c", "s", EDGES, np.random.default_rng(2).laplace(3, 10, 13) + 5, 14.0, 3.0)
    assert (np.diff(found.parts) >= 0).all() and found.parts[0] >= 0 and found.parts[-1] == 1


def test_where_noise_leaves_nobody_nothing_is_said_of_parts():
    assert np.isnan(Histogram("c", "s", EDGES, np.full(13, -1.0), 14.0, 3.0).parts).all()
