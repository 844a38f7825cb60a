"""Binary COPY is read as it was written, however it comes in pieces; what breaks off is no short table."""

import struct
import sys
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hazemap.engines.duckdb_connection import DuckDBConnection, TableQuery
from hazemap.engines.table_source import FED
from hazemap.errors import FileError, InputError
from hazemap.readers import postgresql_copy
from hazemap.readers.open_table import open_table
from hazemap.readers.postgresql_copy import (
    DATE,
    DOUBLE,
    EPOCH,
    NUMERIC,
    SIGNATURE,
    SINGLE,
    TIME,
    TYPES,
    ZONED,
    DamagedCopy,
    record_batches,
)
from hazemap.readers.postgresql_tables import CopiedTable, PointType
from hazemap.spatial.bounding_box import Box

HEADER, END = SIGNATURE + bytes(8), b"\xff\xff"
BIG, TEXT, BOOL = 20, 25, 16


def row(*fields: bytes | None) -> bytes:
    return struct.pack(">h", len(fields)) + b"".join(
        struct.pack(">i", -1) if field is None else struct.pack(">i", len(field)) + field for field in fields
    )


def read(data: bytes, kinds: list[int], cuts: list[int] | None = None) -> pa.Table:
    places = [0, *sorted(cuts or []), len(data)]
    blocks = [data[begin:end] for begin, end in pairwise(places)]
    names = [f"c{i}" for i in range(len(kinds))]
    batches = list(record_batches(blocks, names, [TYPES[kind].decoder for kind in kinds]))
    return pa.Table.from_batches(batches) if batches else pa.table({name: [] for name in names})


rows = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**63), 2**63 - 1), st.none() | st.text(st.characters(codec="utf-8"), max_size=9)
    ),
    max_size=12,
)


