"""The base map: every scale can be read and is valid; any rectangle of the globe is drawn, or nothing is."""

import json
from importlib import resources

import numpy as np
import pytest
import shapely
from tests.cpu_time import least_cpu

from hazemap.base_map import base_map
from hazemap.base_map.natural_earth import WIDEST, areas_of, lines_of, packed
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import Box

NEW_YORK = Box(-74.3, 40.4, -73.7, 41.0)


def covers(areas, lon, lat):
    return any(shapely.Polygon(area[0], area[1:]).contains(shapely.Point(lon, lat)) for area in areas)


def test_the_data_lie_in_the_package_and_are_small():
    folder = resources.files("hazemap.base_map")
    sizes = [len((folder / f"natural_earth_{scale}.tiles").read_bytes()) for scale in WIDEST]
    assert sum(sizes) <= 4_000_000
    assert "public domain" in (folder / "LICENSE-natural-earth.txt").read_text()


@pytest.mark.parametrize("scale", ["110m", "50m"])
def test_every_entry_of_a_scale_is_valid(scale):
    tiles = packed(scale)
    for layer, column, row in tiles.keys:
        if layer == "places":
            named = tiles.named_points(layer, column, row)
            assert len(named.names) == len(named.points) == len(named.ranks)
            assert all(named.names)
            continue
        outlines = tiles.outlines(layer, column, row)
        shapes = (areas_of if layer in ("land", "lakes") else lines_of)(outlines, 0.0, tiles.grid.steps)
        assert shapely.is_valid(shapes).all()
        corner = np.array([column, row]) * tiles.grid.side
        assert (shapely.total_bounds(shapes).reshape(2, 2) >= corner).all()
        assert (shapely.total_bounds(shapes).reshape(2, 2) <= corner + tiles.grid.side).all()


@pytest.mark.slow
def test_every_entry_of_the_finest_scale_is_valid():
    test_every_entry_of_a_scale_is_valid("10m")


def test_new_york_has_its_harbour_and_its_neighbours():
    city = base_map(NEW_YORK)
    assert city.scale == "10m"
    assert [place.name for place in city.places][:2] == ["New York", "Newark"]
    assert covers(city.land, -73.95, 40.65)  # Brooklyn
    assert not covers(city.land, -74.04, 40.65)  # Upper Bay


def test_the_scale_fits_the_rectangle():
    boxes = {"10m": Box(8, 47, 9, 48), "50m": Box(5, 45, 16, 55), "110m": Box(-180, -90, 180, 90)}
    assert {scale: base_map(box).scale for scale, box in boxes.items()} == {scale: scale for scale in boxes}


@pytest.mark.parametrize("box", [Box(14, 46, 22, 50), Box(10, 40, 70, 80)])
def test_what_tiles_cut_is_whole_again(box):
    """A meridian or parallel between two tiles is no shore: no long ring follows it inside the rectangle."""
    drawn = base_map(box)
    side = packed(drawn.scale).grid.side
    inner = (box.west, box.south, box.east, box.north)
    for area in drawn.land:
        for ring in area:
            middle, length = (ring[1:] + ring[:-1]) / 2, np.abs(np.diff(ring, axis=0))
            inside = ((middle > inner[:2]) & (middle < inner[2:])).all(axis=1)
            for axis in (0, 1):
                along = (length[:, axis] == 0) & (middle[:, axis] % side == 0) & (length[:, 1 - axis] > 0.5)
                assert not (along & inside).any()


def test_mid_ocean_is_empty_and_no_failure():
    nothing = base_map(Box(-30.0, 0.0, -29.9999, 0.0001))
    assert not any([nothing.land, nothing.lakes, nothing.rivers, nothing.borders, nothing.states, nothing.places])
    assert nothing.to_json()["land"] == []


def test_a_view_over_the_antimeridian_goes_on():
    fiji = base_map((177.0, -20.0, 182.0, -15.0))
    beyond = base_map((-183.0, -20.0, -178.0, -15.0))
    assert covers(fiji.land, 178.5, -17.8)
    assert covers(fiji.land, 180.05, -16.75)  # Taveuni and Vanua Levu lie on both sides
    assert covers(beyond.land, -181.5, -17.8)
    assert not any((np.diff(ring[:, 0]) == 0).all() for area in fiji.land for ring in area)
    suva = next(place for place in fiji.places if place.name == "Suva")
    assert 178 < suva.lon < 179


def test_the_poles_are_reached_and_not_passed():
    assert base_map(Box(-180, 88, 180, 90)).land == ()
    south = base_map(Box(0, -90, 3, -85))
    assert covers(south.land, 1.0, -89.0)
    assert min(ring[:, 1].min() for area in south.land for ring in area) == -90


def test_lakes_have_islands_and_water():
    assert covers(base_map(Box(-88, 41, -86, 46)).lakes, -87.0, 43.0)  # Michigan
    assert covers(base_map(Box(5, 40, 60, 60)).lakes, 31.5, 60.8)  # Ladoga
    assert covers(base_map(Box(-180, -90, 180, 90)).lakes, 33.0, -1.0)  # Victoria


def test_nothing_lies_outside_of_the_margin():
    for margin in (0.0, 0.5):
        drawn = base_map(NEW_YORK, margin)
        points = np.concatenate([*(ring for area in drawn.land for ring in area), *drawn.states])
        across, up = margin * 0.6 + 1e-9, margin * 0.6 + 1e-9
        assert points[:, 0].min() >= NEW_YORK.west - across
        assert points[:, 0].max() <= NEW_YORK.east + across
        assert points[:, 1].min() >= NEW_YORK.south - up
        assert points[:, 1].max() <= NEW_YORK.north + up


def test_the_same_box_is_the_same_json():
    first, again = (json.dumps(base_map(NEW_YORK).to_json()) for _ in range(2))
    assert first == again
    said = json.loads(first)
    assert list(said) == ["scale", "land", "lakes", "rivers", "borders", "states", "places", "source"]
    assert said["land"][0][0][0] == said["land"][0][0][-1]  # a ring ends where it begins
    assert said["places"][0][2:] == ["New York", 0]


@pytest.mark.parametrize(
    "edges", [(1, 0, 1, 1), (0, 1, 1, 0), (float("nan"), 0, 1, 1), (0, 0, 600, 1), (0, float("nan"), 1, 1)]
)
def test_what_is_no_rectangle_is_refused(edges):
    with pytest.raises(InputError, match="west < east"):
        base_map(edges)


def test_a_city_costs_little():
    base_map(NEW_YORK)
    assert least_cpu(lambda: base_map(NEW_YORK)) < 0.05
