"""Values, features and ids of which each is read by itself: at the edges of what is read, against plain Python."""

import json
import math
import random
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from hazemap.engines.person_ids import TextIds, WholeNumbers, ids_of
from hazemap.errors import FileError, TableError
from hazemap.readers import point_files
from hazemap.readers import value_coercion as loose_values
from hazemap.readers.point_files import GeoJsonFeatures, features_of, open_geojson
from hazemap.readers.value_coercion import numbers_of, text_of
from hazemap.tables.keyed_hash import KeyWords, seeds

TEXTS = [
    *((value, "7") for value in (7, 7.0, "7", Decimal("7.00"), np.int8(7), np.float32(7), Fraction(7), b"7")),
    *(("", ""), ("\ud800", None), (b"\xff", None), ("é".encode(), "é"), (None, None), ([7], None), ({}, None)),
    *((True, "true"), (False, "false"), (np.True_, "true"), (np.False_, "false")),
    *((-3, "-3"), (0.0, "0"), (-0.0, "0"), (1.5, "1.5"), (math.nan, None), (math.inf, None), (-math.inf, None)),
    *((2.0**53 - 1, "9007199254740991"), (2.0**53, "9007199254740992.0"), (-(2.0**53), "-9007199254740992.0")),
    *((Decimal("0.50"), "0.5"), (Decimal("100"), "100"), (Decimal("1E+3"), "1000"), (Decimal("-0.0"), "0")),
    *((Decimal("NaN"), None), (Decimal("Infinity"), None), (Decimal("1E-3"), "0.001"), (Decimal("10.10"), "10.1")),
    *((Decimal("1E9999"), "1" + "0" * 9999), (Decimal("1E10000"), None), (Decimal("1E-10000"), None)),
    *((Decimal("1E-9999"), "0." + "0" * 9998 + "1"), (Fraction(1, 4), "0.25"), (Fraction(10**400), None)),
    *((date(2024, 6, 1), "2024-06-01"), (datetime(2024, 6, 1, 12), "2024-06-01 12:00:00"), (pd.NaT, None)),
    *((UUID(int=1), "00000000-0000-0000-0000-000000000001"), (2**9_998, str(2**9_998)), (2**9_999, None)),
    *((-(2**9_998), str(-(2**9_998))), (2**9_999 - 1, str(2**9_999 - 1)), (1j, None)),
]


@pytest.mark.parametrize(("value", "text"), TEXTS, ids=lambda each: repr(each)[:20])
def test_a_value_has_the_text_of_what_it_is(value, text):
    assert text_of(value) == text


def test_numbers_of_texts_are_those_of_csv_however_many_are_read_at_once(monkeypatch):
    monkeypatch.setattr(loose_values, "_AT_ONCE", 3)
    long = "1" + "0" * 9_999
    texts = ["1.5", None, "", "x", "٣", " 2 ", "1e3", long[:300], long + "0", "7" * 9_999 + ".", "-0", "8"]
    for end in range(len(texts) + 1):
        found = numbers_of(texts[:end])
        wanted = [1.5, math.nan, math.nan, math.nan, math.nan, 2, 1000, 1e299, math.nan, math.inf, 0, 8][:end]
        assert np.array_equal(found, wanted, equal_nan=True) and found.dtype == np.float64
    assert np.isnan(numbers_of([None, ""])).all() and math.isinf(numbers_of([long])[0])


# GeoJSON ---------------------------------------------------------------------------------------------------------


def some_json(chance: random.Random, depth: int = 0) -> object:
    kind = chance.randrange(9 if depth < 3 else 6)
    if kind < 6:
        return chance.choice((None, True, 7, -1.5, 123456, '"', "a,b", "\\", '\\"', "}]", "{[", "é", "", 'x"y,', 0))
    size = chance.randrange(4)
    if kind < 8:
        return [some_json(chance, depth + 1) for _ in range(size)]
    return {chance.choice('ab"\\{'): some_json(chance, depth + 1) for _ in range(size)}


def read(file, text: str) -> list:
    file.write_text(text, encoding="utf-8")
    return list(features_of(str(file)))


@pytest.mark.parametrize("chunk", [1, 2, 7, 64, 1 << 20])
def test_features_are_those_of_json_wherever_the_text_is_held(tmp_path, chunk, monkeypatch):
    """Each is read by itself, though what is no JSON stands between them."""
    monkeypatch.setattr(point_files, "CHUNK", chunk)
    chance = random.Random(chunk)
    broken = ["nope", "{,}", '{"a"}', "[1,,2]", '"\\q"', "{]}", "1 2", "tru", '{"a":1}x', '{"a":1} {"b":[2,3]}', "NaNa"]
    for _ in range(25):
        wanted, parts = [], []
        for _ in range(chance.randrange(7)):
            value = some_json(chance)
            good = chance.random() < 0.8
            wanted.append(value if good else None)
            parts.append(json.dumps(value, ensure_ascii=chance.random() < 0.5) if good else chance.choice(broken))
        blank, comma = chance.choice(("", " ", "\n\t \r")), chance.choice((",", " ,", ", "))
        members = chance.choice(("", '"type": "x", ', '"n": {"a": [1]}, "m": 12 ,'))
        text = f'{blank}{{{blank}{members}{blank}"features"{blank}:{blank}[{blank}{comma.join(parts)}{blank}]}}'
        assert read(tmp_path / "some.geojson", text) == wanted, text