@given(rows, st.lists(st.integers(0, 400), max_size=6), st.sampled_from([1, 30, 1 << 22]))
def test_rows_come_back_however_they_are_cut(chosen, cuts, chunk):
    data = HEADER + b"".join(
        row(None if who is None else struct.pack(">q", who), None if text is None else text.encode())
        for who, text in chosen
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(postgresql_copy, "CHUNK", max(chunk, 19))
        found = read(data + END, [BIG, TEXT], [19, *(19 + cut for cut in cuts if 19 + cut < len(data))])
    assert list(zip(*(column.to_pylist() for column in found.columns), strict=True)) == chosen


def test_what_breaks_off_anywhere_is_damaged():
    data = HEADER + row(struct.pack(">q", 7), b"ann") + row(None, b"bob") + END
    assert read(data, [BIG, TEXT]).num_rows == 2
    for end in range(len(data)):
        with pytest.raises(DamagedCopy):
            read(data[:end], [BIG, TEXT])


@pytest.mark.parametrize(
    "data",
    [
        HEADER + row(b"12345678") + END + b"x",
        HEADER + row(b"12345678") + END + row(b"12345678"),
        HEADER + row(b"12345678", b"12345678") + END,
        HEADER + row(b"1234567") + END,
        HEADER + b"\0\1" + struct.pack(">i", -2) + END,
        b"PGCOPY\n\xff\r\n\x01" + bytes(8) + END,
        SIGNATURE + b"\0\0\0\1" + bytes(4) + END,
        b"",
    ],
)
def test_what_is_no_copy_is_damaged(data):
    with pytest.raises(DamagedCopy):
        read(data, [BIG])


def only(kind: int, *fields: bytes | None) -> list:
    return read(HEADER + b"".join(map(row, fields)) + END, [kind])["c0"].to_pylist()


def test_every_type_keeps_its_ends():
    assert only(21, b"\x80\0", b"\x7f\xff", None) == [-(2**15), 2**15 - 1, None]
    assert only(23, b"\x80\0\0\0", b"\xff\xff\xff\xff") == [-(2**31), -1]
    assert only(BIG, b"\x80" + bytes(7), b"\x7f" + b"\xff" * 7) == [-(2**63), 2**63 - 1]
    assert only(BOOL, b"\1", b"\0", None) == [True, False, None]
    assert only(TEXT, b"", None, "é".encode(), b"\xff") == ["", None, "é", None]
    assert only(17, b"\0\xff", None) == [b"\0\xff", None]
    doubles = [0.1, -0.0, 5e-324, float("inf"), 1.7976931348623157e308]
    found = only(DOUBLE, *(struct.pack(">d", each) for each in doubles))
    assert [each.hex() for each in found] == [each.hex() for each in doubles]
    assert np.isnan(only(DOUBLE, struct.pack(">d", float("nan")))[0])
    assert only(SINGLE, struct.pack(">f", 0.1), None) == [float(np.float32(0.1)), None]
    assert only(NUMERIC, b"7", b"NaN", b"Infinity", b"-Infinity", None) == ["7", None, None, None, None]


def test_times_count_from_2000_and_endless_ones_are_none():
    word, ends = struct.Struct(">q"), (2**63 - 1, -(2**63), 2**63 - 1 - EPOCH)
    assert only(TIME, word.pack(0), word.pack(-EPOCH)) == [datetime(2000, 1, 1), datetime(1970, 1, 1)]
    assert only(ZONED, word.pack(1_000_000)) == [datetime(2000, 1, 1, 0, 0, 1, tzinfo=UTC)]
    assert only(TIME, *map(word.pack, ends)) == [None] * 3
    day = struct.Struct(">i")
    assert [str(each) for each in only(DATE, day.pack(0), day.pack(-1), day.pack(2**31 - 1), day.pack(-(2**31)))] == [
        *("2000-01-01", "1999-12-31", "None", "None")
    ]


PLACED = CopiedTable(
    None,
    '"s"."t"',
    {
        'a "b"': TYPES[DOUBLE],
        "lat": TYPES[SINGLE],
        "x": TYPES[NUMERIC],
        "day": TYPES[DATE],
        "at": TYPES[ZONED],
        "then": TYPES[TIME],
        "said": TYPES[TEXT],
        "point": PointType("gis", 4326, "OGC:CRS84"),
        "metres": PointType("gis", 25833, "EPSG:25833"),
    },
)
NOON, NIGHT = datetime(2024, 5, 31, 12, 30, 0, 1, tzinfo=UTC), datetime(524, 1, 1, tzinfo=UTC)


def test_statements_quote_names_and_cast_nothing_that_could_fail():
    assert PLACED.statement(['a "b"', "x"]) == (
        'SELECT "a ""b""", pg_catalog.trim_scale("x")::pg_catalog.text FROM "s"."t"'
    )
    assert PLACED.columns[-1] == "number in x"


def test_times_are_pushed_down_where_sql_compares_them_exactly():
    def where(column, *limits):
        return PLACED.during(column, *limits).conditions

    assert where("at", NOON, NIGHT) == (
        "\"at\" >= '2024-05-31T12:30:00.000001+00'::pg_catalog.timestamptz",
        "\"at\" < '0524-01-01T00:00:00+00'::pg_catalog.timestamptz",
    )
    assert where("then", NOON, None) == ("\"then\" >= '2024-05-31T12:30:00.000001'::pg_catalog.timestamp",)
    assert where("day", NOON, NOON) == (
        "\"day\" >= '2024-05-31'::pg_catalog.date",
        "\"day\" <= '2024-05-31'::pg_catalog.date",
    )
    assert where("said", NOON, NOON) == where("x", NOON, None) == ()


def test_boxes_are_pushed_down_where_no_row_can_fail():
    box = Box(0.1, -1.5, 2.0, 3.0)
    assert PLACED.inside(('a "b"', "lat"), box).conditions == (
        '"a ""b""" BETWEEN \'0.1\'::pg_catalog.float8 AND \'2.0\'::pg_catalog.float8',
        "\"lat\" BETWEEN '-1.5'::pg_catalog.float8 AND '3.0'::pg_catalog.float8",
    )
    (wider, _) = PLACED.inside(("x", "x"), box).conditions
    assert wider.startswith("\"x\" BETWEEN '0.099999'::pg_catalog.numeric")
    assert PLACED.inside(("point",), box).conditions == (
        '"point" OPERATOR("gis".&&) "gis".ST_MakeEnvelope(0.1, -1.5, 2.0, 3.0, 4326)',
    )
    assert PLACED.inside(("metres",), box).conditions == PLACED.inside(("said", "day"), box).conditions == ()


def test_what_a_feed_says_when_it_fails_is_what_is_said():
    class Breaking:
        columns = ("a",)

        def batches(self, columns):
            yield pa.record_batch({"a": [1]})
            raise FileError("the connection broke")

    for sql in ("SELECT a + 1 FROM " + FED, None):
        connection = DuckDBConnection(1 << 28, 1)
        with pytest.raises(FileError, match=r"^the connection broke$"):
            list(connection.stream(TableQuery(sql, Breaking(), ("a",)), "it"))


def test_without_psycopg_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(InputError, match=r"pip install 'hazemap\[postgresql\]'"):
        open_table("postgresql:///db?table=visits")


def test_a_server_that_is_not_there_is_a_file_that_is_not(tmp_path):
    pytest.importorskip("psycopg")
    with pytest.raises(FileError, match="the table visits in PostgreSQL cannot be reached"):
        open_table(f"postgresql:///db?host={tmp_path}&table=visits")
