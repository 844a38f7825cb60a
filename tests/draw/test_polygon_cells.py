import numpy as np
import pytest

from hazemap import draw
from hazemap.draw.polygon_cells import PolygonCells
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons


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
    figure = draw.draw_map(cellmap, box=box, cell_lines=0, panels=[draw.MapPanel.DENSITY])
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
