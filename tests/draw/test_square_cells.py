import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.cells import Leaves
from hazemap.draw.square_cells import SquareCells
from hazemap.draw.viewport import Viewport
from hazemap.spatial.bounding_box import WORLD, Box
from hazemap.spatial.quadtree import Quadtree


def squares(tree: Quadtree, cells: np.ndarray) -> SquareCells:
    owned, whole = Leaves(tree, cells).areas, tree.area(cells)
    return SquareCells(tree, cells, owned / whole)


def grown(tree: Quadtree, seed: int, nested: bool) -> np.ndarray:
    """Leaves of a random tree; with `nested` some cells stay together with a part of their children."""
    rng = np.random.default_rng(seed)
    done, cells = [], tree.root
    while len(cells):
        split = (rng.random(len(cells)) < 0.6) & (tree.level(cells) < tree.depth)
        done.append(cells[~split])
        children = tree.children(cells[split])
        if nested and split.any():
            done.append(cells[split][:1])
            children = children[1:]
        cells = children
    return np.concatenate(done)


@given(st.integers(0, 10_000), st.booleans(), st.integers(20, 150))
def test_a_pixel_has_the_number_of_the_cell_in_its_middle(seed: int, nested: bool, pixels: int):
    tree = Quadtree.around(Box(5, 45, 8, 47), 5)
    cells = grown(tree, seed, nested)
    numbers = np.random.default_rng(seed).random(len(cells))
    view = Viewport.around(squares(tree, cells).bounds, *np.zeros((2, len(cells))))
    image, (west, east, south, north) = squares(tree, cells).raster(view, numbers, pixels)
    rows, columns = image.shape
    assert max(rows, columns) >= pixels
    x = west + (np.arange(columns) + 0.5) * (east - west) / columns
    y = north - (np.arange(rows) + 0.5) * (north - south) / rows
    lon = np.degrees(x / 6378137)
    lat = np.degrees(np.arctan(np.sinh(y / 6378137)))
    here = {"lon": np.tile(lon, rows), "lat": np.repeat(lat, columns)}
    found = Leaves(tree, cells).locate(tree.cell_at(here, tree.depth))
    expected = np.where(found >= 0, numbers[found], np.nan).reshape(rows, columns)
    if (2 ** tree.level(cells) <= rows).all():  # no cell is smaller than a pixel
        assert np.array_equal(image, expected, equal_nan=True)


@given(st.integers(0, 1000), st.booleans())
def test_cells_smaller_than_a_pixel_are_averaged_by_area(seed: int, nested: bool):
    tree = Quadtree.world(7)
    cells = grown(tree, seed, nested)
    numbers = np.random.default_rng(seed).random(len(cells))
    # Shares on the sheet: what a cell owns of its square, found by counting base cells.
    count = Leaves(tree, cells).total(tree.grid(7).ravel()[np.argsort(tree.grid(7).ravel())], np.ones(4**7, int))
    shapes = SquareCells(tree, cells, count / 4.0 ** (7 - tree.level(cells)))
    coarse, _ = shapes.raster(Viewport.of(WORLD), numbers, 16)
    fine, _ = shapes.raster(Viewport.of(WORLD), numbers, 128)
    assert coarse.shape == (16, 16)
    blocks = fine.reshape(16, 8, 16, 8)
    known = ~np.isnan(blocks)
    mean = np.nansum(blocks, axis=(1, 3)) / known.sum(axis=(1, 3))
    assert np.allclose(coarse, mean, equal_nan=True)


def test_a_view_inside_one_cell_is_all_that_cell():
    tree = Quadtree.world(2)
    image, _ = squares(tree, tree.grid(2).ravel()).raster(
        Viewport.of(Box(10, 10, 10.001, 10.001)), np.arange(16.0), 500
    )
    assert len(np.unique(image)) == 1
    assert max(image.shape) < 1100


def test_a_view_beside_the_tree_is_empty():
    tree = Quadtree.around(Box(5, 45, 8, 47), 3)
    image, _ = squares(tree, tree.root).raster(Viewport.of(Box(-50, 0, -40, 10)), np.ones(1), 100)
    assert image.size == 0


def test_bounds_are_those_of_the_outlines():
    import shapely

    tree = Quadtree.around(Box(5, 45, 8, 47), 3)
    cells = tree.grid(3).ravel()
    west, south, east, north = squares(tree, cells).bounds
    expected = shapely.bounds(tree.outlines(cells))
    assert np.degrees(west / 6378137) == pytest.approx(expected[:, 0])
    assert np.degrees(np.arctan(np.sinh(north / 6378137))) == pytest.approx(expected[:, 3])
    assert (west < east).all()
    assert (south < north).all()
