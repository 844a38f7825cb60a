import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap import draw
from hazemap.draw.graticule import draw_graticule, rounds
from hazemap.draw.map_projection import sheet
from hazemap.draw.viewport import Viewport


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
