"""The counters of a value encoding: their laws, by brute force over neighbours, in memory and in the engine."""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hazemap.cells import Leaves
from hazemap.encoders import Counts, Values, total
from hazemap.engines.duckdb import EngineTable
from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, Outside, OwnMeans, Sensitivity
from hazemap.temporal.time_slots import Always, Clock
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.value_encoding import ValueEncoding

SQUARE = Quadtree.around(Box(0.0, 0.0, 1.0, 1.0), 2)
CELLS = Leaves.at_level(SQUARE, 2)
VALUE_ENCODINGS = [
    ValueEncoding(0, 60),
    ValueEncoding(0, 60, 2),
    ValueEncoding(0, 60, 1, (4,), (1, 3)),
    ValueEncoding(0, 60, 2, (5, 2), (2, 1, 3)),
]
ENCODERS = [
    Values(CellTimeSlots(CELLS, slots, value_encoding), OwnMeans(cells, records, value_encoding.scale))
    for value_encoding in VALUE_ENCODINGS
    for slots, cells, records in ((Always(), 1, 1), (Clock("Europe/Berlin", (0, 43200)), 2, 3), (Always(), 50, 1000))
]
every_encoder = pytest.mark.parametrize(
    "encoder", ENCODERS, ids=lambda each: f"{each.tree.value_encoding} {each.bounding!r}"
)
rows = st.tuples(
    st.sampled_from([1, 2, -5, 2**62]),
    st.sampled_from([0.1, 0.4, 0.9, 7.0, np.nan]),
    st.sampled_from([-1.0, 0.0, 13.7, 20.0, 59.99, 60.0, 1e300, np.nan, np.inf]),
    st.sampled_from([0.0, 4e4, 1.5e9, np.nan]),
)


def table(chosen: list, key: int = 0) -> MemoryTable:
    who, lon, value, time = (np.array(column) for column in zip(*chosen, strict=True)) if chosen else [np.zeros(0)] * 4
    columns = {"lon": lon.astype(float), "lat": np.full(len(chosen), 0.3), "value": value.astype(float)}
    return MemoryTable(who.astype(np.int64), columns | {"time": time.astype(float)}, key)


def engine(rows: MemoryTable, **options) -> EngineTable:
    moments = [None if np.isnan(t) else round(t * 1e6) for t in rows.columns["time"].tolist()]
    columns = {name: rows.columns[name] for name in ("lon", "lat", "value")}
    arrow = pa.table({"user": rows.person, **columns, "ts": pa.array(moments, pa.timestamp("us"))})
    return open_table(arrow, key=rows.key, measured="value", timed=True, **options)


def without(rows: MemoryTable, person: int) -> MemoryTable:
    kept = rows.person != person
    return MemoryTable(rows.person[kept], {name: column[kept] for name, column in rows.columns.items()}, rows.key)


def is_within(sensitivity: Sensitivity, difference: np.ndarray) -> bool:
    exact = difference.astype(object)
    return abs(exact).sum() <= sensitivity.l1 and (exact**2).sum() <= sensitivity.l2_squared


@every_encoder
@settings(max_examples=15)
@given(chosen=st.lists(rows, max_size=12), key=st.integers(0, 2**64))
def test_no_person_moves_the_counters_by_more_than_the_sensitivity(encoder, chosen, key):
    whole = table(chosen, key)
    for person in np.unique(whole.person):
        assert is_within(encoder.sensitivity, encoder.total(whole) - encoder.total(without(whole, person)))


@every_encoder
@settings(max_examples=3)
@given(chosen=st.lists(rows, max_size=12), key=st.integers(0, 2**64))
def test_the_total_is_the_sum_over_people_from_memory_and_from_the_engine(encoder, chosen, key):
    whole = table(chosen, key)
    each = [total(encoder, whole.of(person)) for person in np.unique(whole.person)]
    wanted = sum(each, start=np.zeros(encoder.size, dtype=np.int64))
    assert np.array_equal(encoder.total(whole), wanted)
    assert np.array_equal(engine(whole).votes(encoder.tree, encoder.bounding).weights.sum(), wanted.sum())
    assert np.array_equal(encoder.total(engine(whole)), wanted)


@pytest.mark.parametrize("encoder", ENCODERS[1::3], ids=lambda each: str(each.tree.value_encoding))
def test_no_person_of_any_tiny_table_moves_the_counters_by_more(encoder):
    """Every table of up to two rows of two people, in two cells, with values at the ends and between."""
    choices = list(product([1, 2], [0.1, 0.9], [0.0, 20.1, 60.0], [0.0]))
    for chosen in (*((row,) for row in choices), *product(choices, repeat=2)):
        whole = table(list(chosen), 9)
        assert is_within(encoder.sensitivity, encoder.total(whole) - encoder.total(without(whole, 1)))


def test_no_person_of_any_tiny_table_moves_the_engines_counters_by_more():
    encoder = ENCODERS[7]
    choices = list(product([1, 2], [0.1, 0.9], [20.1, 60.0], [0.0]))  # every fifth pair of rows: each takes a moment
    for chosen in list(product(choices, repeat=2))[::5]:
        whole = table(list(chosen), 9)
        moved = encoder.total(engine(whole, threads=1)) - encoder.total(engine(without(whole, 1), threads=1))
        assert is_within(encoder.sensitivity, moved)


