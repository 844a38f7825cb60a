"""The engine counts what memory counts, whatever the batches, the threads and the memory."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from tests.tables.people import DEEP, HEXAGONS, PERSONAL, QUADTREE, RULES, TREES, arrow, crowd, engine, same, tables

from hazemap.engines import duckdb_connection as connection
from hazemap.engines.memory import MemoryTable
from hazemap.engines.streaming import cell_counter as tally
from hazemap.engines.streaming import keyed_hash as hashes
from hazemap.engines.streaming.cell_counter import SparseCellCounter
from hazemap.errors import FileError, TableError
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, Outside, RowIsPerson

SOME = [AtMostRows(1), AtMostRows(4), AtMostCells(3), OneVote(1000), OneVote(7, Outside.COUNT), RowIsPerson()]
SOME += [AtMostRows(4, Outside.PEOPLE), AtMostCells(3, Outside.PEOPLE), OneVote(7, Outside.PEOPLE)]


@pytest.mark.slow
@settings(max_examples=40)
@given(memory=tables(most=25))
def test_an_engine_gives_the_votes_of_memory(memory):
    rows = engine(memory, threads=2)
    for rule in RULES:
        for tree in TREES:
            assert same(rows.votes(tree, rule), memory.votes(tree, rule))


@pytest.mark.parametrize("rule", SOME, ids=repr)
@pytest.mark.parametrize("tree", [QUADTREE, DEEP, HEXAGONS], ids=["quadtree", "deep", "hexagons"])
def test_many_batches_on_several_threads_change_nothing(rule, tree, monkeypatch):
    monkeypatch.setattr(connection, "BATCH", 2048)
    memory = crowd(700, 30_000)
    for threads in (1, 3):
        assert same(engine(memory, threads=threads).votes(tree, rule), memory.votes(tree, rule))


@pytest.mark.parametrize("rule", [rule for rule in SOME if rule != RowIsPerson()], ids=repr)
def test_people_who_do_not_fit_the_memory_get_passes_of_their_own(rule, monkeypatch):
    monkeypatch.setattr(connection, "BATCH", 4096)
    memory = crowd(3_000, 60_000)
    tight = engine(memory, memory_limit=1 << 16, threads=2)
    assert same(tight.votes(QUADTREE, rule), memory.votes(QUADTREE, rule))
    assert tight.report.passes > 2
    assert tight.report.rows == 60_000


def test_one_person_alone_may_pass_the_limit():
    memory = crowd(1, 60_000)
    tight = engine(memory, memory_limit=1 << 16, threads=2)
    assert same(tight.votes(DEEP, OneVote()), memory.votes(DEEP, OneVote()))


def texts_of(memory: MemoryTable) -> tuple[pa.Table, MemoryTable]:
    """The same people under names, and in memory under the codes of these names."""
    names = [f"person-{who}" + "é" * (int(who) % 13) for who in memory.person]
    data = [np.frombuffer(name.encode(), dtype=np.uint8) for name in names]
    codes = np.array([hashes.text_code(name, 0, len(name)) for name in data], dtype=np.uint64).view(np.int64)
    table = pa.table({"user": names, **memory.columns})
    return table, MemoryTable(codes, memory.columns, memory.key)


@pytest.mark.parametrize("limit", [1 << 16, 1 << 30])
@pytest.mark.parametrize("rule", [AtMostRows(3), AtMostCells(2), OneVote()], ids=repr)
def test_people_with_names_are_counted_like_people_with_numbers(rule, limit, monkeypatch):
    monkeypatch.setattr(connection, "BATCH", 4096)
    table, memory = texts_of(crowd(2_000, 20_000))
    rows = open_table(table, key=memory.key, value="weight", memory_limit=limit)
    assert same(rows.votes(QUADTREE, rule), memory.votes(QUADTREE, rule))


@pytest.mark.parametrize("rule", [AtMostRows(1), AtMostCells(1), OneVote(1)], ids=repr)
def test_two_names_with_the_same_hash_stay_two_people(rule, monkeypatch):
    """The bound must not hang on the hash: here every name has the same seed."""
    monkeypatch.setattr(
        hashes, "seeds_of_texts", lambda _data, offsets, *_words: np.full(len(offsets) - 1, 9, np.uint64)
    )
    names = [f"{i:03}" for i in range(200)] + ["", "00", "0", "0000"]
    table = pa.table({"user": names * 2, "lon": [13.3] * 408, "lat": [52.5] * 408})
    assert open_table(table, key=1).votes(QUADTREE, rule).weights.sum() == 204


@settings(max_examples=10)
@given(memory=tables(most=20), rule=st.sampled_from(PERSONAL))
def test_an_engine_s_total_is_the_sum_over_its_people(memory, rule):
    votes = engine(memory, threads=1).votes(QUADTREE, rule)
    each = [memory.of(person).votes(QUADTREE, rule) for person in np.unique(memory.person)]
    for cell, weight in zip(votes.cells, votes.weights, strict=True):
        assert weight == sum(v.weights[v.cells == cell].sum() for v in each)
    assert votes.weights.sum() == sum(v.weights.sum() for v in each)


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("geometry", [False, True])
def test_a_box_drops_or_keeps_what_lies_outside(rule, geometry):
    box = Box(13.2, 52.4, 13.35, 52.5)
    memory = crowd(300, 5_000)
    lon, lat = memory.columns["lon"], memory.columns["lat"]
    lon[:20], lat[10:30] = 13.2, 52.5  # on the edges, which belong to the box
    inside = (lon >= box.west) & (lon <= box.east) & (lat >= box.south) & (lat <= box.north)
    if rule.outside.asked:
        cut = MemoryTable(memory.person, {**memory.columns, "lon": np.where(inside, lon, np.nan)}, memory.key)
    else:
        cut = MemoryTable(memory.person[inside], {n: c[inside] for n, c in memory.columns.items()}, memory.key)
    table = arrow(memory)
    if geometry:
        gpd = pytest.importorskip("geopandas")
        table = gpd.GeoDataFrame(
            {"user": memory.person, "weight": memory.columns["weight"]}, geometry=gpd.points_from_xy(lon, lat), crs=4326
        )
    rows = open_table(table, value="weight", key=memory.key, box=box)
    assert same(rows.votes(QUADTREE, rule), cut.votes(QUADTREE, rule))


def test_rows_without_a_person_are_dropped_and_reported():
    table = pa.table({"user": [1, None, 2, None], "lon": [13.3, 13.3, 0.0, None], "lat": [52.5] * 4})
    rows = open_table(table)
    assert rows.votes(QUADTREE, AtMostRows(1)).weights.tolist() == [1]
    assert (rows.report.rows, rows.report.without_person, rows.report.nowhere) == (4, 2, 2)
    assert rows.votes(QUADTREE, RowIsPerson()).weights.tolist() == [2]


def test_a_fingerprint_is_of_all_rows_however_many_batches_they_are(monkeypatch):
    memory, found = crowd(3_000, 6_000), []
    for batch in (1 << 15, 256):
        monkeypatch.setattr(connection, "BATCH", batch)
        rows = engine(memory, threads=1)
        rows.watch(b"a key")
        rows.votes(QUADTREE, RowIsPerson())
        found.append(rows.fingerprint)
    assert found[0] == found[1]


def test_the_rows_are_read_once_for_each_rule_and_tree(monkeypatch):
    rows = engine(crowd(20, 200))
    first = rows.votes(QUADTREE, AtMostRows(1))
    monkeypatch.setattr(connection.DuckDBConnection, "stream", None)
    assert rows.votes(QUADTREE, AtMostRows(1)) is first
    with pytest.raises(TypeError):
        rows.votes(QUADTREE, AtMostRows(2))


def test_a_read_that_fails_half_way_leaves_the_table_usable(monkeypatch):
    class Failing:
        depth, root, span = 3, QUADTREE.root, staticmethod(QUADTREE.span)
        rows = 0

        def cell_at(self, columns, level):
            self.rows += len(columns["lon"])
            if self.rows > 5_000:
                raise TableError("enough")
            return QUADTREE.cell_at(columns, level)

    monkeypatch.setattr(connection, "BATCH", 2048)
    ids = np.arange(20_000)
    rows = open_table(pa.table({"user": ids, "lon": np.full(20_000, 13.3), "lat": np.full(20_000, 52.5)}))
    for _ in range(2):
        with pytest.raises(TableError, match="enough") as failure:
            rows.votes(Failing(), AtMostRows(1))
        assert failure.traceback  # whoever keeps the error keeps its frames alive
        assert rows.votes(QUADTREE, RowIsPerson()).weights.tolist() == [20_000]


def test_rows_of_many_row_groups_stay_in_order(tmp_path):
    memory = crowd(5_000, 300_000)
    for part in range(3):
        rows = arrow(memory).slice(part * 100_000, 100_000)
        parquet.write_table(rows, tmp_path / f"{part}.parquet", row_group_size=7_000)
    for threads in (1, 4):
        table = open_table(tmp_path, key=memory.key, threads=threads)
        assert same(table.votes(QUADTREE, AtMostRows(2)), memory.votes(QUADTREE, AtMostRows(2)))


def test_progress_rises_to_one(monkeypatch):
    monkeypatch.setattr(connection, "BATCH", 2048)
    for rule in (RowIsPerson(), AtMostRows(1), OneVote()):
        told: list[float] = []
        engine(crowd(3_000, 30_000), memory_limit=1 << 17, progress=told.append).votes(QUADTREE, rule)
        assert told[-1] == pytest.approx(1.0)
        assert all(0 < part <= 1 for part in told)
        assert told == sorted(told)


def test_progress_ends_at_one_where_a_filter_leaves_few_rows():
    told: list[float] = []
    engine(crowd(30, 3_000), box=Box(13.3, 52.4, 13.31, 52.6), progress=told.append).votes(QUADTREE, RowIsPerson())
    assert told[-1] == 1.0 and told == sorted(told)


@pytest.mark.parametrize("rule", [RowIsPerson(), AtMostRows(1)], ids=repr)
def test_a_tree_that_fails_stops_the_read(rule, monkeypatch):
    class Broken:
        depth, root = 3, QUADTREE.root
        span = staticmethod(QUADTREE.span)

        def cell_at(self, columns, level):
            return np.full(len(columns["lon"]), 7, dtype=np.uint64)

    monkeypatch.setattr(connection, "BATCH", 2048)
    with pytest.raises(ValueError, match="outside the span"):
        engine(crowd(30, 60_000), threads=2).votes(Broken(), rule)


def test_nothing_exact_shows_when_a_table_is_printed():
    rows = engine(crowd(20, 200))
    rows.votes(QUADTREE, AtMostRows(1))
    assert repr(rows) == "EngineTable('the table')"


def test_without_a_person_only_rows_can_be_people():
    rows = open_table(pa.table({"lon": [13.3], "lat": [52.5]}))
    assert rows.votes(QUADTREE, RowIsPerson()).weights.tolist() == [1]
    with pytest.raises(TableError, match=r"--person.*each row is a person"):
        rows.votes(QUADTREE, AtMostRows(1))


def test_a_file_that_breaks_while_it_is_read_is_said_to_be_damaged(tmp_path):
    path = tmp_path / "rows.parquet"
    memory = crowd(2_000, 200_000)
    parquet.write_table(arrow(memory), path, row_group_size=20_000, compression="zstd")
    data = bytearray(path.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 50_000] = bytes(50_000)
    path.write_bytes(data)
    with pytest.raises(FileError, match=r"rows\.parquet.*damaged"):
        open_table(path).votes(QUADTREE, AtMostRows(2))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(-5, 5)), max_size=60))
def test_a_sparse_tally_merges_as_often_as_it_must(pairs):
    few = SparseCellCounter()
    cells, weights = (np.array([pair[i] for pair in pairs], dtype=kind) for i, kind in ((0, "u8"), (1, "i8")))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tally, "FEW", 4)
        for at in range(0, len(pairs), 3):
            few.add(cells[at : at + 3], weights[at : at + 3])
    votes = few.votes()
    assert votes.cells.tolist() == sorted(set(cells.tolist()))
    assert votes.weights.tolist() == [int(weights[cells == cell].sum()) for cell in votes.cells]


def test_a_tree_that_breaks_its_span_is_caught_before_memory_is():
    dense = tally.DenseCellCounter(10, 5)
    for cell in (9, 15, 2**63):
        with pytest.raises(ValueError, match="outside the span"):
            dense.count(np.array([cell], dtype=np.uint64))
