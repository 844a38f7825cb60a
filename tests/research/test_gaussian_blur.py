"""Gaussian heatmaps, against the double sum of their definition."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.errors import InputError
from hazemap.lab.compare.density_metrics import density, kl
from research.compare.gaussian_blur import heatmap


def slowly(grid, variance):
    rows, columns = grid.shape
    out = np.zeros_like(grid, dtype=float)
    pixels = [(r, c) for r in range(rows) for c in range(columns)]
    for r, c in pixels:
        bells = [math.exp(-((r - i) ** 2 + (c - j) ** 2) / (2 * variance)) for i, j in pixels]
        total = math.fsum(bells)
        for (i, j), bell in zip(pixels, bells, strict=True):
            out[i, j] += grid[r, c] * bell / total
    return out


@settings(max_examples=30)
@given(st.integers(1, 8), st.integers(1, 8), st.integers(0, 99), st.floats(0.05, 200))
def test_a_heatmap_is_its_double_sum(rows, columns, seed, variance):
    grid = np.random.default_rng(seed).exponential(size=(rows, columns))
    assert heatmap(grid, variance) == pytest.approx(slowly(grid, variance), rel=1e-10)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 99), st.floats(0, 1e4))
def test_nobody_leaves_the_map_and_no_side_is_special(rows, columns, seed, variance):
    grid = density(np.random.default_rng(seed).exponential(size=(rows, columns)))
    blurred = heatmap(grid, variance)
    assert blurred.sum() == pytest.approx(1)
    assert heatmap(grid[::-1], variance) == pytest.approx(blurred[::-1])
    assert heatmap(grid.T, variance) == pytest.approx(blurred.T)


def test_no_blur_changes_nothing_and_much_blur_leaves_nothing():
    grid = density(np.random.default_rng(0).random((20, 30)))
    assert np.array_equal(heatmap(grid, 0), grid)
    assert np.array_equal(heatmap(grid, 1e-310), grid)
    assert heatmap(grid, 1e9) == pytest.approx(np.full((20, 30), 1 / 600), rel=1e-5)


@pytest.mark.parametrize("variance", [2.0, 4e4])
def test_strips_do_not_show(variance):
    line = np.random.default_rng(0).random(700)
    apart = np.arange(700)[:, None] - np.arange(700)
    bell = np.exp(-(apart**2) / (2 * variance))
    assert heatmap(line[:, None], variance)[:, 0] == pytest.approx((bell / bell.sum(axis=0)) @ line, rel=1e-12)


def test_far_from_the_border_it_is_the_usual_filter():
    from scipy.ndimage import gaussian_filter

    grid = np.zeros((101, 101))
    grid[48:53, 49:53] = np.random.default_rng(0).random((5, 4))
    assert heatmap(grid, 9) == pytest.approx(gaussian_filter(grid, 3, mode="constant", truncate=12), abs=1e-12)


def test_the_faintest_pixels_are_right():
    """A Fourier transform would leave ±1e-17 here, and the divergence would be of that."""
    one, other = np.zeros((1, 64)), np.zeros((1, 64))
    one[0, 20], other[0, 24] = 1, 1
    p, q = heatmap(one, 1), heatmap(other, 1)
    assert p[0, 40] == pytest.approx(math.exp(-200) / math.sqrt(2 * math.pi), rel=1e-8)
    assert kl(p, q, smallest=0) == pytest.approx((24 - 20) ** 2 / 2, rel=1e-6)


def test_what_cannot_be_blurred_is_refused():
    with pytest.raises(InputError, match="variance"):
        heatmap(np.ones((2, 2)), -1)
    with pytest.raises(InputError, match="rows and columns"):
        heatmap(np.ones(4), 1)
