"""Where a noisy histogram has its crowds and its ends."""

import numpy as np
import pytest

from hazemap.algorithms.private_value_bounds import best_bins, ends, topmost

LAPLACE = (30 * 2**0.5, 3.0)


def noisy(counts: np.ndarray, seed: int) -> np.ndarray:
    return counts + np.random.default_rng(seed).laplace(0, 30, len(counts))


def test_noise_alone_hardly_ever_looks_like_a_crowd():
    """By a union bound in less than 1 case of 100; more than 12 of 300 have P < 1e-4."""
    empty = np.zeros(71)
    assert sum(topmost(noisy(empty, seed), LAPLACE, 0.01) is not None for seed in range(300)) <= 12


def test_the_twin_that_believes_in_half_the_noise_sees_crowds_where_nobody_is():
    empty = np.zeros(71)
    assert sum(topmost(noisy(empty, seed), (15 * 2**0.5, 3.0), 0.01) is not None for seed in range(300)) > 12


def test_the_top_of_a_crowd_is_found_and_few_values_far_beyond_change_nothing():
    """10,000 people in bins 30 to 34, 40 of them in bin 60. The noise of a bin would have to be ten deviations."""
    counts = np.zeros(71)
    counts[30:35], counts[60] = (1000, 3000, 3000, 2000, 1000), 40
    found = [topmost(noisy(counts, seed), LAPLACE, 0.01) for seed in range(50)]
    assert sum(top is not None and top.last == 34 for top in found) >= 48
    assert np.mean([top.people for top in found if top]) == pytest.approx(10_000, rel=0.03)


def test_a_second_crowd_behind_a_gap_is_seen():
    counts = np.zeros(71)
    counts[0], counts[31] = 3000, 900
    found = [topmost(noisy(counts, seed), LAPLACE, 0.01).last for seed in range(50)]
    assert min(found) == 31 and sum(last == 31 for last in found) >= 40


def test_ends_leave_out_as_much_as_they_say():
    """Without noise worth mentioning, one part of 100 on each side; 10^6 people in 100 equal bins of 102."""
    counts = np.concatenate([[0.0], np.full(100, 10_000.0), [0.0]])
    found = ends(counts, (1.0, 3.0), 0.015)
    assert (found.first, found.last) == (2, 99)
    assert 0.01 <= found.before < 0.011 and 0.01 <= found.behind < 0.011


def test_what_may_lie_beyond_is_said_with_the_noise_in_it():
    """Three standard errors: exceeded in about 1 of 200 cases a side; more than 10 of 300 has P < 1e-5."""
    counts = np.concatenate([[20.0], np.full(64, 100.0), [0.0]])
    wrong = 0
    for seed in range(300):
        found = ends(noisy(counts, seed), LAPLACE, 0.01)
        wrong += counts[: found.first].sum() / counts.sum() > found.before
    assert wrong <= 10


def test_ends_of_nothing_are_all_there_is():
    found = ends(np.zeros(10), (1.0, 3.0), 0.01)
    assert (found.first, found.last) == (1, 8)
    assert found.before == found.behind == 1.0


def test_few_people_have_few_bins():
    assert [best_bins(people, 28, 128) for people in (0, 100, 1_000, 10_000, 10**9)] == [8, 8, 16, 128, 128]
