"""Counts of marks in slots: sensitivities by brute force over neighbours, under every rule; engine against memory."""

from itertools import combinations_with_replacement, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap import codec
from hazemap.cells import NOWHERE, Leaves, WholeDomain
from hazemap.encoders import Counts, total
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.federated.trust.device_tasks import askable
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, RowIsPerson
from hazemap.temporal.time_slots import Clock
from hazemap.values.boolean_attribute import AttributeCells, BinaryAttribute
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.marks import Marks
from hazemap.values.sides_in_slots import SidesInSlots, check_room
from hazemap.values.timed_tree import TimedTree

SQUARE, HEXAGONS = Quadtree.around(Box(0.0, 0.0, 1.0, 1.0), 2), Hexagons(Box(0.0, 0.0, 1.0, 1.0), 3, 5)
HALVES = Clock("UTC", (0, 43200))
RULES = [AtMostRows(1), AtMostRows(2), AtMostCells(1), AtMostCells(2), OneVote(5), RowIsPerson()]
ROWS = list(product((1, 2), (0.1, 0.9, 7.0), (0.0, 50000.0, np.nan), (0.0, 1.0, 2.0)))


def encoders(tree, rule, sides=None) -> list[Counts]:
    timed, cells = TimedTree(tree, HALVES), Leaves.at_level(tree, 1)
    return [Counts(SidesInSlots(kind(timed, cells), sides), rule) for kind in (EachSlot, AllSlots)]


ENCODERS = [
    pytest.param(
        encoder,
        id=f"{type(encoder.cells.places).__name__} {type(tree).__name__} {sides} {rule!r}",
        marks=[] if tree is SQUARE and not sides and at == 0 else [pytest.mark.slow],
    )
    for tree in (SQUARE, HEXAGONS)
    for sides in (None, 3)
    for rule in RULES
    for at, encoder in enumerate(encoders(tree, rule, sides))
]
every_encoder = pytest.mark.parametrize("encoder", ENCODERS)


def table(chosen, key: int = 0) -> MemoryTable:
    who, lon, time, mark = np.array(chosen, dtype=np.float64).reshape(-1, 4).T
    columns = {"lon": lon, "lat": np.full(len(lon), 0.4), "time": time, "mark": mark}
    return MemoryTable(who.astype(np.int64), columns, key)


def moved(rows: MemoryTable, encoder: Counts) -> tuple[int, int]:
    """The most that any neighbour moves the sums, in L1 and L2 squared: without a person, or a row that is one."""
    whole, alone = encoder.total(rows), isinstance(encoder.bounding, RowIsPerson)
    assert np.array_equal(whole, total(encoder, rows))
    units = np.arange(len(rows.person)) if alone else rows.person
    far = []
    for unit in np.unique(units):
        kept = units != unit
        columns = {of: column[kept] for of, column in rows.columns.items()}
        far.append(np.abs(whole - encoder.total(MemoryTable(rows.person[kept], columns, rows.key))))
    far = far or [whole * 0]
    return max(int(each.sum()) for each in far), max(int((each**2).sum()) for each in far)


