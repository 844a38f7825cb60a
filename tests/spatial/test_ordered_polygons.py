"""Which polygon holds a point, tested against shapely; areas, tested against pyproj."""

import numpy as np
import pyproj
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.errors import InputError
from hazemap.spatial.ordered_polygons import Polygons, pack, unpack
from hazemap.spatial.web_mercator import mercator_rectangles

seeds = st.integers(0, 2**32 - 1)
quick = settings(max_examples=25, deadline=None)


def jigsaw(seed: int, pieces: int, west: float = -5.0, south: float = 40.0, size: float = 6.0) -> np.ndarray:
    """Polygons that tile a square, with shared borders."""
    rng = np.random.default_rng(seed)
    square = shapely.box(west, south, west + size, south + size)
    points = shapely.multipoints(np.array([west, south]) + size * rng.random((pieces, 2)))
    cells = shapely.get_parts(shapely.voronoi_polygons(points, extend_to=square))
    return shapely.intersection(cells, square)


def shapes(seed: int) -> np.ndarray:
    """Polygons of all sorts that overlap, touch and have holes, one of them empty, one in two parts."""
    rng = np.random.default_rng(seed)
    pieces = jigsaw(seed, int(rng.integers(2, 40)))
    hole = shapely.difference(shapely.box(-4, 41, 0, 45), shapely.box(-3, 42, -1, 44))
    pair = shapely.union_all(shapely.box([-4.5, -1], [40.5, 43], [-4, 0.5], [41, 44]))
    comb = shapely.polygons([(-5, 40), (-4.9, 46), (-4.8, 40.1), (-4.7, 46), (-4.6, 40.0)])
    every = np.concatenate([pieces[: len(pieces) // 2], [hole, comb, shapely.Polygon(), pair], pieces])
    return every[rng.permutation(len(every))]


def points(polygons: np.ndarray, seed: int) -> np.ndarray:
    """Points inside and outside, on corners, on edges as nearly as doubles can be, and a bit beside them."""
    rng = np.random.default_rng(seed)
    corners = shapely.get_coordinates(polygons)
    corners = corners[rng.choice(len(corners), 200)]
    others = corners[rng.permutation(200)]
    boundary = shapely.get_parts(shapely.boundary(polygons[~shapely.is_empty(polygons)]))
    lines = rng.choice(boundary, 200)
    on = shapely.get_coordinates(shapely.line_interpolate_point(lines, rng.random(200), normalized=True))
    level = np.column_stack([others[:, 0], corners[:, 1]])
    return np.vstack([rng.uniform([-6, 39], [2, 47], (400, 2)), corners, on, np.nextafter(on, 99), level])


def by_shapely(polygons: np.ndarray, places: np.ndarray) -> np.ndarray:
    held = np.array([shapely.intersects_xy(shape, *places.T) for shape in polygons])
    return np.where(held.any(axis=0), held.argmax(axis=0), -1)


@given(seeds)
@quick
def test_a_point_belongs_to_the_first_polygon_that_shapely_says_it_meets(seed):
    polygons = shapes(seed)
    places = points(polygons, seed)
    found = Polygons(polygons).first_holding(places[:, 0].copy(), places[:, 1].copy())
    assert np.array_equal(found, by_shapely(polygons, places))


@given(seeds)
@quick
def test_every_point_of_a_jigsaw_has_an_owner(seed):
    """Also on borders: pieces share their corners, so there are no gaps but those of rounding."""
    rng = np.random.default_rng(seed)
    size = 2.0 ** rng.integers(-18, 4)
    polygons = jigsaw(seed, 30, west=0.0, south=0.0, size=float(size))
    lon, lat = size * rng.random((2, 500))
    corners = shapely.get_coordinates(polygons)
    found = Polygons(polygons).first_holding(np.append(lon, corners[:, 0]), np.append(lat, corners[:, 1]))
    assert (found >= 0).all()


def test_no_polygons_hold_nothing_and_nan_is_in_none():
    none = Polygons(np.array([shapely.Polygon()], dtype=object))
    assert none.first_holding(np.array([0.0, np.nan]), np.zeros(2)).tolist() == [-1, -1]
    one = Polygons(np.array([shapely.box(0, 0, 1, 1)]))
    lon, lat = np.array([np.nan, 0.5, np.inf, 1.0, 1e300]), np.array([0.5, np.nan, 0.5, 1.0, -1e300])
    assert one.first_holding(lon, lat).tolist() == [-1, -1, -1, 0, -1]


def test_many_points_are_found_as_few_are():
    polygons = jigsaw(3, 200)
    lon, lat = np.random.default_rng(1).uniform([[-6], [39]], [[2], [47]], (2, 600_000))
    whole = Polygons(polygons).first_holding(lon, lat)
    assert np.array_equal(whole[::997], by_shapely(polygons, np.column_stack([lon, lat])[::997]))


def test_areas_are_those_of_the_ellipsoid():
    rectangles = shapely.box([0, -74.1, 179], [0, 40.6, -80], [1, -73.9, 180], [20, 40.8, 80])
    for (west, south, east, north), area in zip(shapely.bounds(rectangles), Polygons(rectangles).areas(), strict=True):
        y = [0.5 - np.arctanh(np.sin(np.radians(lat))) / (2 * np.pi) for lat in (north, south)]
        exact = mercator_rectangles(np.array([y[0]]), np.array([(east - west) / 360]), np.array([y[1] - y[0]]))[0]
        assert area == pytest.approx(exact, rel=1e-10)
    slanted = jigsaw(5, 20)
    geodesic = pyproj.Geod(ellps="WGS84")
    fine = shapely.segmentize(slanted, 0.001)  # short edges are as straight in degrees as on the ground
    expected = [abs(geodesic.geometry_area_perimeter(shape)[0]) for shape in fine]
    np.testing.assert_allclose(Polygons(slanted).areas(), expected, rtol=1e-6)


def test_a_hole_has_no_area():
    whole, hole = shapely.box(0, 0, 4, 4), shapely.box(1, 1, 2, 2)
    areas = Polygons(np.array([whole, hole, shapely.difference(whole, hole), shapely.Polygon()])).areas()
    assert areas[2] == pytest.approx(areas[0] - areas[1])
    assert areas[3] == 0


@pytest.mark.slow
@given(seeds)
@quick
def test_areas_inside_boxes_are_those_of_what_shapely_cuts_out(seed):
    rng, polygons = np.random.default_rng(seed), shapes(seed)
    known = Polygons(polygons)
    low = rng.uniform([-6, 39], [2, 47], (60, 2))
    boxes = np.hstack([low, low + rng.uniform(0.01, 3, (60, 2))])
    boxes[:5] = [-5, 40, 1, 46], [-4, 41, 0, 45], [-3, 42, -1, 44], [-9, 30, 9, 60], [5, 41, 6, 42]
    which = rng.integers(0, len(polygons), 60)
    cut = shapely.intersection(polygons[which], shapely.box(*boxes.T), grid_size=1e-11)
    expected = Polygons(np.where(shapely.area(cut) > 0, cut, shapely.Polygon())).areas()
    found = known.areas_inside(which, boxes)
    speck = (found == 0) & (expected < 1.1e-6 * Polygons(shapely.box(*boxes.T)).areas())
    np.testing.assert_allclose(found, np.where(speck, 0, expected), rtol=1e-6, atol=100)
    assert (found[expected == 0] == 0).all()


@given(seeds)
@quick
def test_polygons_come_back_to_the_last_bit(seed):
    polygons = shapes(seed)
    assert shapely.equals_identical(unpack(pack(polygons)), polygons).all()


BOWTIE = shapely.Polygon([(0, 0), (1, 1), (1, 0), (0, 1)])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no polygons",
        "5:aGVsbG8=",
        "99999999999999:aGVsbG8=",
        pack(jigsaw(1, 5))[:-20],
        pack(np.array([shapely.Point(1, 2)])),
        pack(np.array([BOWTIE])),
        "7" + pack(jigsaw(1, 5)),
    ],
)
def test_damaged_polygons_are_refused(text):
    with pytest.raises(InputError, match="damaged"):
        unpack(text)


@pytest.mark.slow
def test_ten_million_points_take_less_than_ten_seconds():
    """Process time of all threads: on two cores the clock shows half of it."""
    from time import process_time

    polygons, rng = Polygons(jigsaw(7, 3000, west=-125.0, south=20.0, size=60.0)), np.random.default_rng(7)
    lon, lat = rng.uniform([[-125], [20]], [[-65], [80]], (2, 10_000_000))
    polygons.first_holding(lon[:10], lat[:10])
    start = process_time()
    polygons.first_holding(lon, lat)
    assert process_time() - start < 20