def test_a_feature_is_as_long_as_the_longest_and_not_one_sign_longer(tmp_path, monkeypatch):
    monkeypatch.setattr(point_files, "LONGEST", 20)
    for chunk in (1, 5, 30, 1 << 20):
        monkeypatch.setattr(point_files, "CHUNK", chunk)
        for size in (18, 19, 20, 21, 22, 60):
            text, odd = json.dumps("x" * (size - 2)), "x" * size
            found = read(tmp_path / "some.geojson", f'{{"features": [1,{text},{odd},[{text[:-4]}"],2]}}')
            longer = "x" * (size - 5)
            assert found == [1, "x" * (size - 2) if size <= 20 else None, None, [longer] if size - 1 <= 20 else None, 2]
            lines = read(tmp_path / "some.geojsonl", f"1\n{text}\n{odd}\n2")
            assert lines == [1, *(["x" * (size - 2)] if size <= 20 else []), 2], size


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "does not begin with an object"),
        ("{}", "holds no features"),
        ('{"features": {}}', "holds no features"),
        ('{"features" []}', "not well-formed"),
        ('{"a": 1', "not well-formed"),
        ('{"features": [1, 2', "not well-formed"),
        ('{"features": ["', "not well-formed"),
        ('{"crs": {"properties": {"name": "EPSG:3857"}}, "features": []}', "another reference system"),
        ('{"crs": 7, "features": []}', "another reference system"),
        ("", "not well-formed"),
    ],
)
def test_a_collection_that_is_none_or_does_not_end_is_refused(tmp_path, text, says):
    with pytest.raises((FileError, TableError), match=says):
        read(tmp_path / "some.geojson", text)


@pytest.mark.parametrize("crs", ["null", '{"properties": {"name": "urn:ogc:def:crs:OGC:1.3:CRS84"}}'])
def test_wgs84_may_be_declared_and_lines_may_begin_with_signs_of_records(tmp_path, crs):
    assert read(tmp_path / "some.geojson", f'\ufeff{{"crs": {crs}, "features": [1, 2]}}') == [1, 2]
    for name in ("EPSG:4326", "urn:ogc:def:crs:EPSG::4326"):
        assert read(
            tmp_path / "some.geojson", f'{{"crs": {{"properties": {{"name": "{name}"}}}}, "features": [1]}}'
        ) == [1]
    assert read(tmp_path / "some.geojsons", '\x1e1\r\n\t {"a": 2} \n\n\x1e"x"\nnope\n[1') == [1, {"a": 2}, "x"]
    digits = "1" * 3_999
    assert read(tmp_path / "some.GEOJSONL", f"{digits}\n1{digits}\n7") == [int(digits), None, 7]


def test_features_are_points_with_the_texts_of_properties_that_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(point_files, "ROWS", 4)
    places = [[1, 2], [1.5, -2, 9], [True, 1], ["1", 2], [10**400, 3], [1], [None, 4]]
    some = [
        {"geometry": {"type": "Point", "coordinates": place}, "properties": {"a": at}}
        for at, place in enumerate(places)
    ]
    some += [
        {"geometry": {"type": "Line", "coordinates": [1, 2]}},
        7,
        None,
        {"properties": [1]},
        {"properties": {"b": "x"}},
    ]
    some += [{"properties": {"a": "y" * 10_000}}, {"properties": {"a": "y" * 10_001}}]
    (tmp_path / "some.geojson").write_text(json.dumps({"features": some}))
    source = open_geojson("some", str(tmp_path / "some.geojson"), ["a", "geometry", "a"])
    [part] = source.parts
    feed = part.feed
    assert isinstance(feed, GeoJsonFeatures) and feed.properties == ("a", "geometry") and feed.geometry == "geometry_"
    assert part.kinds == {"a": "VARCHAR", "geometry": "VARCHAR", "geometry_": "STRUCT(x DOUBLE, y DOUBLE)"}
    assert (source.rows, source.geometry.column, json.loads(source.geometry.crs)) == (None, "geometry_", "OGC:CRS84")
    numbers = feed.numbers["a"]
    assert feed.columns == ("a", "geometry", numbers, feed.numbers["geometry"], "geometry_")
    batches = list(feed.batches([numbers, "geometry_", "a"]))
    assert [batch.num_rows for batch in batches] == [4, 4, 4, 2]
    rows = pa.Table.from_batches(batches).to_pylist()
    assert [row["a"] for row in rows] == [*"0123456", *[None] * 5, "y" * 10_000, None]
    assert np.array_equal([row[numbers] for row in rows], [*range(7), *[math.nan] * 7], equal_nan=True)
    found = [(row["geometry_"]["x"], row["geometry_"]["y"]) for row in rows]
    nan = math.nan
    wanted = [(1, 2), (1.5, -2), (nan, 1), (nan, 2), (nan, 3), (nan, nan), (nan, 4), *[(nan, nan)] * 7]
    assert np.array_equal(found, wanted, equal_nan=True)


