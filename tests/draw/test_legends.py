"""Scale bars and graticules: round numbers, in the right place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from hazemap import draw
from hazemap.draw.legends import bar, degrees, draw_graticule, rounds
from hazemap.draw.viewport import Viewport, latitude, longitude, sheet
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


@given(st.floats(-180, 179), st.floats(1e-5, 1).map(lambda share: 360 * share), st.integers(2, 6))
def test_there_are_few_degrees_all_between_the_edges(low: float, size: float, most: int):
    values, decimals = rounds(low, low + size, most)
    assert len(values) <= most
    assert all(low - 1e-9 <= value <= low + size + 1e-9 for value in values)
    assert np.allclose(values, np.round(values, decimals), atol=1e-9)


def test_the_labels_stand_where_their_degrees_are(town):
    panel = draw.draw_map(town).axes[0]
    for place, label in zip(panel.get_xticks(), panel.get_xticklabels(), strict=True):
        assert f"{np.degrees(place / 6378137):.1f}° E" == label.get_text()
    assert panel.get_yticklabels()[0].get_text() == "59.9° N"
    assert len(panel.get_yticks()) >= 2


@pytest.mark.parametrize("edges", [(0.0, 1e-5), (-180.0, 180.0)])
def test_any_size_has_degrees_to_show(edges: tuple[float, float]):
    assert rounds(*edges, 5)[0]


def test_a_view_beyond_the_antimeridian_has_western_longitudes():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    (west, east), (south, north) = sheet(np.array([198.0, 294.0]), np.array([18.0, 68.0]))
    draw_graticule(axes, Viewport(west, south, east, north))
    for place, label in zip(axes.get_xticks(), axes.get_xticklabels(), strict=True):
        assert west < place < east
        assert label.get_text() == f"{360 - np.degrees(place / 6378137):.0f}° W"
