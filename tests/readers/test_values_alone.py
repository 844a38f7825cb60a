"""Any mixture of values gives what each value gives alone, for every type of a column in every role."""

import warnings
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from hazemap.engines.arrow_arrays import floats
from hazemap.errors import TableError
from hazemap.readers.open_table import open_table
from hazemap.tables.keyed_hash import KeyWords

WORDS = KeyWords.expanded(b"key", "rule")
END, LONG = 2**63, b"x" * 20_000
TEXTS = [b"7", b"07", b"\xff", b"", b"a\x00b", b"yes", b"1e999", b"2026-05-31 12:00 Asia/Tokyo", b"871f18b24ffffff"]
TEXTS += [b"2026-05-31", "é".encode(), LONG, None]
FLOATS = [0.0, -0.0, 7.0, 13.5, np.nan, np.inf, -np.inf, 2.0**53, 1e19, None]
MOMENTS = [-END, -END + 1, END - 1, 2**62, 0, 1_700_000_000, None]


def edges(kind: pa.DataType) -> pa.Array:
    ends = np.iinfo(kind.to_pandas_dtype())
    return pa.array([ends.min, ends.max, 0, 7, None], kind)


def bits(kind: pa.DataType, values: list[int | None]) -> pa.Array:
    """Values that the type need not have: whoever writes a file may put any bits there."""
    return pa.array(values, pa.int64() if kind.bit_width == 64 else pa.int32()).view(kind)


def decimals(kind: pa.DataType, *texts: str) -> pa.Array:
    return pa.array([*map(Decimal, texts), None], kind)


COLUMNS = {
    "null": pa.nulls(2),
    "bool": pa.array([True, False, None]),
    **{str(kind): edges(kind) for kind in (pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint32(), pa.uint64())},
    "float16": pa.array(np.array([0, 7, np.nan, np.inf], np.float16)),
    "float32": pa.array([7.0, 13.5, np.nan, np.inf, 2.0**24, None], pa.float32()),
    "float64": pa.array(FLOATS, pa.float64()),
    "string": pa.array(TEXTS, pa.binary()).view(pa.string()),
    "large_string": pa.array(TEXTS, pa.large_binary()).view(pa.large_string()),
    "string_view": pa.array(TEXTS, pa.binary_view()).view(pa.string_view()),
    "dictionary": pa.array(TEXTS, pa.binary()).view(pa.string()).dictionary_encode(),
    "run_end_encoded": pa.RunEndEncodedArray.from_arrays(pa.array([2, 4], pa.int32()), pa.array(["7", "yes"])),
    "binary": pa.array(TEXTS, pa.binary()),
    "binary_view": pa.array(TEXTS, pa.binary_view()),
    "fixed_size_binary": pa.array([b"\xff" * 16, b"abcdefghijklmnop", None], pa.binary(16)),
    "date32": bits(pa.date32(), [-(2**31), 2**31 - 1, 0, 20_000, None]),
    "date64": bits(pa.date64(), MOMENTS),
    **{f"timestamp[{unit}]": bits(pa.timestamp(unit), MOMENTS) for unit in ("s", "ms", "us", "ns")},
    **{f"timestamp[{unit}, UTC]": bits(pa.timestamp(unit, "UTC"), MOMENTS) for unit in ("s", "us", "ns")},
    "time32": bits(pa.time32("s"), [0, 86_400, -1, 2**31 - 1, None]),
    "time64": bits(pa.time64("us"), MOMENTS),
    "duration": bits(pa.duration("s"), MOMENTS),
    "interval": pa.array([pa.MonthDayNano([2**31 - 1, 2**31 - 1, END - 1]), None], pa.month_day_nano_interval()),
    "decimal128": decimals(pa.decimal128(38, 10), "7", "7.50", "-1"),
    "wide decimal128": decimals(pa.decimal128(38, 0), str(10**37), "7"),
    "decimal256": decimals(pa.decimal256(65, 2), str(10**60), "7"),
    "list": pa.array([[1], [2, 3], None]),
    "struct": pa.array([{"x": 1.0}, None]),
    "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    "union": pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])]),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"\xff" * 16, None], pa.binary(16))),
}
PLACE = {"lon": "x", "lat": "y"}
WHO = {"person": "who", **PLACE}
ROLES: dict[str, dict[str, Any]] = {
    "person": {"person": "c", **PLACE},
    "lon": {"person": "who", "lon": "c", "lat": "y"},
    "time": {**WHO, "time": "c", "timed": True},
    "window": {**WHO, "time": "c", "since": "1970-01-01", "until": "2200-01-01"},
    "unix": {**WHO, "time": "c", "timed": True, "time_format": "milliseconds"},
    "weight": {**WHO, "value": "c"},
    "mark": {**WHO, "mark": "c"},
    "marked value": {**WHO, "mark": "c=7"},
    "measured": {**WHO, "measured": "c"},
    "cell": {"person": "who", "cell": "c", "resolution": 7},
}


def table(column: pa.Array) -> pa.Table:
    many = len(column)
    return pa.table({"who": range(many), "x": [13.4] * many, "y": [52.5] * many, "c": column})


