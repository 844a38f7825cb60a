"""Quadtree: against quadkeys as others compute them, a NumPy twin of the compiled loop, and the ellipsoid."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import WORLD, Box
from hazemap.spatial.quadtree import Quadtree


def twin(tree: Quadtree, lon: NDArray[np.float64], lat: NDArray[np.float64], level: int) -> Cells:
    """The same cells from the textbook formula, without the care for points within rounding of an edge."""
    x = lon / 360 + 0.5
    y = 0.5 - np.arcsinh(np.tan(np.radians(lat))) / (2 * np.pi)
    column, row = (np.floor((value - start) / tree.side * 2**level) for value, start in ((x, tree.left), (y, tree.top)))
    inside = (column >= 0) & (column < 2**level) & (row >= 0) & (row < 2**level)
    cells = np.where(inside, np.uint64(1), NOWHERE)
    for bit in range(level - 1, -1, -1):
        digit = (column // 2**bit % 2) + 2 * (row // 2**bit % 2)
        cells = np.where(inside, cells * np.uint64(4) + np.where(inside, digit, 0).astype(np.uint64), NOWHERE)
    return cells


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("tree", "box"),
    [
        (Quadtree.world(24), Box(-180, -90, 180, 90)),
        (Quadtree.world(7), WORLD),
        (Quadtree.around(Box(-74.05, 40.68, -73.90, 40.80), 14), Box(-74.2, 40.6, -73.8, 40.9)),
        (Quadtree.around(Box(10, 70, 40, 84), 18), Box(0, 60, 50, 90)),
        (Quadtree(0.25, 0.5, 0.125, 10), Box(-100, -60, -30, 10)),
    ],
)
def test_the_compiled_loop_agrees_with_its_numpy_twin(tree: Quadtree, box: Box, seed: int) -> None:
    rng = np.random.default_rng(seed)
    lon, lat = rng.uniform(box.west, box.east, 20_000), rng.uniform(box.south, box.north, 20_000)
    for level in {0, 1, tree.depth // 2, tree.depth}:
        cells = tree.cell_at({"lon": lon, "lat": lat}, level)
        assert np.array_equal(cells, twin(tree, lon, lat, level))
        assert (cells != NOWHERE).any()


def test_cells_of_the_world_are_the_tiles_of_web_maps() -> None:
    """Tile 3/5 of zoom 3 is quadkey 213 (Microsoft, Bing Maps Tile System)."""
    tree = Quadtree.world(20)
    tile = tree.named(["213"])
    assert [float(value[0]) * 8 for value in tree.square(tile)] == [3, 5, 1]
    assert np.array_equal(tree.names(tree.grid(1).ravel()), ["0", "1", "2", "3"])
    west, south, east, north = (edge[0] for edge in tree.bounds(tree.named(["031331"])))
    assert (west, east) == (-5.625, 0)
    assert math.isclose(north, 48.92249926375824)  # 6/30/22 in every tile calculator
    assert math.isclose(south, 45.089035564831036)


@pytest.mark.parametrize("depth", range(25))
def test_the_level_of_the_first_and_the_last_cell_of_each_level_is_exact(depth: int) -> None:
    tree = Quadtree.world(24)
    cells = np.array([4**depth, 2 * 4**depth - 1], dtype=np.uint64)
    assert tree.level(cells).tolist() == [depth, depth]
    assert [len(name) for name in tree.names(cells)] == ([4, 4] if depth == 0 else [depth, depth])


def test_names_below_another_root_cannot_be_taken_for_quadkeys() -> None:
    tree = Quadtree.around(Box(0, 0, 1, 1), 3)
    assert tree.names(np.array([1, 4, 5, 0b1111011], dtype=np.uint64)) == ["root", "root-0", "root-1", "root-323"]
    with pytest.raises(InputError, match="'root-'"):
        tree.named(["0"])
    for wrong in (0, 4**4, 2**63):
        with pytest.raises(InputError, match="levels 0 to 3"):
            tree.names(np.array([wrong], dtype=np.uint64))


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_the_square_around_a_box_holds_it_and_is_hardly_larger(data: st.DataObject) -> None:
    west = data.draw(st.floats(-180, 179.99))
    east = data.draw(st.floats(west + 1e-3, 180))
    south = data.draw(st.floats(-85, 84.99))
    north = data.draw(st.floats(south + 1e-3, 85.05))
    tree = Quadtree.around(Box(west, south, east, north), depth=3)
    corners = {"lon": np.array([west, east, west, east]), "lat": np.array([south, south, north, north])}
    assert (tree.cell_at(corners, 3) != NOWHERE).all()
    low, high = (0.5 - math.asinh(math.tan(math.radians(lat))) / (2 * math.pi) for lat in (south, north))
    assert tree.side - max((east - west) / 360, low - high) < 1e-9
    middle_x, middle_y = (west + east) / 720 + 0.5, (low + high) / 2
    for start, middle in ((tree.left, middle_x), (tree.top, middle_y)):
        assert abs(start + tree.side / 2 - middle) < 1e-9 or start == 0 or start + tree.side == 1


def test_the_square_around_the_world_or_more_is_the_world() -> None:
    assert Quadtree.around(WORLD, 5) == Quadtree.world(5)
    assert Quadtree.around(Box(-180, -90, 180, 90), 5) == Quadtree.world(5)
    assert Quadtree.around(Box(-180, 0, 0, 85.2), 5) == Quadtree(0, 0, 0.5, 5)


def test_a_square_that_cannot_be_is_refused() -> None:
    for depth in (-1, 25):
        with pytest.raises(InputError, match=f"0 to 24; found {depth}"):
            Quadtree.world(depth)
    for left, top, side in [(-0.1, 0, 0.5), (0, 0.6, 0.5), (0, 0, 0), (0, 0, 1.1), (math.nan, 0, 1)]:
        with pytest.raises(InputError, match="must lie in the world"):
            Quadtree(left, top, side, 3)
    with pytest.raises(InputError, match="use a smaller depth"):
        Quadtree.around(Box(0, 0, 1e-6, 1e-6), 24)
    with pytest.raises(InputError, match="Web Mercator reaches only"):
        Quadtree.around(Box(0, 86, 1, 87), 3)


def test_the_limit_of_web_mercator_is_inside_and_beyond_is_nowhere() -> None:
    tree = Quadtree.world(24)
    lat = np.array([WORLD.north, WORLD.south, np.nextafter(WORLD.north, 90), np.nextafter(WORLD.south, -90), 90])
    cells = tree.cell_at({"lon": np.array([-180.0, 180.0, 0, 0, 0]), "lat": lat}, 24)
    assert tree.names(cells[:2]) == ["0" * 24, "3" * 24]
    assert (cells[2:] == NOWHERE).all()


def test_a_grid_shows_north_above_and_west_on_the_left() -> None:
    tree = Quadtree.around(Box(-10, 30, 30, 60), 6)
    for level in (0, 1, 4):
        grid = tree.grid(level)
        assert grid.shape == (2**level, 2**level)
        west, south, _, _ = (edge.reshape(grid.shape) for edge in tree.bounds(grid.ravel()))
        assert (np.diff(west, axis=1) > 0).all()
        assert (np.diff(west, axis=0) == 0).all()
        assert (np.diff(south, axis=0) < 0).all()
        assert np.array_equal(np.sort(grid.ravel()), np.arange(4**level, 2 * 4**level))
    with pytest.raises(InputError, match="level 0 to 6; found 7"):
        tree.grid(7)


def test_the_areas_of_a_level_sum_to_the_ellipsoid_between_the_limits() -> None:
    tree = Quadtree.world(6)
    total = tree.area(tree.grid(6).ravel()).sum()
    assert math.isclose(total, tree.area(tree.root)[0], rel_tol=1e-12)
    assert math.isclose(total, 510_065_621_724_089 * 0.9962, rel_tol=1e-3)  # all of WGS 84 but two polar caps


def test_importing_trees_loads_nothing_heavy() -> None:
    code = (
        "import sys; from hazemap.spatial.bounding_box import WORLD; from hazemap.spatial.quadtree import Quadtree;"
        "from hazemap.spatial.h3_hexagons import Hexagons; Quadtree.world(3); Hexagons(WORLD, 0, 3);"
        "print(sorted({'numba', 'shapely', 'h3ronpy', 'h3', 'scipy', 'pyproj', 'pandas'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "tree", [Quadtree.world(4), Quadtree.world(9), Quadtree.around(Box(115.7, 39.5, 117.2, 40.5), 10)]
)
def test_many_points_at_once_lie_in_the_same_cells_as_few(tree):
    """Large batches look rows up in a table; on and beside every edge the two ways must agree."""
    rng = np.random.default_rng(9)
    west, south, east, north = (float(edge[0]) for edge in tree.bounds(tree.root))
    cells = tree.grid(tree.depth)
    edges_y = np.concatenate([tree.bounds(cells[:, 0])[3], [south]])
    edges_x = np.concatenate([tree.bounds(cells[0])[0], [east]])
    near_y = np.concatenate([edges_y, np.nextafter(edges_y, 90), np.nextafter(edges_y, -90)])
    near_x = np.concatenate([edges_x, np.nextafter(edges_x, 180), np.nextafter(edges_x, -180)])
    size = max(20 * 2**tree.depth, 8 * len(near_y))
    lon, lat = rng.uniform(west, east, size), rng.uniform(south, north, size)
    lon[: len(near_x)], lat[-len(near_y) :] = near_x, near_y
    many = tree.cell_at({"lon": lon, "lat": lat}, tree.depth)
    step = 8 * 2**tree.depth
    few = [tree.cell_at({"lon": lon[i : i + step], "lat": lat[i : i + step]}, tree.depth) for i in range(0, size, step)]
    assert np.array_equal(many, np.concatenate(few))


@pytest.mark.parametrize("level", range(7))
def test_neighbours_are_the_squares_beside(level):
    tree = Quadtree(0.25, 0.5, 0.125, 6)
    grid = tree.grid(level)
    framed = np.pad(grid, 1, constant_values=NOWHERE)
    beside = np.stack([framed[1:-1, :-2], framed[1:-1, 2:], framed[:-2, 1:-1], framed[2:, 1:-1]], axis=-1)
    assert np.array_equal(tree.neighbours(grid.ravel()), beside.reshape(-1, 4))


def test_neighbours_touch_at_any_depth():
    tree = Quadtree.world(24)
    cells = tree.cell_at({"lon": np.array([2.35, -179.99999, 100.0]), "lat": np.array([48.85, -60.0, 84.9])}, 24)
    around = tree.neighbours(cells)
    x, y, side = tree.square(cells)
    left, top, _ = tree.square(around[around != NOWHERE])
    assert (around == NOWHERE).sum() == (x == 0).sum()
    apart = np.abs(left - np.repeat(x, (around != NOWHERE).sum(axis=1))) + np.abs(
        top - np.repeat(y, (around != NOWHERE).sum(axis=1))
    )
    assert np.allclose(apart, side[0])