@every_encoder
def test_no_person_of_any_tiny_table_moves_the_sums_by_more_and_some_move_them_so_far(encoder):
    """All tables of one or two rows, wherever, whenever and however marked; and of four rows of one person."""
    tables = [table(rows) for size in (1, 2) for rows in combinations_with_replacement(ROWS[: len(ROWS) // 2], size)]
    tables += [table([(1, 0.1, 0.0, 0.0), (2, 0.9, 50000.0, 1.0)]), table([(1, 0.1, 0.0, 1.0), (1, 0.3, 0.0, 1.0)])]
    tables += [
        table([(1, lon, time, mark)] * 4) for lon in (0.1, 0.9) for time in (0.0, 50000.0) for mark in (0.0, 1.0)
    ]
    found = np.array([moved(rows, encoder) for rows in tables])
    assert found[:, 0].max() == encoder.sensitivity.l1
    assert found[:, 1].max() <= encoder.sensitivity.l2_squared
    if encoder.cells.tree.tree.tree is SQUARE:  # two base cells of it are in one cell
        assert found[:, 1].max() == encoder.sensitivity.l2_squared


@every_encoder
@settings(max_examples=5, deadline=None)
@given(chosen=st.lists(st.sampled_from(ROWS), max_size=9), key=st.integers(0, 2**64))
def test_no_person_moves_the_sums_by_more_than_the_sensitivity(encoder, chosen, key):
    far = moved(table(chosen, key), encoder)
    assert far[0] <= encoder.sensitivity.l1 and far[1] <= encoder.sensitivity.l2_squared


@pytest.mark.parametrize("rule", [AtMostRows(2), AtMostCells(2), OneVote(5), RowIsPerson()], ids=str)
@pytest.mark.parametrize("tree", [SQUARE, HEXAGONS], ids=["squares", "hexagons"])
def test_the_engine_counts_what_memory_counts(tree, rule):
    luck = np.random.default_rng(1)
    rows = table([ROWS[at] for at in luck.integers(0, len(ROWS), 300)], 9)
    moments = [None if np.isnan(time) else round(time * 1e6) for time in rows.columns["time"].tolist()]
    columns = {"user": rows.person, "lon": rows.columns["lon"], "lat": rows.columns["lat"]}
    columns |= {"status": rows.columns["mark"], "ts": pa.array(moments, pa.timestamp("us"))}
    marks = Marks.of("status=1", "status=2")
    engine = open_table(pa.table(columns), key=9, timed=True, mark=marks, threads=1)
    for encoder in encoders(tree, rule, marks.sides):
        assert np.array_equal(encoder.total(engine), encoder.total(rows)) and encoder.total(rows).sum() > 0


def test_marks_in_slots_are_cut_out_of_slots_and_out_of_marks():
    """Summed over sides they are the counts in slots, summed over slots those of marks, of rows that have both."""
    luck = np.random.default_rng(2)
    rows = table([(n, *ROWS[at][1:]) for n, at in enumerate(luck.integers(0, len(ROWS), 400).tolist())])
    known = np.isfinite(rows.columns["time"]) & (rows.columns["mark"] < 2)
    both = MemoryTable(rows.person[known], {name: column[known] for name, column in rows.columns.items()})
    each, every = (encoder.total(rows) for encoder in encoders(SQUARE, AtMostRows(1)))
    cells, timed = Leaves.at_level(SQUARE, 1), TimedTree(SQUARE, HALVES)
    numbers = each.reshape(2, cells.size, 2)
    assert np.array_equal(numbers.sum(axis=2).ravel(), every)
    assert np.array_equal(every, Counts(AttributeCells(cells), AtMostRows(1)).total(both))
    assert np.array_equal(numbers.sum(axis=0).ravel(), Counts(EachSlot(timed, cells), AtMostRows(1)).total(both))


def test_it_travels_and_no_device_answers_it_yet():
    for sides in (None, 6):
        for encoder in encoders(SQUARE, AtMostRows(1), sides):
            assert codec.loads(codec.dumps(encoder)) == encoder and not askable(encoder)


@pytest.mark.parametrize("sides", [0, 1, 2, 9, -3, True, 3.0])
def test_a_number_of_sides_that_is_none_is_refused(sides):
    with pytest.raises(InputError):
        SidesInSlots(EachSlot(TimedTree(SQUARE, HALVES), Leaves.at_level(SQUARE, 1)), sides)


def test_what_cannot_be_counted_is_refused():
    timed, cells = TimedTree(SQUARE, HALVES), Leaves.at_level(SQUARE, 1)
    for places in (
        AllSlots(timed, Leaves(SQUARE, np.append(cells.cells, NOWHERE))),
        EachSlot(timed, WholeDomain(SQUARE)),
    ):
        with pytest.raises(InputError, match="cells that are listed"):
            SidesInSlots(places)
    many = TimedTree(Quadtree.world(depth=11), Clock("UTC", tuple(range(24))))
    with pytest.raises(InputError, match="fewer marks"):
        SidesInSlots(EachSlot(many, Leaves.at_level(many.tree, 9)), 8)
    wide = TimedTree(Quadtree.world(depth=24), Clock("UTC", tuple(range(0, 86400, 10))))
    with pytest.raises(InputError, match="63 bits"):
        check_room(wide, BinaryAttribute(wide, 8).shift)
