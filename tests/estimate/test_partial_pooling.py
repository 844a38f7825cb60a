"""Best guesses are nearer to the truth than what they are made of, and know how near."""

import numpy as np
import pytest

from hazemap.estimate.published_values import pooled

PARTS = [(3, 2, 1), (0, 0, 0), (0, 3, 3), (5, 0, 0), (0, 0, 3)]


def town(parts, seed=0, cells=80, slots=24, missing=0.4):
    chance = np.random.default_rng(seed)
    cell, slot, own = (
        scale * chance.normal(size=shape)
        for scale, shape in zip(parts, [(cells, 1), (1, slots), (cells, slots)], strict=True)
    )
    truth, stddev = 20 + cell + slot + own, chance.uniform(0.5, 4, (cells, slots))
    values = truth + stddev * chance.laplace(0, 0.5**0.5, (cells, slots))
    values[chance.random((cells, slots)) < missing] = np.nan
    return truth, values, stddev


@pytest.mark.parametrize("parts", PARTS)
def test_guesses_are_nearer_and_their_errors_are_what_they_say(parts):
    truth, values, stddev = town(parts)
    guess, error = pooled(values, stddev)
    known = np.isfinite(values)
    assert np.array_equal(np.isfinite(guess), known) and np.array_equal(np.isfinite(error), known)
    off = np.sqrt(((guess - truth)[known] ** 2).mean())
    assert off < 0.8 * np.sqrt(((values - truth)[known] ** 2).mean())
    assert off < 1.3 * np.sqrt((error[known] ** 2).mean())


def test_values_without_noise_stay_what_they_are():
    truth, _, _ = town((3, 2, 1))
    guess, error = pooled(truth, np.full(truth.shape, 1e-6))
    assert np.abs(guess - truth).max() < 1e-5 and error.max() < 1e-5


def test_values_of_much_noise_and_no_difference_become_one():
    chance = np.random.default_rng(3)
    guess, _ = pooled(20 + 5 * chance.normal(size=(300, 2)), np.full((300, 2), 5.0))
    assert np.ptp(guess) < 4


@pytest.mark.parametrize(
    "values", [np.full((3, 2), np.nan), np.array([[1.0, np.nan]]), np.zeros((0, 3)), np.ones((2, 2))]
)
def test_little_is_guessed_from_little(values):
    guess, error = pooled(values, np.ones(values.shape))
    assert np.array_equal(guess, values, equal_nan=True)
    assert np.array_equal(np.isnan(error), np.isnan(values))


def test_the_order_of_cells_and_slots_does_not_matter():
    _, values, stddev = town((3, 2, 1), cells=20, slots=6)
    guess, _ = pooled(values, stddev)
    turned, _ = pooled(values[::-1, ::-1], stddev[::-1, ::-1])
    assert np.allclose(turned[::-1, ::-1], guess, equal_nan=True)
