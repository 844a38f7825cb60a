"""The city that does not exist."""

import numpy as np
import pytest

from hazemap.planning.synthetic_city import BOX, City, DemoCity, Quarter, normal, uniform
from hazemap.privacy.random_stream import Stream


@pytest.fixture(scope="module")
def city() -> City:
    return City.built(Stream.fixed(b"tests"), side=256)


def test_every_quarter_is_a_density(city):
    for quarter in (city.homes, city.offices, city.venues, city.streets, city.day):
        assert quarter.density.min() >= 0
        assert quarter.density.sum() == pytest.approx(1)


def test_nobody_lives_in_the_river_or_the_sea(city):
    assert 0.05 < (city.homes.density == 0).mean() < 0.2
    assert (city.homes.density[64:, -1] == 0).all()


def test_the_same_seed_builds_the_same_city_and_another_another():
    first, same, other = (City.built(Stream.fixed(seed), side=64) for seed in (b"a", b"a", b"b"))
    assert np.array_equal(first.day.density, same.day.density)
    assert not np.array_equal(first.day.density, other.day.density)


def test_places_are_where_the_density_is(city):
    """A plot with a share p of the people gets n p of them; 6 standard deviations: below 1e-6 over 16 blocks."""
    x, y = city.day.places(Stream.fixed(b"places"), 200_000)
    found, _, _ = np.histogram2d(y, x, bins=4, range=[[0, 1], [0, 1]])
    wanted = 200_000 * city.day.density.reshape(4, 64, 4, 64).sum(axis=(1, 3))
    assert (np.abs(found - wanted) < 6 * np.sqrt(wanted) + 10).all()


def test_counts_are_poisson_for_few_and_for_many(city):
    """Mean and variance within 6 standard errors: wrong with probability below 1e-8."""
    for people in (30, 400):
        flat = Quarter(np.full((200, 200), 1 / 40_000))
        counts = flat.counts(Stream.fixed(b"counts"), 40_000 * people)
        assert counts.mean() == pytest.approx(people, abs=6 * np.sqrt(people / 40_000))
        assert counts.var() == pytest.approx(people, rel=6 * np.sqrt(2 / 40_000) + 0.01)
    assert abs(city.day.counts(Stream.fixed(b"c"), 50_000).sum() - 50_000) < 6 * 50_000**0.5


def test_uniform_and_normal_numbers_have_their_moments():
    """Six standard errors of 10^5 numbers."""
    flat, bell = uniform(Stream.fixed(b"u"), 100_000), normal(Stream.fixed(b"n"), 100_000)
    assert 0 < flat.min() < flat.max() < 1
    assert flat.mean() == pytest.approx(0.5, abs=6 * np.sqrt(1 / 12 / 1e5))
    assert bell.mean() == pytest.approx(0, abs=6 / np.sqrt(1e5))
    assert bell.var() == pytest.approx(1, abs=6 * np.sqrt(2 / 1e5))


def test_the_city_is_the_same_for_a_seed_and_inside_its_box():
    first, same, other = DemoCity(1000, 1).rows, DemoCity(1000, 1).rows, DemoCity(1000, 2).rows
    assert all((first[name] == same[name]).all() for name in first)
    assert len(first["lon"]) != len(other["lon"]) or (first["lon"] != other["lon"]).any()
    assert (first["lon"].min(), first["lat"].min()) >= (BOX.west - 0.001, BOX.south - 0.001)
    assert (first["lon"].max(), first["lat"].max()) <= (BOX.east + 0.001, BOX.north + 0.001)


def test_every_person_has_one_vote_in_all():
    assert DemoCity(1000, 1).votes.sum() == pytest.approx(1000)
