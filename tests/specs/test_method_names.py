"""Methods by their names, over the cells and the box that go with them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.algorithms import (
    HB,
    Adaptive,
    AdaptiveGrid,
    CountMin,
    DensePyramid,
    FittedLevel,
    Flat,
    FoundBox,
    Geometric,
    Hierarchical,
    LaplaceClip,
    PrefixTree,
    Privlet,
    PublishedPyramid,
    Pyramid,
    TopCells,
    UniformGrid,
)
from hazemap.domains import Box, Hexagons, Quadtree
from hazemap.errors import InputError
from hazemap.specs.method_names import FINEST, among_devices, domain, reach, way
from hazemap.specs.parsing import Hexes, Squares
from hazemap.tables import AtMostRows, OneVote

PARIS = Box(2.2, 48.8, 2.5, 48.9)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *(("adaptive", Adaptive), ("fitted-level", FittedLevel), ("prefix", PrefixTree), ("flat:5", Flat)),
        *(("adaptive-grid", AdaptiveGrid), ("uniform-grid", UniformGrid), ("sketch", CountMin)),
        *(("hierarchical:5", Hierarchical), ("geometric:5", Geometric), ("laplace-clip:5", LaplaceClip)),
        *(("pyramid", Pyramid), ("pyramid:20", Pyramid), ("pyramid-published:20", PublishedPyramid)),
        *(("dense-pyramid", DensePyramid), ("hb:5", HB), ("hb-least:5", HB), ("privlet:5", Privlet)),
        *(("singular:5", Flat), ("total", Flat)),
    ],
)
def test_a_name_gives_its_method_over_the_box_with_the_rule(name, method):
    made = way(name, Squares(None), PARIS, OneVote())
    assert type(made) is method
    assert (made.tree, made.bounding) == (domain(Squares(None), PARIS), OneVote())


def test_without_a_box_the_method_waits_for_one_to_be_found():
    for cells, kind in ((Squares(None), Quadtree), (Hexes(7, 10), Hexagons), (Hexes(0, 15), Hexagons)):
        made = way("fitted-level", cells, None, AtMostRows(1))
        assert isinstance(made, FoundBox)
        assert isinstance(made.tree(PARIS), kind)
        assert reach(made) is None


def test_squares_are_about_ten_metres_wide_where_nobody_says_how_deep():
    tree = domain(Squares(None), PARIS)
    width = np.sqrt(tree.area(tree.cell_at({"lon": np.array([2.3]), "lat": np.array([48.85])}, tree.depth))[0])
    assert FINEST / 2 < width <= 2 * FINEST


def test_a_flat_map_counts_levels_of_squares_and_resolutions_of_hexagons():
    assert way("flat:5", Squares(None), PARIS, AtMostRows(1)).level == 5
    assert way("flat", Squares(7), PARIS, AtMostRows(1)).level == 7
    assert way("flat:9", Hexes(7, 10), PARIS, AtMostRows(1)).level == 2
    assert way("flat", Hexes(7, 10), PARIS, AtMostRows(1)).level == 3


def test_one_count_is_of_everything():
    assert way("total", Squares(None), PARIS, AtMostRows(1)).level == 0


def test_methods_of_one_level_wait_for_a_box_too():
    for name in ("hb", "hb-least", "privlet", "singular"):
        assert way(f"{name}:7", Squares(None), None, AtMostRows(1)).tree(PARIS).depth >= 7
    with pytest.raises(InputError, match="rows and columns"):
        way("privlet", Hexes(7, 10), PARIS, AtMostRows(1))


def test_maps_of_many_levels_are_told_their_finest():
    for name in ("hierarchical", "geometric"):
        assert way(f"{name}:5", Squares(None), PARIS, AtMostRows(1)).level == 5
        assert way(name, Hexes(7, 10), PARIS, AtMostRows(1)).level == 3
        with pytest.raises(InputError, match=f"how fine shall a {name} map be"):
            way(name, Squares(None), PARIS, AtMostRows(1))
        assert way(f"{name}:4", Squares(None), None, AtMostRows(1)).tree(PARIS).depth >= 4


def test_a_part_of_the_cells_is_named_in_per_cent_and_cells_of_a_level_by_their_number():
    top = way("top:0.01", Squares(7), PARIS, OneVote())
    assert (type(top), top.level, top.kept) == (TopCells, 7, Fraction(1, 10_000))
    assert way("top:25", Hexes(7, 9), PARIS, OneVote()).kept == Fraction(1, 4)
    assert way("pyramid:20", Squares(None), None, OneVote()).method.kept == 20
    assert way("pyramid", Squares(None), PARIS, OneVote()).kept is None
    assert way("pyramid-published:5", Squares(None), PARIS, OneVote()).kept == 5
    with pytest.raises(InputError, match="quadtree:LEVEL"):
        way("top:1", Squares(None), PARIS, OneVote())
    for wrong in ("top:", "top:0", "top:101", "top:1e3", "pyramid:0", "pyramid:x", "dense-pyramid:3"):
        with pytest.raises(InputError):
            way(wrong, Squares(7), PARIS, OneVote())


def test_a_grid_cuts_no_hexagons():
    with pytest.raises(InputError, match="rectangles of its own"):
        way("adaptive-grid", Hexes(7, 10), PARIS, AtMostRows(1))


def test_a_flat_map_finer_than_ten_metres_deepens_the_tree():
    assert way("flat:12", Squares(None), Box(2.3, 48.85, 2.31, 48.86), AtMostRows(1)).tree.depth == 12


@pytest.mark.parametrize(
    "name",
    ["", "Adaptive", "flat:", "flat:x", "flat:123", "uniform-grid:3", "adaptive:", "grid", "uniform"],
)
def test_other_methods_are_refused_with_the_choices(name):
    with pytest.raises(InputError, match="a method is one of: auto, "):
        way(name, Squares(None), PARIS, AtMostRows(1))


@given(st.floats(-170, 160), st.floats(-80, 80), st.floats(0.01, 10), st.floats(0.01, 4), st.sampled_from([0, 3, 5]))
def test_the_reach_of_a_method_holds_every_corner_of_its_cells(west, south, width, height, coarsest):
    box = Box(west, south, west + width, min(south + height, 84.0))
    for cells in (Squares(6), Hexes(coarsest, coarsest + 1)):
        method = way("adaptive", cells, box, AtMostRows(1))
        around = reach(method)
        corners = np.array([[box.west, box.south], [box.east, box.north], [box.west, box.north]])
        assert ((around.west - 1e-6 <= corners[:, 0]) & (corners[:, 0] <= around.east + 1e-6)).all()
        lon, lat = np.meshgrid(np.linspace(-179.9, 179.9, 41), np.linspace(-84, 84, 21))
        columns = {"lon": lon.ravel(), "lat": lat.ravel()}
        held = method.tree.cell_at(columns, method.tree.depth) != 0
        assert (columns["lon"][held] >= around.west).all()
        assert (columns["lon"][held] <= around.east).all()
        assert (columns["lat"][held] >= around.south).all()
        assert (columns["lat"][held] <= around.north).all()


@pytest.mark.parametrize("box", [PARIS, None], ids=["a box", "none"])
def test_devices_are_asked_for_so_many_numbers_and_no_more(box):
    made = among_devices(way("adaptive", Squares(None), box, OneVote()), 3_000)
    inner = made.method if isinstance(made, FoundBox) else made
    assert (inner.most_numbers, inner.bounding) == (3_000, OneVote())
    assert isinstance(made, FoundBox) == (box is None)
    other = way("uniform-grid", Squares(None), box, OneVote())
    assert among_devices(other, 3_000) is other
