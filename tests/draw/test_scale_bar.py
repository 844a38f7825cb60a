import numpy as np
import pytest
from matplotlib.figure import Figure

from hazemap import draw
from hazemap.draw.map_projection import latitude, longitude
from hazemap.draw.scale_bar import bar, degrees
from hazemap.draw.viewport import Viewport
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree


@pytest.mark.parametrize("south", [-0.1, 39.9, 59.9, -60.1])
def test_the_bar_is_as_long_on_the_ground_as_it_says(make, south: float):
    from pyproj import Geod

    tree = Quadtree.around(Box(10, south, 10.2, south + 0.2), 4)
    figure: Figure = draw.draw_map(make(tree, tree.grid(4).ravel(), 5.0))
    panel = figure.axes[0]
    (line,) = [line for line in panel.lines if line.get_gid() == "scalebar"]
    west, east = np.min(line.get_xdata()), np.max(line.get_xdata())
    middle = latitude(sum(panel.get_ylim()) / 2)
    along = Geod(ellps="WGS84").inv(longitude(west), middle, longitude(east), middle)[2]
    label = next(text.get_text() for text in panel.texts if text.get_text().endswith("km"))
    assert along == pytest.approx(1000 * float(label.removesuffix(" km")), rel=1e-4)


def test_a_bar_across_many_latitudes_names_the_one_it_is_true_at():
    assert bar(Viewport.of(Box(-10, 30, 30, 65)))[1].endswith("at 51° N")
    assert "at" not in bar(Viewport.of(Box(10, 50, 10.1, 50.1)))[1]


@pytest.mark.parametrize(("size", "label"), [(0.001, "20 m"), (0.01, "200 m"), (0.1, "2 km"), (5, "100 km")])
def test_the_bar_is_a_round_length_of_at_most_a_quarter(size: float, label: str):
    assert bar(Viewport.of(Box(10, 0, 10 + size, size)))[1] == label


def test_degrees_are_written_with_their_side():
    assert [degrees(v, "N", "S", 1) for v in (40.72, -33.94, 0.01)] == ["40.7° N", "33.9° S", "0.0°"]
