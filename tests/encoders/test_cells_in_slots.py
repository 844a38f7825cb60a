"""Counts of cells in slots: sensitivities by brute force over neighbours, under every rule; engine against memory."""

from itertools import combinations_with_replacement, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.cells import NOWHERE, Leaves, WholeDomain
from hazemap.encoders import Counts, total
from hazemap.engines.memory import MemoryTable
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside, RowIsPerson
from hazemap.temporal.time_slots import Clock
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.timed_tree import TimedTree

SQUARE, HEXAGONS = Quadtree.around(Box(0.0, 0.0, 1.0, 1.0), 2), Hexagons(Box(0.0, 0.0, 1.0, 1.0), 3, 5)
HALVES = Clock("UTC", (0, 43200))
RULES = [
    *(rule(most, outside) for rule in (AtMostRows, AtMostCells) for most in (1, 2) for outside in Outside),
    *(OneVote(5, outside) for outside in Outside),
    RowIsPerson(),
]
FAST = [AtMostRows(2, Outside.PEOPLE), AtMostCells(2), OneVote(5, Outside.COUNT), RowIsPerson()]
ROWS = list(product((1, 2), (0.1, 0.9, 7.0), (0.0, 50000.0, np.nan)))


def encoders(tree, rule) -> list[Counts]:
    timed, cells = TimedTree(tree, HALVES), Leaves.at_level(tree, 1)
    nowhere = Leaves(tree, np.append(cells.cells, NOWHERE))
    every = (EachSlot(timed, cells), EachSlot(timed, WholeDomain(tree)), AllSlots(timed, nowhere))
    return [Counts(partition, rule) for partition in (*every, AllSlots(timed, WholeDomain(tree)))]


def name(encoder: Counts) -> str:
    of = encoder.cells
    return f"{type(of).__name__} {type(of.tree.tree).__name__} {type(of.cells).__name__} {encoder.bounding!r}"


ENCODERS = [
    pytest.param(encoder, id=name(encoder), marks=[] if tree is SQUARE and rule in FAST else [pytest.mark.slow])
    for tree in (SQUARE, HEXAGONS)
    for rule in RULES
    for encoder in encoders(tree, rule)
]
every_encoder = pytest.mark.parametrize("encoder", ENCODERS)


def table(chosen, key: int = 0) -> MemoryTable:
    who, lon, time = (
        (np.array(column, dtype=np.float64) for column in zip(*chosen, strict=True)) if chosen else [np.zeros(0)] * 3
    )
    return MemoryTable(who.astype(np.int64), {"lon": lon, "lat": np.full(len(lon), 0.4), "time": time}, key)


def neighbours(rows: MemoryTable, encoder: Counts):
    """The table without one person; without one row where every row is a person."""
    alone = isinstance(encoder.bounding, RowIsPerson)
    for unit in range(len(rows.person)) if alone else np.unique(rows.person):
        kept = np.arange(len(rows.person)) != unit if alone else rows.person != unit
        yield MemoryTable(rows.person[kept], {of: column[kept] for of, column in rows.columns.items()}, rows.key)


def moved(rows: MemoryTable, encoder: Counts) -> tuple[int, int]:
    """The most that any neighbour moves the sums, in L1 and L2 squared."""
    whole = encoder.total(rows)
    assert np.array_equal(whole, total(encoder, rows))
    far = [np.abs(whole - encoder.total(other)) for other in neighbours(rows, encoder)] or [whole * 0]
    return max(int(each.sum()) for each in far), max(int((each**2).sum()) for each in far)


@every_encoder
def test_no_person_of_any_tiny_table_moves_the_sums_by_more_and_some_move_them_so_far(encoder):
    """All tables of up to two rows, where and when they may be, and of four rows of one person."""
    tables = [table(rows) for size in (1, 2) for rows in combinations_with_replacement(ROWS, size)]
    tables += [table([(1, lon, time)] * 4) for lon in (0.1, 0.9) for time in (0.0, 50000.0)]
    found = np.array([moved(rows, encoder) for rows in tables])
    assert found[:, 1].max() <= encoder.sensitivity.l2_squared
    assert found[:, 0].max() == encoder.sensitivity.l1


@every_encoder
@settings(max_examples=5)
@given(chosen=st.lists(st.sampled_from(ROWS), max_size=9), key=st.integers(0, 2**64))
def test_no_person_moves_the_sums_by_more_than_the_sensitivity(encoder, chosen, key):
    far = moved(table(chosen, key), encoder)
    assert far[0] <= encoder.sensitivity.l1 and far[1] <= encoder.sensitivity.l2_squared


@pytest.mark.parametrize(
    "rule", [AtMostRows(2, Outside.PEOPLE), AtMostCells(2, Outside.COUNT), OneVote(5), RowIsPerson()]
)
@pytest.mark.parametrize("tree", [SQUARE, HEXAGONS])
def test_the_engine_counts_what_memory_counts(tree, rule):
    luck = np.random.default_rng(1)
    rows = table([ROWS[at] for at in luck.integers(0, len(ROWS), 200)], 9)
    moments = [None if np.isnan(time) else round(time * 1e6) for time in rows.columns["time"].tolist()]
    columns = {"user": rows.person, "lon": rows.columns["lon"], "lat": rows.columns["lat"]}
    arrow = pa.table(columns | {"ts": pa.array(moments, pa.timestamp("us"))})
    engine = open_table(arrow, key=9, timed=True, threads=1)
    for encoder in encoders(tree, rule):
        assert np.array_equal(encoder.total(engine), encoder.total(rows))


def test_a_bound_covers_all_slots_together():
    """A person with a row in every hour adds one to one of them, and not one to each."""
    hours = TimedTree(SQUARE, Clock.hours("UTC"))
    rows = table([(1, 0.1, 3600.0 * hour) for hour in range(24)])
    assert Counts(EachSlot(hours, Leaves.at_level(SQUARE, 1)), AtMostRows(1)).total(rows).sum() == 1
    shared = Counts(EachSlot(hours, WholeDomain(SQUARE)), OneVote(48)).total(rows)
    assert shared.tolist() == [2] * 24
