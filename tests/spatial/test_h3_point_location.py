"""A lattice gives H3's own answer, point for point, whether it was asked before or not."""

import h3ronpy
import numpy as np
import pytest
from h3ronpy.vector import cells_to_coordinates, coordinates_to_cells

from hazemap.machine_code.hash_index import HashIndex
from hazemap.spatial.h3_hexagons import PENTAGONS, TURN, H3Lattice, _faces, _places_loop
from hazemap.vdaf.compiled_loops import once_compiled

ALL = range(16)


def everywhere(count: int, seed: int = 0):
    points = np.random.default_rng(seed).normal(size=(count, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    return np.degrees(np.arctan2(points[:, 1], points[:, 0])), np.degrees(np.arcsin(points[:, 2]))


def about(lon: float, lat: float, resolution: int, count: int = 4000):
    """Points in some hundred cells around a place."""
    spread = np.degrees(4 * 0.25 / 7 ** (resolution / 2))
    chance = np.random.default_rng(resolution)
    lat = np.clip(lat + spread * chance.uniform(-1, 1, count), -90, 90)
    lon = lon + spread * chance.uniform(-1, 1, count) / max(np.cos(np.radians(lat)).min(), 0.05)
    return (lon + 180) % 360 - 180, lat


def asked(lon, lat, resolution):
    return np.asarray(coordinates_to_cells(lat, lon, resolution), dtype=np.uint64)


def faces():
    centres = _faces()[0]
    return np.degrees(np.arctan2(centres[:, 1], centres[:, 0])), np.degrees(np.arcsin(centres[:, 2]))


def pentagons():
    found = cells_to_coordinates(np.uint64(0x08001FFFFFFFFFFF) | (PENTAGONS.astype(np.uint64) << np.uint64(45)))
    return np.asarray(found["lng"]), np.asarray(found["lat"])


@pytest.mark.parametrize("resolution", ALL)
def test_points_everywhere_are_in_the_cells_that_h3_says(resolution):
    lattice, (lon, lat) = H3Lattice(resolution), everywhere(20_000)
    want = asked(lon, lat, resolution)
    assert np.array_equal(lattice.locate(lon, lat), want)
    for few in np.array_split(np.arange(20_000), 20):  # so few are remembered in any case
        assert np.array_equal(lattice.locate(lon[few], lat[few]), want[few])
    known = lattice._known.keys.of(once_compiled(_places_loop)(lon, lat, lattice._axes)) >= 0
    assert known.mean() > 0.6
    assert np.array_equal(lattice.locate(lon, lat), want)


def test_where_every_point_is_in_a_cell_of_its_own_nothing_is_remembered():
    lattice, (lon, lat) = H3Lattice(15), everywhere(20_000)
    assert np.array_equal(lattice.locate(lon, lat), asked(lon, lat, 15))
    assert len(lattice._known.cells) == 1


@pytest.mark.parametrize("resolution", ALL)
def test_other_points_of_cells_that_were_met_are_in_them(resolution):
    places = [(13.4, 52.5), (0.0, 89.99), (180.0, -17.0), (-74.0, 40.7), (0.0, -90.0)]
    places += list(zip(*faces(), strict=True))[:5] + list(zip(*pentagons(), strict=True))
    for place in places:
        lattice, (lon, lat) = H3Lattice(resolution), about(*place, resolution)
        half = len(lon) // 2
        lattice.locate(lon[:half], lat[:half])
        assert np.array_equal(lattice.locate(lon[half:], lat[half:]), asked(lon[half:], lat[half:], resolution))


def test_most_points_are_found_without_asking():
    lattice, (lon, lat) = H3Lattice(9), about(13.4, 52.5, 9)
    lattice.locate(lon[:2000], lat[:2000])
    keys = once_compiled(_places_loop)(lon[2000:], lat[2000:], lattice._axes)
    assert (lattice._known.keys.of(keys) >= 0).mean() > 0.95


def test_corners_and_centres_of_cells_are_given_to_h3_or_as_h3_gives_them():
    for resolution in (0, 1, 5, 8, 15):
        cells = np.unique(asked(*everywhere(300, seed=1), resolution))
        shapes = h3ronpy.vector.cells_to_wkb_polygons(cells)
        import shapely

        corners = shapely.get_coordinates(shapely.from_wkb(np.asarray(shapes)))
        corners = corners[np.abs(corners[:, 0]) <= 180]
        found = cells_to_coordinates(cells)
        lon = np.concatenate([corners[:, 0], np.asarray(found["lng"])])
        lat = np.concatenate([corners[:, 1], np.asarray(found["lat"])])
        lattice = H3Lattice(resolution)
        lattice.locate(lon, lat)
        assert np.array_equal(lattice.locate(lon, lat), asked(lon, lat, resolution))


def test_a_lattice_turned_the_other_way_gives_other_cells():
    lattice, (lon, lat) = H3Lattice(7), about(13.4, 52.5, 7)
    centres, along, across = _faces()
    scale = 7**3.5
    turned = np.stack(
        [
            centres,
            scale * (np.cos(TURN) * along - np.sin(TURN) * across),
            scale * (np.cos(TURN) * across + np.sin(TURN) * along),
        ],
        axis=1,
    )
    lattice._axes = turned
    lattice.locate(lon[:2000], lat[:2000])
    assert not np.array_equal(lattice.locate(lon[2000:], lat[2000:]), asked(lon[2000:], lat[2000:], 7))


def test_off_the_globe_is_nowhere():
    lon, lat = np.array([np.nan, 0, 181, 0, np.inf, 180]), np.array([0, np.nan, 0, -90.1, 0, 90])
    found = H3Lattice(5).locate(lon, lat)
    assert (found[:5] == 0).all()
    assert found[5:] == asked(lon[5:], lat[5:], 5)


def test_names_that_are_too_many_are_asked_for_again(monkeypatch):
    monkeypatch.setattr("hazemap.spatial.h3_hexagons.MOST", 500)
    lattice, (lon, lat) = H3Lattice(12), everywhere(3000)
    for _ in range(3):
        assert np.array_equal(lattice.locate(lon, lat), asked(lon, lat, 12))
    lon, lat = everywhere(3000, seed=2)
    want = asked(lon, lat, 12)
    lon[7], lat[8] = np.nan, -91
    want[[7, 8]] = 0
    assert np.array_equal(lattice.locate(lon, lat), want)
    assert len(lattice._known.cells) <= 3000 and isinstance(lattice._known.keys, HashIndex)
