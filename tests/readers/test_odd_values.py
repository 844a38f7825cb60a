"""What one row holds, however odd, is told by no error and no word, and moves nobody else's votes."""

import json
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from hazemap.engines.coordinate_readers import coordinates_of
from hazemap.errors import TableError
from hazemap.readers.csv_files import CsvDialect
from hazemap.readers.open_table import open_table
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import AtMostRows, Outside

WORLD = Quadtree.world(depth=8)
RULE = AtMostRows(1, Outside.PEOPLE)
POINT = bytes([1, 1, 0, 0, 0]) + np.array([2.0, 48.0]).tobytes()
DEEP = bytes([1, 7, 0, 0, 0, 1, 0, 0, 0]) * 300_000 + POINT
"""A collection in a collection, and so on: whoever follows it that far runs out of stack."""


def votes(source, **options) -> dict[int, int]:
    """With a fingerprint, as a run has it; and a warning is a word too."""
    table = open_table(source, key=b"k", threads=1, **options)
    table.watch(bytes(32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ResourceWarning)
        found = table.votes(WORLD, RULE)
    return dict(zip(found.cells.tolist(), found.weights.tolist(), strict=True))


def moved(without, including, **options) -> int:
    """How many votes one more row moves."""
    before, after = votes(without, **options), votes(including, **options)
    return sum(abs(after.get(cell, 0) - before.get(cell, 0)) for cell in {*before, *after})


def text(*values: bytes) -> pa.Array:
    """An array of text, of bytes that nobody has looked at."""
    return pa.array(values, pa.binary()).view(pa.string())


def times(kind: pa.DataType, last: int) -> pa.Array:
    return pa.array([0, 1, last], pa.int64()).cast(kind)


PLACES = {"lon": [2.0, 3.0, 4.0], "lat": [48.0, 49.0, 50.0]}
USERS = {"user": ["a", "b", "c"]}
ODD = {
    "an id that is no UTF-8": {"user": text(b"a", b"b", b"\xff\xfe"), **PLACES},
    "a time that is no UTF-8": {**USERS, "time": text(b"2024-01-01", b"2024-01-02", b"\xff"), **PLACES},
    "a word of a dictionary that is no UTF-8": {"user": text(b"a", b"b", b"\xff").dictionary_encode(), **PLACES},
    "far to the east": {**USERS, "lon": [2.0, 3.0, 1e306], "lat": [48.0, 49.0, 50.0]},
    "far to the west": {**USERS, "lon": [2.0, 3.0, -1e308], "lat": [48.0, 49.0, -1e308]},
    "far to the north": {**USERS, "lon": [2.0, 3.0, 4.0], "lat": [48.0, 49.0, 1e306]},
    **{
        f"{last} {unit}, {zone}": {**USERS, "time": times(pa.timestamp(unit, zone), last), **PLACES}
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC")
        for last in (2**62, -(2**63) + 1)
    },
}


@pytest.mark.parametrize("odd", ODD)
def test_one_odd_value_in_a_table_stops_nobody_else_s_from_being_read(odd):
    table = pa.table(ODD[odd])
    options = {"since": "1960-01-01"} if "time" in ODD[odd] else {}
    assert sum(votes(table.slice(0, 2), **options).values()) == 2
    assert moved(table.slice(0, 2), table, **options) <= 1


@pytest.mark.parametrize("odd", [odd for odd in ODD if " s, " not in odd])  # Parquet has no seconds
def test_one_odd_value_in_a_parquet_file_stops_nobody_else_s_from_being_read(tmp_path, odd):
    table = pa.table(ODD[odd])
    options = {"since": "1960-01-01"} if "time" in ODD[odd] else {}
    parquet.write_table(table.slice(0, 2), tmp_path / "without.parquet")
    parquet.write_table(table, tmp_path / "with.parquet")
    assert sum(votes(tmp_path / "without.parquet", **options).values()) == 2
    assert moved(tmp_path / "without.parquet", tmp_path / "with.parquet", **options) <= 1


def test_columns_that_are_checked_are_read_as_duckdb_reads_them(tmp_path):
    """Across files, in other orders of columns, filtered by time and box."""
    chance = np.random.default_rng(4)
    columns = {
        "user": [f"u{i}" for i in chance.integers(0, 60, 800)],
        "lon": chance.uniform(1, 4, 800),
        "lat": chance.uniform(47, 50, 800),
        "time": pa.array(chance.integers(0, 1 << 40, 800)).cast(pa.timestamp("ms")),
    }
    table, options = pa.table(columns), {"since": "1980-01-01"}
    parquet.write_table(table.slice(0, 300), tmp_path / "a.parquet", row_group_size=70)
    parquet.write_table(table.slice(300).select(["time", "lat", "user", "lon"]), tmp_path / "b.parquet")
    assert votes(tmp_path, **options) == votes(table, **options)
    assert votes(tmp_path) == votes(table)


def test_times_in_nanoseconds_with_a_time_zone_are_times():
    table = pa.table({**USERS, "time": times(pa.timestamp("ns", "UTC"), 10**18), **PLACES})
    assert sum(votes(table, since="1960-01-01").values()) == 3
    assert sum(votes(table, since="2000-01-01").values()) == 1


@pytest.mark.parametrize("odd", [Fraction(10**400), "\ud800", np.longdouble("1e4000"), b"\xff", [1], 10**4000])
def test_one_odd_object_in_a_data_frame_stops_nobody_else_s_from_being_read(odd):
    frame = pd.DataFrame({"user": pd.Series(["a", "b", odd], dtype=object), **PLACES})
    assert moved(frame[:2], frame) <= 1


def test_text_that_is_no_unicode_in_a_column_of_text_is_nobody_s():
    texts = pd.Series(["a", "b", "\ud800"], dtype=object).astype("string[python]")
    for users in (texts, texts.astype("category")):
        frame = pd.DataFrame({"user": users, **PLACES})
        assert moved(frame[:2], frame) == 0


def test_numbers_in_categories_are_numbers_beside_objects_too():
    plain = pd.DataFrame({"user": pd.Series(["a", "b", "c"], dtype=object), **PLACES})
    assert votes(plain.assign(lon=pd.Categorical(PLACES["lon"]))) == votes(plain)


@pytest.mark.parametrize("odd", [DEEP, POINT[:-1], b"", b"\x02" + POINT[1:], POINT[:5]])
def test_a_shape_that_no_library_can_follow_is_nowhere(tmp_path, odd):
    about = {"version": "1.0.0", "primary_column": "geometry", "columns": {"geometry": {"encoding": "WKB"}}}
    table = pa.table({**USERS, "geometry": pa.array([POINT, POINT, odd])})
    table = table.replace_schema_metadata({"geo": json.dumps(about)})
    parquet.write_table(table.slice(0, 2), tmp_path / "without.parquet")
    parquet.write_table(table, tmp_path / "with.parquet")
    assert moved(tmp_path / "without.parquet", tmp_path / "with.parquet") == 1


def test_an_empty_point_in_a_data_frame_is_nowhere():
    geopandas, shapely = pytest.importorskip("geopandas"), pytest.importorskip("shapely")
    points = [shapely.Point(2, 48), shapely.Point(3, 49), shapely.Point()]
    frame = geopandas.GeoDataFrame(USERS, geometry=points, crs=4326)
    assert moved(frame[:2], frame) == 1


def test_points_in_binary_are_read_as_geos_reads_them():
    shapely = pytest.importorskip("shapely")
    shapes = shapely.from_wkt(
        [
            *("POINT (1 2)", "POINT Z (1 2 3)", "POINT M (1 2 3)", "POINT ZM (1 2 3 4)", "POINT EMPTY"),
            *("MULTIPOINT ((1 2))", "MULTIPOINT Z ((1 2 3))", "MULTIPOINT ((1 2), (3 4))", "MULTIPOINT EMPTY"),
            *(
                "LINESTRING (0 0, 1 1)",
                "MULTILINESTRING ((0 0, 1 1))",
                "GEOMETRYCOLLECTION (POINT (1 2))",
                "POINT (-0.5 1e300)",
            ),
        ]
    )
    shapes = np.concatenate([shapes, shapely.set_srid(shapes, 4326)])
    for order in (0, 1):
        for flavor in ("iso", "extended"):
            written = shapely.to_wkb(shapes, byte_order=order, flavor=flavor, include_srid=flavor == "extended")
            column = pa.array([None, *written, None]).slice(1, len(shapes))
            x, y = coordinates_of(column)
            there = np.where(shapely.is_empty(shapes), None, shapes)  # GEOS has no x for a point that is empty
            there = np.where(shapely.get_num_geometries(there) == 1, shapely.get_geometry(there, 0), there)
            there = np.where(shapely.get_type_id(shapes) == 7, None, there)  # a collection of one is no point
            assert np.array_equal(x, shapely.get_x(there), equal_nan=True)
            assert np.array_equal(y, shapely.get_y(there), equal_nan=True)


def feature(who: str) -> bytes:
    place = {"type": "Point", "coordinates": [2.0, 48.0]}
    return json.dumps({"type": "Feature", "properties": {"user": who}, "geometry": place}).encode()


@pytest.mark.parametrize("lines", [False, True])
def test_one_odd_feature_hides_no_other_one(tmp_path, lines):
    """In a collection, too: what stands between two commas is one feature's, whatever it is."""
    deep = b'{"properties": {"user": "zed", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    long = b'{"properties": {"user": "zed", "x": "' + b"x" * (17 << 20) + b'"}}'
    odd = [deep, long, b'{"a": nope}', b"x", b"}", b'{"a": 1} x', b'{"a": "\\\\\\"]},"}', b"7", b'["]", "["]', b"{]"]
    odd += [b'{"properties": {"user": %s}}' % (b"9" * 5000), feature("zed").replace(b"zed", b"z\xff"), b"-", b'"{"']
    good, found = [feature(f"u{i}") for i in range(8_000)], []
    for features in (good, [*odd, *good], [*good, *odd[2:]]):
        path = tmp_path / ("rows.geojsonl" if lines else "rows.geojson")
        between = b"\n" if lines else b","
        body = between.join(features)
        path.write_bytes(body if lines else b'{"type": "FeatureCollection", "features": [' + body + b"]}")
        found.append(votes(path, person="user"))
    assert found[0] == found[1] == found[2] and sum(found[0].values()) == 8_000


def test_two_ids_that_are_no_utf8_are_not_one_person_in_geojson(tmp_path):
    lines = [feature("zed").replace(b"zed", odd) for odd in (b"z\xff", b"z\xfe")]
    (tmp_path / "rows.geojsonl").write_bytes(b"\n".join(lines))
    assert votes(tmp_path / "rows.geojsonl", person="user") == {}


def test_the_statement_says_what_long_records_over_several_lines_may_do(tmp_path):
    """What comes after the longest record that there may be, inside its quotes, is read as lines of others."""
    long = "zed,1,1," + '"' + "x" * (1 << 20) + "\nann,2,48,\n" + '"'
    (tmp_path / "rows.csv").write_text(f"user,lon,lat,note\n{long}\n")
    dialect = CsvDialect(multiline=True)
    assert sum(votes(tmp_path / "rows.csv", dialect=dialect).values()) == 1
    assert "well formed and no longer than 1,048,576 bytes" in dialect.assumptions[0]


def test_a_type_that_cannot_be_read_is_refused_in_words_where_it_is_named():
    odd = pa.array([Decimal(1)], pa.decimal256(60, 0))
    table = pa.table({"user": [1], "lon": [13.4], "lat": [52.5], "odd": odd})
    assert sum(votes(table).values()) == 1
    with pytest.raises(TableError, match=r"the column 'odd' cannot tell people apart: it is decimal256\(60, 0\)"):
        open_table(table, person="odd")
