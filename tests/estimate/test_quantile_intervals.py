"""Quantiles hold wherever values are: on atoms, ties, gaps and skew, with fixed seeds.

The truth is every number q with F(q) ≤ rank ≤ F(q and all that is q): `lower` to `upper`. A share of 4,000 trials that
hold 95 % falls below 93.1 % with a probability of less than 1e-7.
"""

from itertools import pairwise

import numpy as np
import pytest

from hazemap.errors import InputError
from hazemap.estimate.quantile_intervals import BinTree

TRIALS, LEAST = 4000, 0.931
LAWS = {"Laplace": 3.0, "Gaussian": 0.0}
RANKS = (0.1, 0.5, 0.9)
SIZES = (8, 64)


def values(kind: str, number: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    return {
        "evenly": lambda: (np.arange(number) + 0.5) / number,
        "exponential": lambda: np.minimum(rng.exponential(0.1, number), 0.9999),
        "whole numbers": lambda: np.minimum(rng.poisson(12, number), 64) / 65,
        "two atoms": lambda: np.where(np.arange(number) < number // 2, 0.2, 0.7),
        "one in ten far away": lambda: np.where(np.arange(number) < number // 10, 0.01, 0.99),
        "one value": lambda: np.full(number, 0.503),
        "the lower bound": lambda: np.zeros(number),
    }[kind]()


KINDS = ("evenly", "exponential", "whole numbers", "two atoms", "one in ten far away", "one value", "the lower bound")


def counted(y: np.ndarray) -> np.ndarray:
    """The counters of both levels."""
    leaf = np.bincount((y * SIZES[-1]).astype(int), minlength=SIZES[-1]).astype(float)
    return np.concatenate([leaf.reshape(SIZES[0], -1).sum(axis=1), leaf])


def ends(y: np.ndarray, rank: float) -> tuple[float, float]:
    """The least and the greatest quantile of this rank."""
    return tuple(float(np.quantile(y, rank, method=method)) for method in ("inverted_cdf", "higher"))


def noisy(rng: np.random.Generator, law: str, stddev: float, *shape: int) -> np.ndarray:
    return rng.laplace(0, stddev / 2**0.5, shape) if law == "Laplace" else rng.normal(0, stddev, shape)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("kind", KINDS)
def test_quantiles_hold_on_atoms_ties_gaps_and_skew(kind, law):
    rng = np.random.default_rng(3)
    y = values(kind, 400)
    stddevs = (8.0, 30.0)
    tree = BinTree(SIZES, stddevs, (10.0, 2), LAWS[law])
    noise = [noisy(rng, law, stddev, TRIALS, size) for size, stddev in zip(SIZES, stddevs, strict=True)]
    counters = counted(y) + np.concatenate(noise, axis=1)
    people = len(y) + noisy(rng, law, 10.0 / 2**0.5, TRIALS, 2).sum(axis=1)
    for rank in RANKS:
        found = tree.quantiles(counters, people, rank, 0.95)
        low, high = found.low / SIZES[-1], found.high / SIZES[-1]
        assert all(((low <= each) & (each <= high)).mean() > LEAST for each in ends(y, rank)), rank
        assert ((found.low <= found.value) & (found.value <= found.high)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_quantiles_hold_where_the_number_of_people_is_known(kind):
    rng = np.random.default_rng(4)
    y = values(kind, 400)
    stddevs = (8.0, 20.0)
    tree = BinTree(SIZES, stddevs, (0.0, 1), 3.0)
    noise = [noisy(rng, "Laplace", stddev, TRIALS, size) for size, stddev in zip(SIZES, stddevs, strict=True)]
    counters, people = counted(y) + np.concatenate(noise, axis=1), np.full(TRIALS, float(len(y)))
    for rank in RANKS:
        found = tree.quantiles(counters, people, rank, 0.95)
        low, high = found.low / SIZES[-1], found.high / SIZES[-1]
        assert all(((low <= each) & (each <= high)).mean() > LEAST for each in ends(y, rank)), rank


def test_ends_inside_bins_would_not_hold_where_everyone_has_one_value():
    """The twin that must fail: ends where a line inside a bin passes what noise can explain."""
    rng = np.random.default_rng(5)
    y = np.full(400, 0.503)
    below = np.cumsum(counted(y)[: SIZES[0]] + noisy(rng, "Laplace", 8.0, TRIALS, SIZES[0]), axis=1)
    [at] = np.flatnonzero(counted(y)[: SIZES[0]])
    inside = (200 - below[:, at - 1]) / (below[:, at] - below[:, at - 1])
    margin = 2.1 * 8.0 * 2 / 400
    assert (np.abs((at + inside) / SIZES[0] - 0.503) <= margin / SIZES[0]).mean() < 0.1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rank", RANKS)
def test_without_noise_the_interval_is_the_bin_that_holds_the_quantile(kind, rank):
    y = values(kind, 401)  # no part of 401 people is exactly a tenth or half of them
    quiet = BinTree(SIZES, (1e-6, 1e-6), (1e-6, 2), 3.0)
    found = quiet.quantiles(counted(y)[None], np.array([401.0]), rank, 0.95)
    at = int(ends(y, rank)[0] * SIZES[-1])
    assert (found.low[0], found.high[0]) == (at, at + 1)
    assert at <= found.value[0] <= at + 1


def test_every_number_between_two_middle_values_is_a_median_and_in_the_interval():
    quiet = BinTree(SIZES, (1e-6, 1e-6), (1e-6, 2), 3.0)
    found = quiet.quantiles(counted(values("two atoms", 400))[None], np.array([400.0]), 0.5, 0.95)
    assert found.low[0] <= 0.2 * SIZES[-1] and found.high[0] >= 0.7 * SIZES[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_quantiles_of_higher_ranks_are_never_lower(kind):
    rng = np.random.default_rng(9)
    stddevs = (8.0, 30.0)
    tree = BinTree(SIZES, stddevs, (10.0, 2), 3.0)
    noise = [noisy(rng, "Laplace", stddev, 1000, size) for size, stddev in zip(SIZES, stddevs, strict=True)]
    counters, people = counted(values(kind, 400)) + np.concatenate(noise, axis=1), 400 + rng.laplace(0, 7, 1000)
    found = [tree.quantiles(counters, people, rank, 0.95) for rank in (0.05, 0.1, 0.25, 0.5, 0.6, 0.9)]
    for lower, higher in pairwise(found):
        assert all((getattr(lower, name) <= getattr(higher, name)).all() for name in ("value", "low", "high"))


def test_a_second_level_only_narrows_what_the_first_one_says():
    rng = np.random.default_rng(6)
    y = values("exponential", 3000)
    counters = counted(y) + np.concatenate(
        [noisy(rng, "Laplace", s, 500, size) for s, size in zip((8.0, 30.0), SIZES, strict=True)], axis=1
    )
    people = np.full(500, 3000.0)
    both = BinTree(SIZES, (8.0, 30.0), (10.0, 2), 3.0).quantiles(counters, people, 0.5, 0.95)
    one = BinTree(SIZES[:1], (8.0,), (10.0, 2), 3.0).quantiles(counters[:, : SIZES[0]], people, 0.5, 0.95)
    wide = (one.high - one.low) * SIZES[1] // SIZES[0]
    assert np.median(both.high - both.low) <= np.median(wide) / 2
    assert np.mean(both.high - both.low <= wide) > 0.9


def test_noise_of_what_is_below_an_edge_is_that_of_least_squares():
    """Against the covariance of a direct solution, with the number of people as one more equation."""
    tree = BinTree((2, 4), (3.0, 5.0), (2.0, 2), 0.0)
    design = np.concatenate([np.ones((1, 4)), np.kron(np.eye(2), np.ones((1, 2))), np.eye(4)])
    weights = np.diag(np.array([2.0, 3, 3, 5, 5, 5, 5]) ** -2.0)
    solution = np.linalg.solve(design.T @ weights @ design, design.T @ weights)
    below = np.concatenate([np.zeros((1, 7)), np.cumsum(solution, axis=0)])
    assert np.allclose(tree._below, below, atol=1e-12)
    covariance = np.diag(np.array([2.0, 3, 3, 5, 5, 5, 5]) ** 2)
    excess = below - 0.3 * below[-1]
    assert np.allclose(tree._spread(tree._excess(0.3))[0] ** 2, np.diag(excess @ covariance @ excess.T))


def test_where_nobody_seems_to_be_every_value_is_possible():
    tree = BinTree((4,), (10.0,), (10.0, 2), 3.0)
    found = tree.quantiles(np.array([[-5.0, -4, 0, 0], [3.0, 4, 2, 0]]), np.array([-9.0, 9.0]), 0.5, 0.95)
    assert np.isnan(found.value[0]) and found.stddev[0] == np.inf
    assert (found.low.tolist(), found.high.tolist()) == ([0.0, 0.0], [4.0, 4.0])


def test_more_confidence_makes_intervals_longer_and_the_standard_error_stays():
    rng = np.random.default_rng(8)
    tree = BinTree(SIZES, (8.0, 30.0), (10.0, 2), 3.0)
    counters = counted(values("evenly", 800)) + rng.laplace(0, 8.0, (300, sum(SIZES)))
    found = [tree.quantiles(counters, np.full(300, 800.0), 0.5, sure) for sure in (0.5, 0.9, 0.95, 0.999, 1 - 2.0**-50)]
    for short, wide in pairwise(found):
        assert (wide.low <= short.low).all() and (short.high <= wide.high).all()
        assert (wide.stddev == short.stddev).all()


def test_a_rank_that_is_none_is_refused():
    tree = BinTree((4,), (1.0,), (0.0, 1), 3.0)
    for rank in (0.0, 1.0, float("nan")):
        with pytest.raises(InputError, match="the rank of a quantile must be between 0 and 1, such as"):
            tree.quantiles(np.ones((1, 4)), np.full(1, 4.0), rank, 0.95)