@every_encoder
def test_the_sensitivity_is_reached_so_a_smaller_one_is_found_out(encoder):
    """The twin that must fail: a claim of one less than the sensitivity."""
    rule, places = encoder.bounding, encoder.tree.places
    if rule.cells > places:
        encoder = Values(encoder.tree, OwnMeans(places, rule.records, rule.scale))
    lon, lat = np.divmod(np.arange(16), 4)
    slots = [3600.0, 50000.0]
    chosen = [
        (x / 4 + 0.1, y / 4 + 0.1, time)
        for x, y in zip(lon, lat, strict=True)
        for time in slots
        for _ in range(rule.records)
    ]
    lon, lat, time = map(np.array, zip(*chosen, strict=True))
    columns = {"lon": lon, "lat": lat, "value": np.zeros(len(lon)), "time": time}
    moved = encoder.total(MemoryTable(np.ones(len(lon), dtype=np.int64), columns))
    l1, l2_squared = encoder.sensitivity
    assert is_within(encoder.sensitivity, moved)
    assert not is_within(Sensitivity(l1 - 1, l2_squared), moved)
    assert not is_within(Sensitivity(l1, l2_squared - 1), moved)


@settings(max_examples=30)
@given(st.lists(rows, min_size=2, max_size=12), st.randoms())
def test_the_order_of_rows_does_not_matter(chosen, chance):
    encoder = ENCODERS[4]
    shuffled = list(chosen)
    chance.shuffle(shuffled)
    assert np.array_equal(encoder.total(table(chosen, 3)), encoder.total(table(shuffled, 3)))


def test_a_person_counts_with_the_mean_of_all_their_records_in_a_cell():
    encoder = ENCODERS[0]
    many = table([(1, 0.1, 10.0 if i % 2 else 20.0, 0.0) for i in range(1000)])
    low, high = encoder.total(many).reshape(-1, 2).sum(axis=0) / encoder.tree.value_encoding.scale
    assert (low + high, 60 * high) == (1.0, pytest.approx(15.0, abs=0.05))


def test_a_person_with_more_cells_than_the_cap_counts_in_so_many_drawn_by_the_key():
    value_encoding = ValueEncoding(0, 60)
    encoder = Values(CellTimeSlots(CELLS, Always(), value_encoding), OwnMeans(2, scale=value_encoding.scale))
    chosen = [(who, 0.1 + 0.25 * (i % 4), 30.0, 0.0) for who in range(200) for i in range(4)]
    each = [encoder.total(table(chosen, key)).reshape(-1, 2).sum(axis=1) / value_encoding.scale for key in range(2)]
    assert [people.sum() for people in each] == [400, 400]
    assert not np.array_equal(*each)
    assert all(60 < people < 140 for people in each[0][each[0] > 0])  # 5 standard deviations are 35


def test_an_engine_with_little_memory_reads_several_times_and_counts_the_same():
    rng = np.random.default_rng(4)
    number = 30_000
    columns = {
        "lon": rng.uniform(0, 1, number),
        "lat": rng.uniform(0, 1, number),
        "value": rng.normal(30, 20, number),
        "time": rng.uniform(0, 1e9, number).round(),
    }
    many = MemoryTable(rng.integers(0, 3000, number), columns, 8)
    for encoder in (ENCODERS[4], ENCODERS[10]):
        rows = engine(many, memory_limit=1 << 16, threads=2)
        assert np.array_equal(encoder.total(rows), encoder.total(many))
        assert rows.report.passes > 1


def test_a_person_with_a_million_records_counts_like_anybody_else():
    number = 1_000_000
    value = np.where(np.arange(number) % 4 == 0, 60.0, 0.0)
    columns = {"lon": np.full(number, 0.1), "lat": np.full(number, 0.3), "value": value, "time": np.zeros(number)}
    person = np.ones(number, dtype=np.int64)
    person[0] = 2
    arrow = pa.table({"user": person, **{name: columns[name] for name in ("lon", "lat", "value")}})
    value_encoding = ValueEncoding(0, 60)
    encoder = Values(CellTimeSlots(CELLS, Always(), value_encoding), OwnMeans(5, scale=value_encoding.scale))
    sums = encoder.total(open_table(arrow, measured="value")).reshape(-1, 2).sum(axis=0) / value_encoding.scale
    assert sums.sum() == 2
    assert sums[1] == pytest.approx(1.25, abs=1e-4)


def test_what_does_not_fit_together_is_refused():
    value_encoding = ValueEncoding(0, 60)
    tree = CellTimeSlots(CELLS, Always(), value_encoding)
    rows = table([(1, 0.1, 5.0, 0.0)])
    with pytest.raises(InputError, match="a record must have as many parts as its value encoding"):
        Values(tree, OwnMeans(1, scale=7))
    for source in (rows, engine(rows)):
        with pytest.raises(InputError, match="CellTimeSlots"):
            Counts(CELLS, OwnMeans(1, scale=value_encoding.scale)).total(source)
        with pytest.raises(InputError, match="OwnMeans"):
            source.votes(tree, AtMostRows(1))
    with pytest.raises(InputError):
        OwnMeans(0)
    with pytest.raises(InputError):
        OwnMeans(1, outside=Outside.COUNT)
    with pytest.raises(InputError, match="64 bits"):
        OwnMeans(1 << 16, 1 << 16)
