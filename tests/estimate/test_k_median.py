"""Centres on a sphere: against brute force, and against what theory promises."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.estimate import k_median as module
from hazemap.estimate.k_median import apart, chosen, k_median


def sphere(lon, lat):
    lon, lat = np.radians(lon), np.radians(lat)
    return np.column_stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)])


def cost(points, weights, centres):
    return float(weights @ apart(points, centres).min(axis=1))


def best(points, weights, k):
    return min(
        cost(points, weights, points[list(way)]) for way in combinations(range(len(points)), min(k, len(points)))
    )


crowds = st.tuples(st.integers(1, 9), st.integers(1, 4), st.integers(0, 2**32 - 1), st.sampled_from([0.1, 10, 90]))


def crowd(number, seed, width):
    rng = np.random.default_rng(seed)
    points = sphere(rng.uniform(-width, width, number) + 179, rng.uniform(-width / 2, width / 2, number))
    return points, rng.pareto(1, number) + 0.01


@settings(deadline=None, max_examples=60)
@given(crowds)
def test_no_choice_among_the_points_is_cheaper(case):
    number, k, seed, width = case
    points, weights = crowd(number, seed, width)
    found = k_median(points, weights, k)
    assert len(found.centres) == min(k, number)
    assert np.allclose(np.linalg.norm(found.centres, axis=1), 1)
    assert weights @ found.distance == pytest.approx(cost(points, weights, found.centres), rel=1e-9, abs=1e-12)
    assert weights @ found.distance <= best(points, weights, k) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("seed", range(5))
def test_exchanges_end_where_none_helps_and_near_the_best_choice(seed, monkeypatch):
    points, weights = crowd(14, seed, 20)
    distance = apart(points, points)
    monkeypatch.setattr(module, "ALL_WAYS", 0)
    for k in (1, 2, 3):
        found = chosen(distance, weights, k)
        reached = weights @ distance[:, found].min(axis=1)
        for out in range(k):
            for other in range(14):
                exchanged = np.append(np.delete(found, out), other)
                assert weights @ distance[:, exchanged].min(axis=1) >= reached * (1 - 1e-8)
        least = best(points, weights, k)
        assert least <= reached * (1 + 1e-12) <= 5 * least  # Arya et al. 2004
        assert reached <= 1.2 * least  # as a rule it is much nearer


def test_a_centre_goes_to_the_median_of_its_points_and_not_to_their_mean():
    points = sphere(np.array([0.0, 0.0, 0.0, 1.0, 10.0]), np.array([0.0, 1.0, -1.0, 0.0, 0.0]))
    weights = np.array([1.0, 3.0, 3.0, 1.0, 1.0])
    found = k_median(points, weights, 1)
    rng = np.random.default_rng(1)
    lon, lat = np.degrees(np.arctan2(*found.centres[0, 1::-1])), np.degrees(np.arcsin(found.centres[0, 2]))
    around = sphere(lon + rng.normal(0, 0.05, 500), lat + rng.normal(0, 0.05, 500))
    assert (weights @ apart(points, around) >= weights @ found.distance * (1 - 1e-6)).all()
    assert abs(lat) < 1e-3
    assert 0 <= lon < 0.5


def test_a_point_that_outweighs_all_others_is_the_median():
    points = sphere(np.array([5.0, 6.0, 7.0]), np.array([0.0, 3.0, -2.0]))
    found = k_median(points, np.array([10.0, 3.0, 3.0]), 1)
    assert np.allclose(found.centres[0], points[0])


def test_many_points_are_gathered_first_and_clusters_are_found():
    rng = np.random.default_rng(3)
    homes = np.array([[13.0, 52.0], [13.4, 52.5], [14.0, 52.1], [13.9, 52.9]])
    which = rng.choice(4, 20_000, p=[0.4, 0.3, 0.2, 0.1])
    lon, lat = (homes[which] + rng.normal(0, 0.02, (20_000, 2))).T
    found = k_median(sphere(lon, lat), np.ones(20_000), 4)
    x, y, z = found.centres.T
    places = np.degrees(np.column_stack([np.arctan2(y, x), np.arcsin(z)]))
    assert np.abs(np.sort(places[:, 0]) - np.sort(homes[:, 0])).max() < 0.005
    assert np.array_equal(np.sort(np.bincount(found.nearest)), np.sort(np.bincount(which)))


def test_the_same_points_give_the_same_centres():
    points, weights = crowd(3_000, 1, 5)
    assert np.array_equal(k_median(points, weights, 6).centres, k_median(points, weights, 6).centres)


def test_near_points_are_as_far_apart_as_they_are():
    a, b = sphere(np.array([0.0]), np.array([0.0])), sphere(np.array([1e-7, 90.0, 180.0]), np.zeros(3))
    assert apart(a, b)[0] == pytest.approx(np.radians([1e-7, 90, 180]), rel=1e-7)
