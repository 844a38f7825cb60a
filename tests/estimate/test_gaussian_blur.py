"""Blurs of rectangles against sums over fine pixels, and their errors against those of least squares on trees."""

import numpy as np
import pytest

from hazemap.estimate.gaussian_blur import AT_ONCE, blurred

RNG = np.random.default_rng(11)


def squares(side):
    """All squares of a grid over [0, 1]²: west, south, east, north."""
    west, south = (edge.ravel() for edge in np.meshgrid(np.arange(side) / side, np.arange(side) / side))
    return west, south, west + 1 / side, south + 1 / side


def test_a_blur_is_what_sums_over_fine_pixels_come_to():
    bounds, sigma, fine = squares(4), 0.13, 400
    density, x, y = RNG.random((2, 16)), np.array([0.05, 0.5, 0.93]), np.array([0.31, 0.99])
    found = blurred(bounds, density, np.ones(16), x, y, sigma)
    middle = (np.arange(fine) + 0.5) / fine
    bell = [np.exp(-((middle - at[:, None]) ** 2) / (2 * sigma**2)) for at in (x, y)]
    mass = bell[1].sum(axis=1)[:, None] * bell[0].sum(axis=1)
    for made, numbers in zip(found.means, density, strict=True):
        pixels = np.kron(numbers.reshape(4, 4), np.ones((fine // 4, fine // 4)))
        assert made == pytest.approx(bell[1] @ pixels @ bell[0].T / mass, rel=1e-4)


def test_blocks_and_what_is_far_away_change_nothing():
    side = 64
    assert side**2 > AT_ONCE
    bounds, density, x = squares(side), RNG.random((1, side**2)), np.linspace(0, 1, 40)
    whole, shuffled = np.arange(side**2), RNG.permutation(side**2)
    one, other = (
        blurred(tuple(edge[order] for edge in bounds), density[:, order], np.ones(side**2), x, x, 0.02)
        for order in (whole, shuffled)
    )
    assert one.means == pytest.approx(other.means, rel=1e-9) and one.stddev == pytest.approx(other.stddev, rel=1e-9)
    constant = blurred(bounds, np.full((1, side**2), 3.0), np.ones(side**2), x, x, 0.02)
    assert constant.means == pytest.approx(3.0, rel=1e-9)


def test_where_no_rectangle_is_near_nothing_is_said():
    found = blurred(squares(2), np.ones((1, 4)), np.ones(4), np.array([0.5, 9.0]), np.array([0.5]), 0.1)
    assert found.means[0, 0, 0] == pytest.approx(1) and np.isnan(found.means[0, 0, 1]) and np.isnan(found.stddev[0, 1])


def masses(bounds, at, sigma):
    unit = np.eye(len(bounds[0]))
    return blurred(bounds, unit, np.zeros(len(unit)), np.array([at[0]]), np.array([at[1]]), sigma).means[:, 0, 0]


def test_errors_of_cells_that_are_independent_add_up_exactly():
    bounds, stddev = squares(4), 1 + RNG.random(16)
    weights = masses(bounds, (0.4, 0.7), 0.2)
    found = blurred(bounds, np.zeros((1, 16)), stddev, np.array([0.4]), np.array([0.7]), 0.2)
    assert found.stddev[0, 0] == pytest.approx(np.sqrt(weights**2 @ stddev**2))
    every = blurred(bounds, np.zeros((1, 16)), stddev, np.array([0.4]), np.array([0.7]), 0.2, correlated=True)
    assert every.stddev[0, 0] == pytest.approx(weights @ stddev)


def test_errors_of_least_squares_on_any_tree_are_never_larger_than_is_said():
    bounds = squares(4)
    quarter = (np.arange(16) // 8) * 2 + np.arange(16) % 4 // 2
    for _ in range(200):
        exact = np.diag(RNG.gamma(0.3, size=16) + 1e-3)  # the precision of cells counted once or more
        for group in (np.zeros(16), quarter):
            for number in np.unique(group):
                inside = (group == number).astype(float)
                exact += RNG.gamma(0.3) * RNG.integers(0, 2) * np.outer(inside, inside)
        covariance = np.linalg.inv(exact)
        assert (covariance - np.diag(np.diag(covariance)) <= 1e-9 * covariance.max()).all()
        at, sigma = RNG.random(2), 0.05 + RNG.random()
        weights = masses(bounds, at, sigma)
        true = np.sqrt(weights @ covariance @ weights)
        stddev = np.sqrt(np.diag(covariance))
        found = blurred(bounds, np.zeros((1, 16)), stddev, np.array([at[0]]), np.array([at[1]]), sigma)
        assert true <= found.stddev[0, 0] * (1 + 1e-9)