def read(source: object, options: dict[str, Any]) -> Iterator[tuple[object, ...]]:
    """What the engine makes of each row, but for the numbers of people who are not the column's."""
    opened = open_table(source, key=b"key", threads=1, **options)
    layout, ids = opened._layout, opened._layout.need_ids()
    for query in layout.selecting(lambda part: [part.need_person(), *part.places, *filter(None, [part.weight])]):
        for batch in opened._connection.stream(query, layout.name):
            columns = layout.arrived(batch.columns, 1)
            seeds, known, _ = ids.coded(columns[0], WORDS)
            found = list(layout.columns(columns[1 : 1 + layout.width]).values())
            found += [floats(column) for column in columns[1 + layout.width :]]
            for i in range(len(seeds)):
                who = (int(seeds[i]), bool(known[i])) if options["person"] == "c" and known[i] else bool(known[i])
                yield who, *(repr(float(each[i])) for each in found)


def check(kind: str, role: str, made: Any, size: int = 1) -> bool:
    """Whether a column can have a role; what it then gives is what its values give alone, or `size` of them."""
    column, options = COLUMNS[kind], ROLES[role]
    parts = [column.slice(i, size) for i in range(0, len(column), size)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            whole = list(read(made(table(column)), options))
        except TableError:  # by its type, which every value of the column has
            with pytest.raises(TableError):
                list(read(made(table(parts[-1])), options))
            return False
        alone = [row for part in parts for row in read(made(table(part)), options)]
    assert whole == alone
    return True


@pytest.mark.parametrize(
    ("kind", "role"),
    [("timestamp[us]", "person"), ("timestamp[us]", "marked value"), ("time64", "marked value"), ("float16", "weight")],
)
def test_a_value_that_its_type_does_not_have_is_its_own_row_s_alone(kind, role):
    check(kind, role, lambda rows: rows)


@pytest.mark.slow
@pytest.mark.parametrize("kind", COLUMNS)
def test_any_mixture_of_values_gives_what_each_gives_alone(kind, tmp_path):
    served = {role for role in ROLES if check(kind, role, lambda rows: rows)}
    if kind in ("string", "int64", "float64"):
        assert served >= {"person", "mark", "marked value", "weight"} - ({"weight"} if kind == "string" else set())

    def beside_objects(rows: pa.Table) -> pd.DataFrame:
        frame = rows.to_pandas(types_mapper=pd.ArrowDtype)
        return frame.assign(z=pd.Series(["a"] * len(rows), dtype=object))

    for role in served & {"person", "time", "marked value"}:
        check(kind, role, beside_objects, size=5)
        check(kind, role, lambda rows: rows.to_reader(), size=5)

    def stored(rows: pa.Table) -> str:
        parquet.write_table(rows, tmp_path / "rows.parquet")
        return str(tmp_path / "rows.parquet")

    try:
        stored(table(COLUMNS[kind]))
    except pa.ArrowException:
        return  # a type that Parquet has not
    for role in served & {"person", "time", "marked value"}:
        check(kind, role, stored, size=5)


ODD = {
    "half floats": pa.array(np.array([1, 2], np.float16)),
    "long decimals": COLUMNS["decimal256"].slice(0, 2),
    "unions": COLUMNS["union"],
    "intervals": COLUMNS["interval"],
}


@pytest.mark.parametrize("odd", ODD)
def test_a_column_that_nobody_asked_for_refuses_no_table(odd, tmp_path):
    rows = pa.table({"who": [1, 2], "x": [13.4, 13.5], "y": [52.5, 52.6], "odd": ODD[odd]})
    sources: list[Any] = [rows, rows.to_reader()]
    if odd != "unions":
        frame = rows.to_pandas(types_mapper=pd.ArrowDtype)
        sources.append(frame.assign(z=pd.Series(["a", "b"], dtype=object)))
    for source in sources:
        assert len(list(read(source, WHO))) == 2
    for role in ("person", "measured"):
        with pytest.raises(TableError):
            open_table(rows, **{**WHO, role: "odd"})


def test_a_frame_of_polars_may_have_types_that_nobody_else_has():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"who": [1, 2], "x": [13.4, 13.5], "y": [52.5, 52.6]}).with_columns(
        polars.col("who").cast(polars.Int128).alias("wide"),
        polars.Series("anything", [object(), object()], dtype=polars.Object),
    )
    assert len(list(read(frame, WHO))) == 2


@pytest.mark.parametrize("odd", [bytearray(b"\xff"), memoryview(b"\xff"), np.timedelta64(7, "D"), np.datetime64("NaT")])
def test_one_odd_object_is_nobody_and_everybody_else_is_who_they_are(odd):
    names = [f"u{i}".encode() for i in range(40)]
    for make in (bytearray, memoryview):
        whole = [make(name) for name in names]
        frames = [
            pd.DataFrame({"c": pd.Series(ids, dtype=object), "x": 13.4, "y": 52.5}) for ids in (whole, [*whole, odd])
        ]
        plain, mixed = (list(read(frame, ROLES["person"])) for frame in frames)
        texts = pd.DataFrame({"c": [name.decode() for name in names], "x": 13.4, "y": 52.5})
        assert plain == mixed[:-1] == list(read(texts, ROLES["person"])) and mixed[-1][0] is False


def test_an_object_that_raises_what_it_likes_is_nobody():
    class Wild(int):
        def __int__(self) -> int:
            raise RuntimeError("secret")

    frame = pd.DataFrame({"c": pd.Series([1, Wild(2), 3], dtype=object), "x": 13.4, "y": 52.5})
    assert [row[0] is False for row in read(frame, ROLES["person"])] == [False, True, False]
