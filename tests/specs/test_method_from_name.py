"""Methods by their names, over the cells and the box that go with them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.algorithms import (
    Adaptive,
    AdaptiveGrid,
    AdaptiveHierarchicalHistogram,
    DensePyramid,
    FittedLevel,
    Flat,
    PrivateBoundingBox,
    PublishedPyramid,
    Pyramid,
    UniformGrid,
)
from hazemap.errors import InputError
from hazemap.lab.methods import HB, CountMin, Geometric, Hierarchical, LaplaceClip, Privlet, TopCells
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.specs.method_from_name import FINEST, among_devices, domain, method_from_name, reach
from hazemap.specs.parsing import HexagonCells, QuadtreeCells
from hazemap.tables.contribution_bounding import AtMostRows, OneVote

PARIS = Box(2.2, 48.8, 2.5, 48.9)


@pytest.mark.parametrize(
    ("name", "method"),
    [
        *(
            ("adaptive", Adaptive),
            ("fitted-level", FittedLevel),
            ("prefix", AdaptiveHierarchicalHistogram),
            ("flat:5", Flat),
        ),
        *(("adaptive-grid", AdaptiveGrid), ("uniform-grid", UniformGrid), ("sketch", CountMin)),
        *(("hierarchical:5", Hierarchical), ("geometric:5", Geometric), ("laplace-clip:5", LaplaceClip)),
        *(("pyramid", Pyramid), ("pyramid:20", Pyramid), ("pyramid-published:20", PublishedPyramid)),
        *(("dense-pyramid", DensePyramid), ("hb:5", HB), ("hb-least:5", HB), ("privlet:5", Privlet)),
        *(("singular:5", Flat), ("total", Flat)),
    ],
)
def test_a_name_gives_its_method_over_the_box_with_the_rule(name, method):
    made = method_from_name(name, QuadtreeCells(None), PARIS, OneVote())
    assert type(made) is method
    assert (made.tree, made.bounding) == (domain(QuadtreeCells(None), PARIS), OneVote())


def test_without_a_box_the_method_waits_for_one_to_be_found():
    for cells, kind in (
        (QuadtreeCells(None), Quadtree),
        (HexagonCells(7, 10), Hexagons),
        (HexagonCells(0, 15), Hexagons),
    ):
        made = method_from_name("fitted-level", cells, None, AtMostRows(1))
        assert isinstance(made, PrivateBoundingBox)
        assert isinstance(made.tree(PARIS), kind)
        assert reach(made) is None


def test_squares_are_about_ten_metres_wide_where_nobody_says_how_deep():
    tree = domain(QuadtreeCells(None), PARIS)
    width = np.sqrt(tree.area(tree.cell_at({"lon": np.array([2.3]), "lat": np.array([48.85])}, tree.depth))[0])
    assert FINEST / 2 < width <= 2 * FINEST


def test_a_flat_map_counts_levels_of_squares_and_resolutions_of_hexagons():
    assert method_from_name("flat:5", QuadtreeCells(None), PARIS, AtMostRows(1)).level == 5
    assert method_from_name("flat", QuadtreeCells(7), PARIS, AtMostRows(1)).level == 7
    assert method_from_name("flat:9", HexagonCells(7, 10), PARIS, AtMostRows(1)).level == 2
    assert method_from_name("flat", HexagonCells(7, 10), PARIS, AtMostRows(1)).level == 3


def test_one_count_is_of_everything():
    assert method_from_name("total", QuadtreeCells(None), PARIS, AtMostRows(1)).level == 0


def test_methods_of_one_level_wait_for_a_box_too():
    for name in ("hb", "hb-least", "privlet", "singular"):
        assert method_from_name(f"{name}:7", QuadtreeCells(None), None, AtMostRows(1)).tree(PARIS).depth >= 7
    with pytest.raises(InputError, match="rows and columns"):
        method_from_name("privlet", HexagonCells(7, 10), PARIS, AtMostRows(1))


def test_maps_of_many_levels_are_told_their_finest():
    for name in ("hierarchical", "geometric"):
        assert method_from_name(f"{name}:5", QuadtreeCells(None), PARIS, AtMostRows(1)).level == 5
        assert method_from_name(name, HexagonCells(7, 10), PARIS, AtMostRows(1)).level == 3
        with pytest.raises(InputError, match=f"say how fine the {name} map should be"):
            method_from_name(name, QuadtreeCells(None), PARIS, AtMostRows(1))
        assert method_from_name(f"{name}:4", QuadtreeCells(None), None, AtMostRows(1)).tree(PARIS).depth >= 4


def test_a_part_of_the_cells_is_named_in_per_cent_and_cells_of_a_level_by_their_number():
    top = method_from_name("top:0.01", QuadtreeCells(7), PARIS, OneVote())
    assert (type(top), top.level, top.kept) == (TopCells, 7, Fraction(1, 10_000))
    assert method_from_name("top:25", HexagonCells(7, 9), PARIS, OneVote()).kept == Fraction(1, 4)
    assert method_from_name("pyramid:20", QuadtreeCells(None), None, OneVote()).method.kept == 20
    assert method_from_name("pyramid", QuadtreeCells(None), PARIS, OneVote()).kept is None
    assert method_from_name("pyramid-published:5", QuadtreeCells(None), PARIS, OneVote()).kept == 5
    with pytest.raises(InputError, match="quadtree:LEVEL"):
        method_from_name("top:1", QuadtreeCells(None), PARIS, OneVote())
    for wrong in ("top:", "top:0", "top:101", "top:1e3", "pyramid:0", "pyramid:x", "dense-pyramid:3"):
        with pytest.raises(InputError):
            method_from_name(wrong, QuadtreeCells(7), PARIS, OneVote())


def test_a_grid_cuts_no_hexagons():
    with pytest.raises(InputError, match="squares of a quadtree only"):
        method_from_name("adaptive-grid", HexagonCells(7, 10), PARIS, AtMostRows(1))


def test_a_flat_map_finer_than_ten_metres_deepens_the_tree():
    assert (
        method_from_name("flat:12", QuadtreeCells(None), Box(2.3, 48.85, 2.31, 48.86), AtMostRows(1)).tree.depth == 12
    )


@pytest.mark.parametrize(
    "name",
    ["", "Adaptive", "flat:", "flat:x", "flat:123", "uniform-grid:3", "adaptive:", "grid", "uniform"],
)
def test_other_methods_are_refused_with_the_choices(name):
    with pytest.raises(InputError, match=r"a method is one of: auto, |the method [a-z-]+ is spelled "):
        method_from_name(name, QuadtreeCells(None), PARIS, AtMostRows(1))


@given(st.floats(-170, 160), st.floats(-80, 80), st.floats(0.01, 10), st.floats(0.01, 4), st.sampled_from([0, 3, 5]))
def test_the_reach_of_a_method_holds_every_corner_of_its_cells(west, south, width, height, coarsest):
    box = Box(west, south, west + width, min(south + height, 84.0))
    for cells in (QuadtreeCells(6), HexagonCells(coarsest, coarsest + 1)):
        method = method_from_name("adaptive", cells, box, AtMostRows(1))
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
    made = among_devices(method_from_name("adaptive", QuadtreeCells(None), box, OneVote()), 3_000)
    inner = made.method if isinstance(made, PrivateBoundingBox) else made
    assert (inner.most_numbers, inner.bounding) == (3_000, OneVote())
    assert isinstance(made, PrivateBoundingBox) == (box is None)
    other = method_from_name("uniform-grid", QuadtreeCells(None), box, OneVote())
    assert among_devices(other, 3_000) is other
