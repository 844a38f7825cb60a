"""Noise that repeats itself is found at any distance and mirrored; independent noise is not called repeated.

A p-value is below 1e-7 by chance once in 10⁷: of the five tests of honest noise here, each has four.
"""

from dataclasses import replace

import numpy as np
import pytest

from hazemap.lab.audit.evidence import noise_residuals
from hazemap.lab.audit.evidence.noise_residuals import Residual, _products

SIZE = 400


def runs(rng: np.random.Generator, size: int = SIZE, scale: float = 2.0) -> list[list[Residual]]:
    """Ten runs of two answers."""

    def answer(number: int) -> Residual:
        noise = np.rint(rng.laplace(0, scale * (number + 1), size)).astype(np.int64)
        return Residual(f"law {number}", noise, np.zeros(size, int), np.arange(size) % 5 == 0, 0.5, 1, number)

    return [[answer(number) for number in range(2)] for _ in range(10)]


@pytest.mark.parametrize(("size", "scale"), [(400, 2.0), (40, 2.0), (65, 0.1), (1, 3.0), (4000, 0.3)])
def test_independent_noise_of_any_law_is_called_sound(size, scale):
    found = list(noise_residuals.tests(runs(np.random.default_rng(size), size, scale), "sound"))
    assert len(found) == 4 and min(each.pvalue for each in found) > 1e-7


FAULTS = {
    "mirrored": lambda noise, _: np.concatenate([noise[: SIZE // 2], noise[: SIZE // 2][::-1]]),
    "mirrored with the other sign": lambda noise, _: np.concatenate([noise[: SIZE // 2], -noise[: SIZE // 2][::-1]]),
    "in every fourth place the same": lambda noise, _: np.repeat(noise[::4], 4),
    "twice, far from each other": lambda noise, _: np.concatenate([noise[:300], noise[17:117]]),
    "of one size, with other signs": lambda noise, rng: np.abs(np.tile(noise[:200], 2)) * rng.choice([-1, 1], SIZE),
    "narrow in every third place": lambda noise, _: np.where(np.arange(SIZE) % 3 == 0, noise // 3, noise),
    "narrow where people are": lambda noise, _: np.where(np.arange(SIZE) % 5 == 0, noise // 3, noise),
    "left out in the last place": lambda noise, _: np.append(noise[:-1], 0),
}


@pytest.mark.parametrize("name", FAULTS)
def test_noise_that_is_used_again_or_is_less_somewhere_is_found(name):
    rng = np.random.default_rng(3)
    wide = runs(rng, scale=20.0)
    changed = [[replace(each, noise=FAULTS[name](each.noise, rng)) for each in run] for run in wide]
    assert min(each.pvalue for each in noise_residuals.tests(changed, name)) < 1e-9


def test_the_next_round_and_the_next_run_are_looked_at_too():
    rng = np.random.default_rng(4)
    one, other = runs(rng), runs(rng)
    for run in one:
        run[1] = replace(run[1], noise=-3 * run[0].noise[::-1])
    for number in range(1, 10):
        other[number] = [
            replace(each, noise=np.roll(before.noise, 9)) for each, before in zip(other[number], other[0], strict=True)
        ]
    for changed in (one, other):
        assert min(each.pvalue for each in noise_residuals.tests(changed, "again")) < 1e-9


def test_products_are_those_of_each_pair_once():
    rng = np.random.default_rng(5)
    one, other = rng.integers(-1, 2, 7).astype(float), rng.integers(-1, 2, 5).astype(float)
    sums, many = _products(one, one, False)
    assert np.allclose(sums, [one[:-lag] @ one[lag:] for lag in range(1, 7)])
    assert np.allclose(many, [(one[:-lag] * one[lag:] != 0).sum() for lag in range(1, 7)])
    sums, many = _products(one, one, True)
    pairs = [[(i, s - i) for i in range(7) if i < s - i < 7] for s in range(13)]
    assert np.allclose(sums, [sum(one[i] * one[j] for i, j in each) for each in pairs])
    assert np.allclose(many, [sum(one[i] * one[j] != 0 for i, j in each) for each in pairs])
    sums, _ = _products(one, other, True)
    assert np.allclose(sums, np.convolve(one, other))
