"""Pairs of people and places, from memory and from the engine: the same, whatever the order of rows, values apart."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.cells import Leaves
from hazemap.engines.duckdb import EngineTable
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError, TableError
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import WORLD, Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.tables.person_cell_values import PersonCellValues, SelectedPersonCellValues
from hazemap.temporal.time_slots import Always, Clock
from hazemap.values.cell_slot_counters import CellTimeSlots, ObservedCellSlots
from hazemap.values.value_encoding import ValueEncoding

SQUARE = Quadtree.around(Box(0.0, 0.0, 1.0, 1.0), 2)
EVERY = [
    ObservedCellSlots(SQUARE, Always(), ValueEncoding(0, 60)),
    ObservedCellSlots(SQUARE, Clock("Europe/Berlin", (0, 43200)), ValueEncoding(0, 60, 2, (5, 3))),
    ObservedCellSlots(Hexagons(WORLD, 0, 4), Clock.hours("UTC"), ValueEncoding(0, 60, 2)),
    ObservedCellSlots(SQUARE, Always(), ValueEncoding(0, 60), Leaves(SQUARE, Leaves.at_level(SQUARE, 2).cells[:9])),
]
row = st.tuples(
    st.sampled_from([1, 2, -5, 2**62]),
    st.sampled_from([0.1, 0.4, 0.9, 7.0, np.nan]),
    st.sampled_from([-1.0, 0.0, 13.7, 59.99, 1e300, np.nan, np.inf]),
    st.sampled_from([0.0, 4e4, 1.5e9, np.nan]),
)
certain = (1, 0.1, 13.7, 4e4)
"""A row that lies somewhere, so that there is a pair."""


def table(chosen: list, key: int = 0) -> MemoryTable:
    who, lon, value, time = (np.array(column) for column in zip(*chosen, strict=True))
    columns = {"lon": lon.astype(float), "lat": np.full(len(chosen), 0.3), "value": value.astype(float)}
    return MemoryTable(who.astype(np.int64), columns | {"time": time.astype(float)}, key)


def engine(rows: MemoryTable, **options) -> EngineTable:
    moments = [None if np.isnan(t) else round(t * 1e6) for t in rows.columns["time"].tolist()]
    columns = {name: rows.columns[name] for name in ("lon", "lat", "value")}
    arrow = pa.table({"user": rows.person, **columns, "ts": pa.array(moments, pa.timestamp("us"))})
    return open_table(arrow, key=rows.key, measured="value", timed=True, **options)


def same(one: PersonCellValues, other: PersonCellValues) -> bool:
    public = (one.whereabouts, other.whereabouts)
    return (
        one.tree == other.tree
        and all(np.array_equal(*(getattr(each, name) for each in public)) for name in ("firsts", "place", "records"))
        and np.array_equal(one.sums, other.sums)
    )


@pytest.mark.parametrize("places", EVERY, ids=lambda each: f"{each.tree.depth} {each.value_encoding}")
@settings(max_examples=8, deadline=None)
@given(chosen=st.lists(row, max_size=14), key=st.integers(0, 2**64))
def test_the_engine_finds_the_pairs_that_memory_does(places, chosen, key):
    rows = table([certain, *chosen], key)
    assert same(engine(rows, threads=1).pairs(places), rows.pairs(places))


@settings(max_examples=30, deadline=None)
@given(st.lists(row, max_size=14), st.randoms())
def test_the_order_of_rows_does_not_matter(chosen, chance):
    shuffled = [certain, *chosen]
    chance.shuffle(shuffled)
    assert same(table([certain, *chosen], 3).pairs(EVERY[1]), table(shuffled, 3).pairs(EVERY[1]))


@settings(max_examples=30, deadline=None)
@given(st.lists(row, max_size=14), st.lists(st.floats(0, 60), min_size=15, max_size=15))
def test_whereabouts_do_not_depend_on_values(chosen, values):
    """Nor on the order that a table sorted by its values would have."""
    rows = [certain, *(each for each in chosen if not np.isnan(each[2]))]
    others = sorted(((who, lon, v, t) for (who, lon, _, t), v in zip(rows, values, strict=False)), key=lambda r: r[2])
    one, other = (table(each, 5).pairs(EVERY[0]).whereabouts for each in (rows, others))
    assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in ("firsts", "place", "records"))


def test_many_pairs_of_many_batches_are_the_same_too():
    rng = np.random.default_rng(4)
    number = 300_000
    columns = {"lon": rng.uniform(0, 1, number), "lat": rng.uniform(0, 1, number), "value": rng.normal(30, 20, number)}
    rows = MemoryTable(rng.integers(0, 5000, number), columns | {"time": rng.uniform(0, 1e9, number).round()}, 8)
    found = engine(rows, threads=2).pairs(EVERY[1])
    assert same(found, rows.pairs(EVERY[1]))
    assert found.whereabouts.records.sum() == number
    assert len(found.whereabouts.place) > 100_000


def test_ids_that_are_texts_are_people_too():
    arrow = pa.table({"user": ["a", "b", "a", None], "lon": [0.1] * 4, "lat": [0.3] * 4, "value": [0.0, 30, 60, 60]})
    found = open_table(arrow, measured="value").pairs(EVERY[0])
    assert sorted(found.whereabouts.records.tolist()) == [1, 2]
    assert found.sums.sum() == 3 * 512 * 1024


def test_what_does_not_fit_is_said_with_what_to_do():
    rng = np.random.default_rng(4)
    number = 100_000
    columns = {"lon": rng.uniform(0, 1, number), "lat": rng.uniform(0, 1, number), "value": rng.normal(30, 20, number)}
    rows = MemoryTable(np.arange(number), columns | {"time": np.zeros(number)})
    with pytest.raises(TableError, match=r"pass a larger one \(--memory\), or ask for coarser cells or fewer slots"):
        engine(rows, memory_limit=1 << 20).pairs(EVERY[0])


def test_a_table_without_a_row_in_any_place_is_refused():
    for source in (table([(1, 7.0, 1.0, 0.0)]), engine(table([(1, 7.0, 1.0, 0.0)]))):
        with pytest.raises(InputError, match="no row has a value inside a cell and a slot: check the box"):
            source.pairs(EVERY[0])


def test_pairs_answer_nothing_else():
    pairs = table([certain]).pairs(EVERY[0])
    asked = CellTimeSlots(Leaves.at_level(SQUARE, 2), Always(), ValueEncoding(0, 60))
    for each in (pairs, SelectedPersonCellValues(pairs, np.ones(1, dtype=bool), 1)):
        with pytest.raises(TableError, match="cannot answer questions"):
            each.votes(asked, OwnMeans(1))
