"""What the laws of trees do not say of grids of grids: their edges, their areas, their numbers."""

import numpy as np
import pytest

from hazemap.cells import Leaves
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import TwoLevelGrid

CITY = Box(-74.05, 40.68, -73.90, 40.80)
SECOND = np.random.default_rng(4).integers(1, 8, 49)
TREE = TwoLevelGrid.regular(Quadtree.around(CITY, 12), 7).cut(SECOND)


@pytest.mark.parametrize("level", [1, 2])
def test_a_cell_holds_its_points_and_no_others(level):
    """Also points on corners, to the last bit: a cell owns its western and northern edge."""
    cells = Leaves.at_level(TREE, level).cells
    west, south, east, north = TREE.bounds(cells)
    corners = {"lon": np.concatenate([west, east, west, east]), "lat": np.concatenate([south, south, north, north])}
    found = TREE.cell_at(corners, level)
    root = [edge[0] for edge in TREE.bounds(TREE.root)]
    west, south, east, north = TREE.bounds(found)
    lon, lat = corners["lon"], corners["lat"]
    assert (found != 0).all()
    assert ((west <= lon) & ((lon < east) | (lon == root[2]))).all()
    assert ((lat <= north) & ((south < lat) | (lat == root[1]))).all()


def test_points_just_outside_are_nowhere():
    west, south, east, north = (edge[0] for edge in TREE.bounds(TREE.root))
    lon = [np.nextafter(west, -999), np.nextafter(east, 999), west, west]
    lat = [south, south, np.nextafter(south, -99), np.nextafter(north, 99)]
    assert (TREE.cell_at({"lon": np.array(lon), "lat": np.array(lat)}, 2) == 0).all()


def test_areas_of_parts_sum_to_the_square():
    for level in (1, 2):
        assert TREE.area(Leaves.at_level(TREE, level).cells).sum() == pytest.approx(TREE.area(TREE.root)[0], rel=1e-12)


def test_powers_of_two_give_the_cells_of_a_quadtree():
    square = Quadtree.around(CITY, 5)
    grid = TwoLevelGrid.regular(square, 8).cut(np.full(64, 4))
    rng = np.random.default_rng(1)
    rows = {"lon": rng.uniform(-74.05, -73.9, 3_000), "lat": rng.uniform(40.68, 40.8, 3_000)}
    theirs, ours = square.cell_at(rows, 5), grid.cell_at(rows, 2)
    assert all(np.array_equal(a, b) for a, b in zip(square.bounds(theirs), grid.bounds(ours), strict=True))


def test_a_regular_grid_has_only_children():
    grid = TwoLevelGrid.regular(Quadtree.world(6), 5)
    blocks = grid.children(grid.root)
    assert len(blocks) == len(grid.children(blocks)) == 25
    cells = Leaves(grid, np.concatenate([blocks, grid.children(blocks)]))
    assert np.array_equal(cells.locate(grid.span(blocks)[0]), np.arange(25, 50))


@pytest.mark.parametrize(
    ("first", "second"),
    [(2, [1, 1, 1]), (2, [1, 1, 1, 0]), (0, []), (1, [1 << 20]), (2, [[1, 1], [1, 1]]), (1, [1 << 40])],
)
def test_impossible_grids_are_refused(first, second):
    with pytest.raises(InputError):
        TwoLevelGrid(Quadtree.world(10), first, np.array(second, dtype=np.int64))


def test_other_grids_are_other_trees():
    assert TwoLevelGrid.regular(Quadtree.around(CITY, 12), 7).cut(SECOND) == TREE
    assert TREE.cut(SECOND + 1) != TREE
    assert TREE != 7
