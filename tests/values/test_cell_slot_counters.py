"""Value encodings, and cells times slots."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.cells import NOWHERE, Leaves
from hazemap.errors import InputError, TableError
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.temporal.time_slots import Always, Clock
from hazemap.values.cell_slot_counters import RUN, CellTimeSlots
from hazemap.values.value_encoding import STEPS, ValueEncoding

VALUE_ENCODINGS = [
    ValueEncoding(0, 65),
    ValueEncoding(-5, 5, degree=2),
    ValueEncoding(0, 1, 1, (4, 4), (10, 9, 2)),
    ValueEncoding(0, 1, 2, (7,), (3, 2)),
]
SQUARE = Quadtree.around(Box(0.0, 0.0, 1.0, 1.0), 3)
CELLS = Leaves.at_level(SQUARE, 2)


@pytest.mark.parametrize("value_encoding", VALUE_ENCODINGS, ids=repr)
def test_every_reading_is_shared_out_whole_and_nothing_is_negative(value_encoding):
    assert value_encoding.parts.min() == 0
    assert (value_encoding.parts.sum(axis=1) == value_encoding.scale).all()
    moments = value_encoding.parts[:, : value_encoding.degree + 1].sum(axis=1)
    assert (moments == value_encoding.scales[0]).all()


@pytest.mark.parametrize("value_encoding", VALUE_ENCODINGS, ids=repr)
def test_the_parts_give_the_value_and_its_square_back(value_encoding):
    y = np.arange(STEPS + 1) / STEPS
    moments = value_encoding.parts[:, : value_encoding.degree + 1] / value_encoding.scales[0]
    assert np.allclose(moments @ np.linspace(0, 1, value_encoding.degree + 1), y, atol=1e-12)
    if value_encoding.degree == 2:
        assert np.allclose(moments[:, 2], y**2, atol=1e-12)


@given(st.floats(0, 65), st.integers(2, 32), st.integers(2, 32))
def test_a_value_lies_between_the_edges_of_its_bins(value, first, further):
    value_encoding = ValueEncoding(0, 65, branchings=(first, further))
    [reading] = value_encoding.quantizer.read(np.array([value]))
    counter, found = 2, []
    for level, size in enumerate(value_encoding.levels, 1):
        parts = value_encoding.parts[reading, counter : counter + size]
        [at] = np.flatnonzero(parts)
        edges = value_encoding.edges(level)
        assert edges[at] - 1e-12 <= value <= edges[at + 1] + 1e-12  # a tie may be read either way
        found, counter = [*found, int(at)], counter + size
    assert found[1] // further == found[0]


@pytest.mark.parametrize(
    "wrong",
    [(0, 0), (1, 0), (0, np.inf), (0, 1, 3), (0, 1, 1, (1,)), (0, 1, 1, (4,), (0, 1)), (0, 1, 1, (4, 4), (2, 1)),
     (0, 1, 1, (16, 65)), (0, 1, 1, (2,) * 200_000), (0, 1, 1, (4, 1)), (0, 1, 1, (4,), (1, 65))],
    ids=str,
)  # fmt: skip
def test_value_encodings_that_cannot_be_are_refused(wrong):
    with pytest.raises(InputError):
        ValueEncoding(*wrong)


def test_rows_lie_in_their_cell_slot_and_reading_and_others_nowhere():
    tree = CellTimeSlots(CELLS, Clock.hours("UTC"), ValueEncoding(0, 100))
    lon, lat = np.array([0.1, 0.1, 0.1, np.nan, 50.0, 0.1, 0.1]), np.full(7, 0.1)
    value = np.array([50.0, -3, np.inf, 5, 5, np.nan, 7])
    time = np.array([3 * 3600.0, 0, 86399, 0, 0, 0, np.nan])
    rows = tree.rows({"lon": lon, "lat": lat, "value": value, "time": time})
    cell = CELLS.locate(SQUARE.cell_at({"lon": lon[:1], "lat": lat[:1]}, SQUARE.depth))[0]
    wanted = [1 + (cell * 24 + slot) * RUN + reading for slot, reading in ((3, STEPS // 2), (0, 0), (23, STEPS))]
    assert rows.tolist() == [*wanted, NOWHERE, NOWHERE, NOWHERE, NOWHERE]


def test_counters_are_numbered_by_cell_then_slot_then_part_and_have_names():
    tree = CellTimeSlots(CELLS, Clock("UTC", (0, 43200)), ValueEncoding(0, 100))
    assert tree.size == len(tree.root) == 16 * 2 * 2
    names = tree.names(tree.root)
    assert len(set(names)) == tree.size
    assert names[5] == f"{SQUARE.names(CELLS.cells[1:2])[0]} 00:00-12:00 1"
    assert np.array_equal(tree.named(names[3:9]), tree.root[3:9])
    assert tree.area(tree.root[:1]) == SQUARE.area(CELLS.cells[:1])
    assert (tree.level(tree.root) == 0).all()
    assert tree.outlines(tree.root[4:5])[0].equals(SQUARE.outlines(CELLS.cells[1:2])[0])


def test_what_makes_no_sense_is_refused():
    tree = CellTimeSlots(CELLS, Clock.hours("UTC"), ValueEncoding(0, 100))
    place = {"lon": np.zeros(1), "lat": np.zeros(1)}
    for refused in (tree.children, tree.parent):
        with pytest.raises(InputError):
            refused(tree.root)
    with pytest.raises(InputError, match="OwnMeans"):
        tree.cell_at(place, 0)
    with pytest.raises(InputError):
        tree.named(["nonsense"])
    with pytest.raises(TableError, match="no value"):
        tree.rows(place)
    with pytest.raises(TableError, match="no time"):
        tree.rows({**place, "value": np.zeros(1)})
    with pytest.raises(InputError, match="NOWHERE"):
        CellTimeSlots(Leaves(SQUARE, np.array([NOWHERE])), Always(), ValueEncoding(0, 1))
    fine = Leaves.at_level(Hexagons(Box(0.0, 0.0, 20.0, 20.0), 6, 6), 0)
    with pytest.raises(InputError, match="choose coarser cells or fewer slots"):
        CellTimeSlots(fine, Clock.hours("UTC"), ValueEncoding(0, 1, 2, (64,)))
