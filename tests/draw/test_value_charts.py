"""Small maps for every slot, and profiles."""

import numpy as np
import pytest

from hazemap.cells import Leaves
from hazemap.draw import encode
from hazemap.draw.colour_scales import UNKNOWN, ValueScale
from hazemap.draw.value_charts import draw_profile, draw_slots
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.temporal.time_slots import Always, Clock, Spans
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.value_encoding import ValueEncoding

BOX = Box(13.2, 52.4, 13.6, 52.6)
TREES = {
    "squares": Leaves.at_level(Quadtree.around(BOX, 3), 3),
    "hexagons": Leaves.at_level(Hexagons(BOX, 6, 6), 0),
}


@pytest.mark.parametrize("cells", TREES.values(), ids=TREES.keys())
def test_every_slot_has_a_map_and_unknown_cells_are_grey(cells):
    tree = CellTimeSlots(cells, Clock("UTC", (0, 21600, 43200, 64800)), ValueEncoding(0, 60))
    values = np.linspace(10, 30, tree.places)
    values[::3] = np.nan
    figure = draw_slots(tree, values, unit="mean of speed", title="Speed", caption="Private.", width=6)
    labels = [axes.get_label() for axes in figure.axes]
    assert [label for label in labels if "legend" not in label] == list(tree.slots.names)
    assert "mean of speed" in [text.get_text() for text in figure.texts]
    picture = encode(figure)
    assert picture.startswith(b"\x89PNG") and len(picture) > 5000


def test_a_map_of_nothing_known_is_grey_and_possible():
    tree = CellTimeSlots(TREES["hexagons"], Always(), ValueEncoding(0, 60))
    assert len(encode(draw_slots(tree, np.full(tree.places, np.nan)))) > 2000


def test_a_scale_leaves_out_the_outermost_values_and_knows_no_value():
    values = np.append(np.linspace(10, 20, 1000), [1e6, np.nan])
    scale = ValueScale.of(values)
    assert 9.9 < scale.low < 10.3 and 19.7 < scale.high < 20.1
    grey = tuple(int(UNKNOWN[at : at + 2], 16) for at in (1, 3, 5))
    assert tuple(scale.colours(np.array([np.nan]))[0, :3]) == grey
    alone = ValueScale.of(np.array([5.0]))
    assert alone.low < 5 < alone.high


def test_a_profile_shows_values_bands_and_what_is_unknown():
    values, low, high = np.array([20.0, np.nan, 25, 30]), np.array([18.0, 0, 22, 29]), np.array([22.0, 60, 28, 31])
    figure = draw_profile(("a", "b", "c", "d"), values, low, high, bounds=(0, 60), unit="speed", caption="Private.")
    axes = next(axes for axes in figure.axes if axes.get_label() == "profile")
    bottom, top = axes.get_ylim()
    assert 16 < bottom < 18 and 31 < top < 33
    assert len(axes.patches) == 4
    assert any("too few people" in text.get_text() for text in figure.texts)
    assert encode(figure, ".svg").startswith(b"<?xml")


def test_a_profile_of_nothing_known_runs_over_the_bounds():
    nothing = np.full(3, np.nan)
    figure = draw_profile(("a", "b", "c"), nothing, np.zeros(3), np.full(3, 60.0), bounds=(0, 60))
    axes = next(axes for axes in figure.axes if axes.get_label() == "profile")
    assert axes.get_ylim() == (0, 60)
    assert len(encode(figure)) > 2000


def test_pictures_that_cannot_be_are_refused():
    hours = Spans.every(3600, "UTC", "2020-01-01", "2020-01-04")
    tree = CellTimeSlots(TREES["squares"], hours, ValueEncoding(0, 60))
    with pytest.raises(InputError, match="profiles"):
        draw_slots(tree, np.zeros(tree.places))
    small = CellTimeSlots(TREES["squares"], Always(), ValueEncoding(0, 60))
    with pytest.raises(InputError, match="wide"):
        draw_slots(small, np.zeros(small.places), width=1)
    with pytest.raises(InputError, match="wide"):
        draw_profile(("a",), np.zeros(1), np.zeros(1), np.ones(1), bounds=(0, 1), width=1)


def test_differences_that_noise_explains_are_no_differences_of_colour():
    values = np.array([20.0, 20.4, np.nan])
    assert ValueScale.of(values, noise=1.0) == ValueScale(pytest.approx(18.2), pytest.approx(22.2))
    assert ValueScale.of(values).high - ValueScale.of(values).low < 0.41
    assert ValueScale.of(values[2:], (0.0, 30.0), noise=1.0) == ValueScale(0.0, 30.0)


@pytest.mark.parametrize("slots", [Always(), Clock("UTC", (0, 21600, 43200, 64800))], ids=["one slot", "four slots"])
def test_with_errors_a_last_map_shows_how_sure_each_cell_is(slots):
    tree = CellTimeSlots(TREES["squares"], slots, ValueEncoding(0, 60))
    values = np.linspace(10, 30, tree.places)
    errors = np.where(np.arange(tree.places) % 7 == 0, np.nan, 4.0)
    values[np.isnan(errors)] = np.nan
    figure = draw_slots(tree, values, errors=errors)
    names = [axes.get_label() for axes in figure.axes if "legend" not in axes.get_label()]
    assert names == [*tree.slots.names, "uncertainty"]
    assert any("share of the colour scale" in text.get_text().replace("\n", " ") for text in figure.texts)
    assert len(encode(figure)) > 5000
    plain = draw_slots(tree, values, errors=errors, uncertainty=False)
    assert [axes.get_label() for axes in plain.axes if "legend" not in axes.get_label()] == list(tree.slots.names)
