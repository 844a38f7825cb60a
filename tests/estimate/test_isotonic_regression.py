"""The nearest numbers that do not fall, against a solver of quadratic programs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression, minimize

from hazemap.estimate.quantile_intervals import monotone

numbers = st.lists(st.floats(-1, 2), min_size=1, max_size=40).map(np.array)


@given(numbers)
def test_numbers_do_not_fall_and_lie_within_their_bounds(given):
    found = monotone(given)
    assert (np.diff(found) >= -1e-12).all() and found.min() >= 0 and found.max() <= 1
    assert np.allclose(monotone(found), found)


@given(numbers)
def test_without_bounds_it_is_isotonic_regression(given):
    assert np.allclose(monotone(given, -np.inf, np.inf), isotonic_regression(given).x)


@given(st.lists(st.floats(-1, 2), min_size=2, max_size=5).map(np.array))
def test_clipping_afterwards_gives_the_nearest_within_the_bounds(given):
    order = {"type": "ineq", "fun": np.diff}
    start = np.linspace(0.1, 0.9, len(given))
    nearest = minimize(lambda x: ((x - given) ** 2).sum(), start, bounds=[(0, 1)] * len(given), constraints=order)
    assert ((monotone(given) - given) ** 2).sum() <= nearest.fun + 1e-6


def test_nothing_gives_nothing():
    assert len(monotone(np.empty(0))) == 0
