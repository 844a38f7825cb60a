"""What is asked before values are: sensitivities by brute force over neighbours, in memory and in the engine."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.cells import Leaves
from hazemap.encoders import CellPresence, Counts, total
from hazemap.engines.duckdb import EngineTable
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostCells, OneVote, Sensitivity
from hazemap.temporal.time_slots import Weekdays
from hazemap.values.histogram_bins import FloatGrid, HistogramBins, Log2Bins
from hazemap.values.rows_with_values import RowsWithValues

SQUARE = Quadtree.around(Box(0.0, 0.0, 1.0, 1.0), 2)
LINE = FloatGrid(Box(0.0, 0.0, 1.0, 1.0), Weekdays("UTC"))
ENCODERS = [
    Counts(Log2Bins(LINE), OneVote()),
    Counts(Log2Bins(LINE), OneVote(3)),
    Counts(HistogramBins.between(LINE, -64, 64, 16), OneVote()),
    CellPresence(Leaves.at_level(RowsWithValues(SQUARE), 2), AtMostCells(1)),
    CellPresence(Leaves.at_level(RowsWithValues(SQUARE, Weekdays("UTC")), 2), AtMostCells(3)),
    Counts(Leaves.at_level(RowsWithValues(SQUARE), 1), AtMostCells(3)),
]
every_encoder = pytest.mark.parametrize("encoder", ENCODERS, ids=lambda each: f"{type(each.cells)}{each.bounding!r}")
rows = st.tuples(
    st.sampled_from([1, 2, -5, 2**62]),
    st.sampled_from([0.1, 0.4, 0.9, 7.0, np.nan]),
    st.sampled_from([-1.0, 0.0, 13.7, 59.99, 1e300, -np.inf, np.nan]),
    st.sampled_from([0.0, 4e4, np.nan]),
)


def table(chosen: list, key: int = 0) -> MemoryTable:
    who, lon, value, time = (np.array(column) for column in zip(*chosen, strict=True)) if chosen else [np.zeros(0)] * 4
    columns = {"lon": lon.astype(float), "lat": np.full(len(chosen), 0.3), "value": value.astype(float)}
    return MemoryTable(who.astype(np.int64), columns | {"time": time.astype(float)}, key)


def engine(rows: MemoryTable) -> EngineTable:
    moments = [None if np.isnan(t) else round(t * 1e6) for t in rows.columns["time"].tolist()]
    columns = {name: rows.columns[name] for name in ("lon", "lat", "value")}
    arrow = pa.table({"user": rows.person, **columns, "ts": pa.array(moments, pa.timestamp("us"))})
    return open_table(arrow, key=rows.key, measured="value", timed=True, threads=1)


def without(rows: MemoryTable, person: int) -> MemoryTable:
    kept = rows.person != person
    return MemoryTable(rows.person[kept], {name: column[kept] for name, column in rows.columns.items()}, rows.key)


def is_within(sensitivity: Sensitivity, difference: np.ndarray) -> bool:
    return abs(difference).sum() <= sensitivity.l1 and (difference**2).sum() <= sensitivity.l2_squared


@every_encoder
@settings(max_examples=20)
@given(chosen=st.lists(rows, max_size=12), key=st.integers(0, 2**64))
def test_no_person_moves_the_sums_by_more_than_the_sensitivity(encoder, chosen, key):
    whole = table(chosen, key)
    for person in np.unique(whole.person):
        assert is_within(encoder.sensitivity, encoder.total(whole) - encoder.total(without(whole, person)))


@every_encoder
def test_no_person_of_any_tiny_table_moves_them_by_more(encoder):
    """Every table of up to three rows of two people, in two cells, with values far apart."""
    choices = list(product([1, 2], [0.1, 0.9], [0.0, 20.1, -1e9], [0.0]))
    for chosen in (*((row,) for row in choices), *product(choices, repeat=2), *product(choices[:6], repeat=3)):
        whole = table(list(chosen), 9)
        assert is_within(encoder.sensitivity, encoder.total(whole) - encoder.total(without(whole, 1)))


@every_encoder
@settings(max_examples=3)
@given(chosen=st.lists(rows, max_size=12), key=st.integers(0, 2**64))
def test_the_total_is_the_sum_over_people_from_memory_and_from_the_engine(encoder, chosen, key):
    whole = table(chosen, key)
    each = [total(encoder, whole.of(person)) for person in np.unique(whole.person)]
    wanted = sum(each, start=np.zeros(encoder.size, dtype=np.int64))
    assert np.array_equal(encoder.total(whole), wanted)
    assert np.array_equal(encoder.total(engine(whole)), wanted)


@every_encoder
def test_the_sensitivity_is_reached_so_a_smaller_one_is_found_out(encoder):
    """The twin that must fail: a claim of one less. Coarse cells may hold all votes of a person, base cells may not."""
    within = isinstance(encoder, Counts) and isinstance(encoder.cells, Leaves)
    lon = np.array([0.05, 0.15, 0.3]) if within else np.array([0.1, 0.4, 0.9])
    columns = {"lon": lon, "lat": np.full(3, 0.05), "value": np.full(3, 5.0), "time": np.zeros(3)}
    if within:
        columns["lat"] = np.array([0.05, 0.3, 0.05])
    moved = encoder.total(MemoryTable(np.ones(3, dtype=np.int64), columns))
    l1, l2_squared = encoder.sensitivity
    assert is_within(encoder.sensitivity, moved)
    assert not is_within(Sensitivity(l1 - 1, l2_squared), moved)
    assert not is_within(Sensitivity(l1, l2_squared - 1), moved)


def test_somebody_with_a_million_records_has_one_vote_spread_as_their_values_are():
    value = np.repeat([1.5, 100.0], [750_000, 250_000])
    place = np.full(len(value), 0.5)
    columns = {"lon": place, "lat": place, "value": value, "time": np.zeros(len(value))}
    octaves = Counts(Log2Bins(LINE), OneVote())
    votes = octaves.total(MemoryTable(np.zeros(len(value), dtype=np.int64), columns))
    assert votes[[31, 37]].tolist() == [768, 256]


def test_people_are_present_in_base_cells_alone():
    with pytest.raises(InputError, match="base cells"):
        CellPresence(Leaves.at_level(SQUARE, 1), AtMostCells(2))
