"""Numbers as a line of cells: every number in the cell that holds it, every cell in one octave and one stretch."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.cells import NOWHERE
from hazemap.errors import InputError, TableError
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.temporal.time_slots import Spans, Weekdays
from hazemap.values.histogram_bins import HALF, LEAST, MOST, FloatGrid, HistogramBins, Log2Bins
from hazemap.values.rows_with_values import RowsWithValues

LINE = FloatGrid()
numbers = st.one_of(st.floats(-(2.0**MOST), 2.0**MOST), st.sampled_from([0.0, 1.0, -1.0, 2.0**LEAST, -(2.0**-31)]))


def cell(value: float) -> int:
    return int(LINE.cells_of(np.array([value]))[0])


@given(numbers)
def test_a_number_lies_between_the_ends_of_its_cell(value):
    at = cell(value)
    low, high = LINE.below(at), LINE.below(at + 1)
    if abs(value) < 2.0**LEAST:
        assert at == HALF + 1
    elif abs(value) < 2.0**MOST * (1 - 1e-12):
        assert low <= value <= high
        assert value < high if value > 0 else low < value


@given(st.lists(numbers, min_size=2, max_size=20))
def test_larger_numbers_have_later_cells(values):
    cells = LINE.cells_of(np.sort(np.array(values)))
    assert (np.diff(cells.astype(np.int64)) >= 0).all()


def test_huge_and_infinite_numbers_are_in_the_outermost_cells_and_missing_ones_nowhere():
    found = LINE.cell_at({"value": np.array([np.inf, 1e300, -np.inf, -1e13, np.nan])}, 0)
    assert found.tolist() == [LINE.size, LINE.size, 1, 1, 0]


def test_edges_never_fall_and_name_their_cells():
    edges = [LINE.below(at) for at in range(1, LINE.size + 2)]
    assert all(a <= b for a, b in pairwise(edges))
    some = LINE.root[::977]
    assert np.array_equal(LINE.named(LINE.names(some)), some)
    assert (LINE.area(some) >= 0).all()


@given(st.lists(numbers, min_size=1, max_size=30))
def test_octaves_and_stretches_hold_every_cell_once(values):
    cells, counts = np.unique(LINE.cells_of(np.array(values)), return_counts=True)
    octaves = Log2Bins(LINE)
    for partition in (octaves, HistogramBins.between(LINE, -3, 64, 16), HistogramBins.between(LINE, 5, 5.0001, 8)):
        assert partition.total(cells, counts).sum() == len(values)
        at = partition.locate(cells)
        assert np.array_equal(np.bincount(at, counts, partition.size), partition.total(cells, counts))
    for value in values:
        at = int(octaves.locate(LINE.cells_of(np.array([value])))[0])
        assert min(abs(value), 2.0**39) <= octaves.upto(at)
        assert at == 0 or abs(value) >= octaves.upto(at - 1)


def test_stretches_between_two_numbers_are_as_wide_as_they_should_be():
    bins = HistogramBins.between(LINE, -64, 64, 32)
    assert bins.size == 34
    assert bins.edges[1:-1].tolist() == np.linspace(-64, 64, 33).tolist()


def test_rows_outside_the_box_or_in_no_slot_lie_nowhere():
    here = FloatGrid(Box(0, 0, 1, 1), Spans("UTC", (0, 10)))
    rows = {"lon": np.array([0.5, 2, 0.5]), "lat": np.full(3, 0.5), "value": np.full(3, 7.0)}
    found = here.cell_at(rows | {"time": np.array([5.0, 5.0, 50.0])}, 0)
    assert (found != NOWHERE).tolist() == [True, False, False]
    with pytest.raises(TableError, match="no time"):
        here.cell_at(rows, 0)
    with pytest.raises(TableError, match="value"):
        LINE.cell_at({"lon": np.zeros(1)}, 0)


def test_cells_with_a_value_are_those_of_the_other_tree():
    tree = Quadtree.around(Box(0, 0, 1, 1), 2)
    rows = {"lon": np.array([0.5, 0.5, 0.5]), "lat": np.full(3, 0.5), "value": np.array([7.0, np.nan, 7.0])}
    timed = RowsWithValues(tree, Weekdays("UTC"))
    found = timed.cell_at(rows | {"time": np.array([0.0, 0.0, np.nan])}, 2)
    assert (found == NOWHERE).tolist() == [False, True, True]
    assert found[0] == tree.cell_at(rows, 2)[0]
    assert np.array_equal(timed.children(timed.root), tree.children(tree.root))
    assert timed.named(timed.names(found[:1])) == found[:1]
    with pytest.raises(TableError, match="no time"):
        timed.cell_at(rows, 2)


def test_what_is_no_partition_of_a_line_is_refused():
    for starts in ((), (2,), (1, 1), (1, LINE.size + 1)):
        with pytest.raises(InputError, match="bins must begin at increasing cells, the first at 1 and"):
            HistogramBins(LINE, starts)
    for wrong in (LINE.children, LINE.parent, LINE.outlines):
        with pytest.raises(InputError):
            wrong(LINE.root[:2])
