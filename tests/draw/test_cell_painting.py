"""Cells on the sheet: squares as an image, other cells as polygons."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap import draw
from hazemap.cells import Leaves
from hazemap.draw.cell_painting import PolygonCells, SquareCells
from hazemap.draw.viewport import Viewport
from hazemap.spatial.bounding_box import WORLD, Box
from hazemap.spatial.h3_hexagons import Hexagons
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


@pytest.fixture(scope="module")
def hexagons() -> Hexagons:
    return Hexagons(Box(10.3, 59.8, 11.1, 60.2), 5, 8)


def test_hexagons_lie_where_their_outlines_are(hexagons):
    import shapely

    bounds = PolygonCells(hexagons, hexagons.root).bounds
    expected = shapely.bounds(hexagons.outlines(hexagons.root))
    assert np.degrees(bounds[0] / 6378137) == pytest.approx(expected[:, 0])
    assert np.degrees(bounds[2] / 6378137) == pytest.approx(expected[:, 2])


def test_a_dense_hexagon_is_darker_than_a_sparse_one(make, hexagons, pixel):
    cells = hexagons.root
    values = np.full(len(cells), 10.0)
    values[len(cells) // 2] = 10_000
    figure = draw.draw_map(make(hexagons, cells, values), box=Box(10.0, 59.6, 11.4, 60.4))
    bounds = np.array(PolygonCells(hexagons, cells).bounds)
    middle = np.stack([(bounds[0] + bounds[2]) / 2, (bounds[1] + bounds[3]) / 2], axis=1)
    inside = np.flatnonzero((np.abs(middle - middle.mean(axis=0)) < 30_000).all(axis=1))
    sparse = next(i for i in inside if i != len(cells) // 2)
    dark = pixel(figure, "density", *middle[len(cells) // 2])
    assert dark.sum() < pixel(figure, "density", *middle[sparse]).sum() - 200


def test_no_paper_shows_where_levels_meet(make, hexagons):
    """Between hexagons of two levels their outlines leave slivers: an ancestor is painted under them."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    split = len(hexagons.root) // 2
    cells = np.concatenate([np.delete(hexagons.root, split), hexagons.children(hexagons.root[split : split + 1])])
    cellmap = make(hexagons, cells, hexagons.area(cells) / 1e6)
    box = Box(10.5, 59.9, 10.9, 60.1)
    figure = draw.draw_map(cellmap, box=box, cell_lines=0, panels=[draw.MapPanel.DENSITY], base=False)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    left, bottom, right, top = (round(v) for v in figure.axes[0].get_window_extent().extents)
    image = np.asarray(canvas.buffer_rgba())[::-1][bottom + 9 : top - 9, left + 9 : right - 9, :3].astype(int)
    assert np.abs(image - image[0, 0]).max() < 20


def test_the_mean_colour_lies_under_slivers_of_three_levels(make, hexagons):
    first = hexagons.children(hexagons.root[:1])
    cells = np.concatenate([hexagons.root[1:], first[1:], hexagons.children(first[:1])])
    cell, above = PolygonCells(hexagons, cells)._ancestors
    assert set(above.tolist()) == {int(hexagons.root[0]), int(first[0])}
    assert len(cell) == len(first) - 1 + 2 * len(hexagons.children(first[:1]))


def test_hexagons_across_the_antimeridian_lie_side_by_side(make):
    tree = Hexagons(Box(177, -20, 180, -15), 3, 4)
    figure = draw.draw_map(make(tree, tree.root, 100.0))
    west, east = figure.axes[0].get_xlim()
    assert np.degrees((east - west) / 6378137) < 20


def test_one_hexagon_is_a_picture(make, hexagons):
    assert draw.encode(draw.draw_map(make(hexagons, hexagons.root[:1], 7.0), width=5))[:4] == b"\x89PNG"


def test_an_outline_with_many_corners_is_drawn_beside_simple_ones(make):
    import shapely

    class Districts(Hexagons):
        def outlines(self, cells):
            shapes = super().outlines(cells)
            shapes[0] = shapely.segmentize(shapes[0], 1e-4)
            return shapes

    tree = Districts(Box(10.3, 59.8, 11.1, 60.2), 5, 6)
    assert PolygonCells(tree, tree.root).pieces[0].dtype == object
    assert draw.encode(draw.draw_map(make(tree, tree.root, 7.0), width=5))