# Ids -------------------------------------------------------------------------------------------------------------


def parts(*kinds: str) -> list[SimpleNamespace]:
    return [SimpleNamespace(kinds={"user": kind}) for kind in kinds]


FLOAT, DOUBLE = (
    f'CASE WHEN "u" = floor("u") AND abs("u") < {most} THEN TRY_CAST("u" AS BIGINT) END' for most in (2**24, 2**53)
)


BYTES = 'CASE WHEN octet_length("u") <= 10000 THEN "u" END'


CAST = 'TRY_CAST("u" AS TIMESTAMP)'
MOMENT = f"TRY_CAST(CASE WHEN epoch_us({CAST}) >= -9223372022400000000 THEN {CAST} END AS VARCHAR)"


@pytest.mark.parametrize(
    ("kinds", "whole", "sql"),
    [
        (["INTEGER"], True, ['CAST("u" AS BIGINT)']),
        (["BIGINT", "FLOAT", "DOUBLE"], True, ['CAST("u" AS BIGINT)', FLOAT, DOUBLE]),
        (["UBIGINT", "UBIGINT"], True, ['"u"', '"u"']),
        (["UBIGINT", "INTEGER"], False, ['TRY_CAST("u" AS VARCHAR)', 'CAST(CAST("u" AS BIGINT) AS VARCHAR)']),
        (["VARCHAR", "DOUBLE"], False, ['"u"', f"CAST({DOUBLE} AS VARCHAR)"]),
        (["BLOB"], False, [BYTES]),
        (["BLOB", "VARCHAR", "UUID"], False, [BYTES, 'encode("u")', 'encode(TRY_CAST("u" AS VARCHAR))']),
        (["DECIMAL(9,2)"], False, ["rtrim(rtrim(TRY_CAST(\"u\" AS VARCHAR), '0'), '.')"]),
        (["DECIMAL(38,0)", "DECIMAL(9, 0)"], False, ['TRY_CAST("u" AS VARCHAR)'] * 2),
        (["ENUM('a', 'b')"], False, ['TRY_CAST("u" AS VARCHAR)']),
        (["BOOLEAN", "BOOLEAN"], False, ['TRY_CAST("u" AS VARCHAR)'] * 2),
        (["TIMESTAMP_S"], False, [MOMENT]),
        (["TIMESTAMP_MS"], False, [MOMENT]),
        (["TIMESTAMP WITH TIME ZONE"], False, ['TRY_CAST("u" AS VARCHAR)']),
    ],
    ids=str,
)
def test_ids_are_read_by_the_types_that_are_declared(kinds, whole, sql):
    found, texts = ids_of("user", '"u"', parts(*kinds))
    assert (isinstance(found, WholeNumbers), list(texts)) == (whole, sql)


@pytest.mark.parametrize(
    "kinds", [["BOOLEAN", "INTEGER"], ["DATE", "VARCHAR"], ["TIMESTAMP", "TIMESTAMP_S"], ["MAP(A, B)"]]
)
def test_ids_whose_texts_would_differ_or_that_have_none_are_refused(kinds):
    with pytest.raises(TableError, match="cannot tell people apart"):
        ids_of("user", '"u"', parts(*kinds))


def test_texts_are_coded_row_by_row_and_missing_ones_are_nobody_wherever_a_column_begins():
    key, column = KeyWords.expanded(3, "x"), pa.array(["left", "", None, "abc", "ü", "abc", "right"])
    for some in (column, column[1:6], column[2:3], column[1:2], column[:0], pa.array(["", ""])):
        found = TextIds().coded(some, key)
        each = [some[at].as_py() for at in range(len(some))]
        assert found.known.tolist() == [text is not None for text in each]
        data, offsets = found.texts
        own = [data[a:b].tobytes().decode() for a, b in pairwise(offsets)]
        assert own == [text or "" for text in each]
        assert len({(seed, text) for seed, text in zip(found.seeds.tolist(), own, strict=True)}) == len(set(own))
    numbers = WholeNumbers().coded(pa.array([7, None, -1]), key)
    assert numbers.known.tolist() == [True, False, True] and numbers.texts is None
    assert numbers.seeds[[0, 2]].tolist() == seeds(np.array([7, 2**64 - 1], np.uint64), key).tolist()
    assert (TextIds().read_as, WholeNumbers().read_as) == ("text, letter by letter", "whole numbers")
