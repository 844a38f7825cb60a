"""Whatever people have their rows in is opened, and what would mislead is refused."""

import uuid
from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, dataset, parquet
from tests.tables.people import QUADTREE, crowd, same

from hazemap.engines.memory import MemoryTable
from hazemap.errors import FileError, InputError, TableError
from hazemap.readers.column_roles import utc
from hazemap.readers.open_table import open_table
from hazemap.spatial.bounding_box import Box
from hazemap.tables.contribution_bounding import AtMostRows, OneVote, RowIsPerson

MEMORY = crowd(300, 4_000)
ROWS = pa.table({"user": MEMORY.person, **MEMORY.columns})
RULE = AtMostRows(2)
EXPECTED = MEMORY.votes(QUADTREE, RULE)
SMALL = pa.table({"user": [1, 2], "lon": [13.3, 13.4], "lat": [52.5, 52.4]})


def votes(source, **options):
    return open_table(source, key=MEMORY.key, **options).votes(QUADTREE, RULE)


def people(source, **options) -> int:
    """How many people are anywhere on the map."""
    return int(open_table(source, **options).votes(QUADTREE, AtMostRows(1)).weights.sum())


# What can be opened


def test_one_parquet_file(tmp_path):
    parquet.write_table(ROWS, tmp_path / "rows.parquet", row_group_size=500)
    assert same(votes(tmp_path / "rows.parquet"), EXPECTED)
    assert same(votes(str(tmp_path / "rows.parquet")), EXPECTED)


def test_a_folder_and_a_pattern_are_read_in_the_order_of_names(tmp_path):
    folder = tmp_path / "rows" / "of 2024"
    folder.mkdir(parents=True)
    for i, at in enumerate(range(0, 4_000, 1_000)):
        parquet.write_table(ROWS.slice(at, 1_000), folder / f"part-{i}.parquet")
    (folder / "_SUCCESS").touch()
    (folder / ".part-9.parquet").write_text("not one of them")
    assert same(votes(tmp_path / "rows"), EXPECTED)
    assert same(votes(str(tmp_path / "rows" / "**" / "*.parquet")), EXPECTED)
    assert same(votes(tmp_path / "rows" / "*" / "part-?.parquet"), EXPECTED)


def test_files_may_have_their_columns_in_any_order_and_width(tmp_path):
    parquet.write_table(ROWS.slice(0, 2_000), tmp_path / "a.parquet")
    shuffled = ROWS.slice(2_000).select(["lat", "user", "weight", "lon"])
    shuffled = shuffled.set_column(0, "lat", shuffled["lat"].cast(pa.float64())).append_column("more", [[1] * 2_000])
    parquet.write_table(shuffled, tmp_path / "b.parquet")
    assert same(votes(tmp_path), EXPECTED)


def test_odd_names_of_files_and_columns(tmp_path):
    odd = tmp_path / 'it\'s [1] *really* odd? "yes".parquet'
    renamed = ROWS.rename_columns(['the "user", id', "Lon; drop table rows", "lat'", "weight"])
    parquet.write_table(renamed, odd)
    parquet.write_table(SMALL, tmp_path / 'it\'s 1 really odd! "yes".parquet')
    columns = {"person": 'the "user", id', "lon": "Lon; drop table rows", "lat": "lat'"}
    assert same(votes(odd, **columns), EXPECTED)


@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
def test_csv(tmp_path, packed):
    path, plain = tmp_path / f"rows.csv{packed}", tmp_path / "plain.csv"
    csv.write_csv(ROWS, plain)
    with (
        pa.CompressedOutputStream(str(path), {".gz": "gzip", ".zst": "zstd"}[packed])
        if packed
        else path.open("wb") as out
    ):
        out.write(plain.read_bytes())
    whole = open_table(path, value="weight").votes(QUADTREE, RowIsPerson())
    assert same(whole, MEMORY.votes(QUADTREE, RowIsPerson()))
    everybody = AtMostRows(4_000)
    assert same(open_table(path).votes(QUADTREE, everybody), MEMORY.votes(QUADTREE, everybody))


def test_csv_with_words_among_the_numbers_and_ids_that_turn_into_text_late(tmp_path):
    lines = [f"{i};13.3;52.5" for i in range(30_000)] + ["A-1;13.3;52.5", "B-1;n/a;52.5", "C-1;;52.5", ";13.3;52.5"]
    (tmp_path / "rows.csv").write_text("\n".join(["User ID;Longitude;Latitude", *lines]))
    assert people(tmp_path / "rows.csv") == 30_001


def test_csv_of_other_systems(tmp_path):
    (tmp_path / "rows.csv").write_bytes('\ufeff"User";"Lon" ; Lat\r\n"ä";" 13.3";52.5\r\nb;13.3;52.5 \r\n'.encode())
    assert people(tmp_path / "rows.csv") == 2
    (tmp_path / "rows.tsv").write_text("User\tLon\tLat\n1\t13.3\t52.5\n")
    assert people(tmp_path / "rows.tsv") == 1


def test_csv_tells_no_progress_because_it_has_no_number_of_rows(tmp_path):
    csv.write_csv(ROWS, tmp_path / "rows.csv")
    told: list[float] = []
    table = open_table(tmp_path / "rows.csv", progress=told.append)
    table.votes(QUADTREE, RULE)
    assert told == [] and table.report.rows == 4_000


def test_csv_files_of_a_folder(tmp_path):
    csv.write_csv(ROWS.slice(0, 2_500), tmp_path / "a.csv")
    csv.write_csv(ROWS.slice(2_500).select(["lat", "lon", "weight", "user"]), tmp_path / "b.csv")
    everybody = AtMostRows(4_000)
    assert same(open_table(tmp_path).votes(QUADTREE, everybody), MEMORY.votes(QUADTREE, everybody))


FRAMES = {
    "arrow table": lambda: ROWS,
    "arrow batch": lambda: ROWS.combine_chunks().to_batches()[0],
    "arrow stream, once": lambda: ROWS.to_reader(max_chunksize=700),
    "arrow dataset": lambda: dataset.dataset(ROWS),
    "pandas": ROWS.to_pandas,
    "polars": lambda: pytest.importorskip("polars").from_arrow(ROWS),
}


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_frames(frame):
    table = open_table(frame(), key=MEMORY.key, value="weight")
    for rule in (RULE, OneVote(), AtMostRows(3)):  # a stream that can be read once is read for every rule
        assert same(table.votes(QUADTREE, rule), MEMORY.votes(QUADTREE, rule))


def geodataframe(crs=4326):
    gpd = pytest.importorskip("geopandas")
    points = gpd.points_from_xy(ROWS["lon"].to_numpy(), ROWS["lat"].to_numpy())
    return gpd.GeoDataFrame({"user": MEMORY.person}, geometry=points, crs=4326).to_crs(crs)


def near(one, other) -> bool:
    """Points go through another reference system and back: one in a thousand may change its cell."""
    return abs(one.weights.sum() - other.weights.sum()) <= 4 and len(set(one.cells) ^ set(other.cells)) <= 2


@pytest.mark.parametrize("crs", [4326, 3857, 32633])
@pytest.mark.parametrize("encoding", ["WKB", "geoarrow"])
def test_geoparquet_in_any_reference_system(tmp_path, crs, encoding):
    geodataframe(crs).to_parquet(tmp_path / "rows.parquet", geometry_encoding=encoding)
    found = votes(tmp_path / "rows.parquet")
    assert same(found, EXPECTED) if crs == 4326 else near(found, EXPECTED)


@pytest.mark.parametrize("crs", [4326, 3857])
def test_geodataframes(crs):
    found = votes(geodataframe(crs))
    assert same(found, EXPECTED) if crs == 4326 else near(found, EXPECTED)


@pytest.mark.parametrize("encoding", ["WKB", "geoarrow"])
def test_geoarrow_tables_and_streams(encoding):
    arrow = pa.table(geodataframe(3857).to_arrow(geometry_encoding=encoding, interleaved=False))
    assert near(votes(arrow), EXPECTED)
    assert near(votes(arrow.to_reader()), EXPECTED)


def test_a_geometry_gives_way_to_columns_that_are_named():
    frame = geodataframe().assign(lon=13.3, lat=52.5)
    assert len(votes(frame).cells) > 1
    assert len(votes(frame, lon="lon").cells) == 1


# Ids


@pytest.mark.parametrize(
    "ids",
    [
        pa.array([2**64 - 1, 2**63, 1], pa.uint64()),
        pa.array([-1, 2**31 - 1, 1], pa.int32()),
        pa.array([1.0, 2.0**53 - 1, -3.0]),
        pa.array(["a", "b", "c"]),
        pa.array(["a", "b", "c"], pa.large_string()),
        pa.array(["a", "b", "c"], pa.string_view()),
        pa.array(["a", "b", "c"]).dictionary_encode(),
        pa.array([b"a", b"b", b"b\0"]),
        pa.array([Decimal(2**70), Decimal(2**70 + 1), Decimal(1)], pa.decimal128(38, 0)),
        pa.array([uuid.UUID(int=i).bytes for i in (0, 1, 2**127)], pa.uuid()),
    ],
    ids=lambda ids: str(ids.type)[:20],
)
def test_every_kind_of_id_tells_people_apart(ids):
    twice = pa.chunked_array([ids, ids])
    assert people(pa.table({"user": twice, "lon": [13.3] * 6, "lat": [52.5] * 6})) == 3


def test_an_index_of_pandas_that_has_a_name_is_a_column():
    import pandas as pd

    from hazemap.spatial.quadtree import Quadtree

    frame = pd.DataFrame({"user": [1, 1, 2], "lon": 2.0, "lat": 48.0, "day": 1})
    for table in (frame.set_index("user"), frame.set_index(["user", "day"]), frame.rename_axis("lon")):
        assert open_table(table, person="user").votes(Quadtree.world(depth=3), AtMostRows(1)).weights.sum() == 2


def test_pandas_makes_whole_ids_floating_where_some_are_missing():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"user": [7, None, 7, 8], "lon": [13.3] * 4, "lat": [52.5] * 4})
    table = open_table(frame)
    assert table.votes(QUADTREE, AtMostRows(1)).weights.sum() == 2
    assert table.report.without_person == 1


def test_whole_ids_are_the_same_people_in_floating_point():
    floating = ROWS.set_column(0, "user", ROWS["user"].cast(pa.float64()))
    assert same(votes(floating), EXPECTED)


@pytest.mark.parametrize(
    "ids",
    [pa.array([1.5, 2.0]), pa.array([2.0**53, 1.0]), pa.array([2.0**24, 1.0], pa.float32()), pa.array([np.inf, 1])],
)
def test_a_row_whose_id_may_be_that_of_several_people_is_nobody_s(ids):
    table = open_table(pa.table({"user": ids, "lon": [13.3] * 2, "lat": [52.5] * 2}))
    assert table.votes(QUADTREE, AtMostRows(1)).weights.sum() == 1
    assert table.report.without_person == 1


def test_a_list_is_nobody():
    table = pa.table({"user": [[1], [2]], "lon": [13.3] * 2, "lat": [52.5] * 2})
    with pytest.raises(TableError, match=r"'user'.*tell people apart"):
        open_table(table, person="user")
    guessed = open_table(table)
    assert guessed.votes(QUADTREE, RowIsPerson()).weights.sum() == 2
    with pytest.raises(TableError, match=r"'user'.*each row is a person"):
        guessed.votes(QUADTREE, RULE)


# Columns


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (["User_ID", "Longitude", "LATITUDE"], {}),
        (["uid", "lng", "lat"], {}),
        (["device id", "x", "y"], {}),
        (["who", "Easting", "lat"], {"person": "who", "lon": "easting"}),
    ],
)
def test_columns_are_guessed_or_named(names, options):
    assert people(SMALL.rename_columns(names), **options) == 2


def test_degrees_win_over_x_and_y():
    both = SMALL.append_column("x", [[1e6, 1e6]]).append_column("y", [[1e6, 1e6]])
    assert people(both) == 2


def test_columns_called_x_and_y_are_refused_where_nothing_else_says_that_they_are_degrees():
    bare = SMALL.rename_columns(["user", "X", "y"])
    with pytest.raises(TableError, match=r"'X' and 'y'.*--lon X --lat y.*a box in degrees; say --crs"):
        open_table(bare, unplaced="say --crs")
    for table, named in (
        (bare, {"lon": "X", "lat": "y"}),
        (SMALL.rename_columns(["user", "x", "latitude"]), {}),
        (SMALL, {}),
    ):
        assert people(table, unplaced="say --crs", **named) == 2


@pytest.mark.parametrize(
    ("table", "options", "says"),
    [
        (SMALL.rename_columns(["user", "a", "b"]), {}, r"longitude; found user, a, b.*--lon.*lon=…"),
        (SMALL.append_column("lng", [[1.0, 1.0]]), {}, r"lon and lng could each be the longitude"),
        (SMALL, {"lat": "latitude"}, r"'latitude'; found only user, lon, lat"),
        (SMALL, {"person": "who"}, r"person was said to be in column 'who'"),
        (SMALL, {"value": "w"}, r"weight.*'w'"),
        (SMALL, {"since": "2024-01-01"}, r"time; found user, lon, lat.*--time"),
        (SMALL.set_column(1, "lon", [["13.3", "13.4"]]), {}, r"longitude must be numbers; the column 'lon' is VARCHAR"),
        (SMALL.append_column("ts", [[1, 2]]), {"until": "2024-01-01"}, r"'ts' is BIGINT"),
    ],
)
def test_columns_that_do_not_serve_are_refused_with_what_to_do(table, options, says):
    with pytest.raises(TableError, match=says):
        open_table(table, **options)


def test_two_columns_of_people_matter_only_to_rules_about_people():
    table = open_table(SMALL.append_column("device_id", [[1, 1]]))
    assert table.votes(QUADTREE, RowIsPerson()).weights.sum() == 2
    with pytest.raises(TableError, match="user and device_id could each be the person"):
        table.votes(QUADTREE, RULE)


# Times


def timed(kind) -> pa.Table:
    times = pa.array(["2024-05-31T23:00:00", "2024-06-01T00:00:00", "2024-06-01T12:00:00", None])
    if kind is not None:
        times = times.cast(pa.timestamp("us")).cast(kind)
    table = pa.table({"user": [1, 2, 3, 4], "lon": [13.3] * 4, "lat": [52.5] * 4})
    return table.append_column("ts", times)


@pytest.mark.parametrize(
    "kind", [pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "America/New_York")], ids=str
)
def test_times_are_from_until_before_and_in_utc(kind):
    assert people(timed(kind), since="2024-06-01") == 2
    assert people(timed(kind), until="2024-06-01") == 1
    assert people(timed(kind), since="2024-06-01T02:00:00+02:00", until="2024-06-01T12:00:00Z") == 1
    assert people(timed(kind)) == 4


def test_dates_and_texts_are_times_too(tmp_path):
    assert people(timed(pa.date32()), since="2024-06-01") == 2
    csv.write_csv(timed(None), tmp_path / "rows.csv")
    assert people(tmp_path / "rows.csv", since="2024-06-01", until="2024-06-01T12:00:00") == 1
    american = "user,lon,lat,Date\n1,13.3,52.5,5/31/2024 23:00:00\n2,13.3,52.5,6/1/2024 0:00:00\n"
    (tmp_path / "american.csv").write_text(american)
    assert people(tmp_path / "american.csv") == 2
    assert people(tmp_path / "american.csv", since="2024-06-01") == 0, "a text that is no time is at no time"


@pytest.mark.parametrize("kind", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("options", [{"since": "1960-01-01"}, {"timed": True}, {"person": "ts"}], ids=str)
def test_a_time_beyond_all_calendars_stops_nobody_else_s_from_being_read(kind, options):
    times = pa.array([2**62, -(2**62), 0], pa.int64()).cast(pa.timestamp(kind))
    table = pa.table({"user": [1, 2, 3], "lon": [13.3] * 3, "lat": [52.5] * 3, "ts": times})
    assert people(table, **options) >= 1


SPELLED = [
    "2024-06-01T10:00:00Z",
    "20240601T100000Z",
    "2024-06-01 12:00:00 +0200",
    "2024-06-01 12:00+02",
    "2024-05-31 34:00",
]
NO_TIMES = ["2024-06-01 10:00 Asia/Tokyo", "2024-06-01 10:00 BST", "1717236000", "1.6.2024", "noon", "", None]


@pytest.mark.parametrize("kind", ["csv", "parquet", "arrow", "pandas", "string_view", "dictionary"])
def test_a_text_is_the_same_time_in_every_source_whatever_stands_beside_it(tmp_path, kind):
    """The first row moves nobody's time, and each of the others is in its own hour or in none."""
    texts = [NO_TIMES[0], *SPELLED, *NO_TIMES] * 500
    source = pa.table(
        {"user": range(len(texts)), "lon": [13.3] * len(texts), "lat": [52.5] * len(texts), "time": texts}
    )
    if kind == "csv":
        csv.write_csv(source, tmp_path / "rows.csv")
        source = tmp_path / "rows.csv"
    elif kind == "parquet":
        parquet.write_table(source, tmp_path / "rows.parquet")
        source = tmp_path / "rows.parquet"
    elif kind == "pandas":
        source = source.to_pandas().astype({"time": object})
    elif kind != "arrow":
        column = pa.array(texts)
        column = column.dictionary_encode() if kind == "dictionary" else column.cast(pa.string_view())
        source = source.set_column(3, "time", column)
    assert people(source, since="2024-06-01T10:00", until="2024-06-01T10:00:01") == 500 * len(SPELLED)
    assert people(source, since="1000-01-01") == 500 * len(SPELLED)
    assert people(source) == len(texts)


def test_one_column_may_have_several_roles(tmp_path):
    """Where nobody but the feed looks at it, too."""
    rows = pa.table({"lon": [13.3] * 3, "lat": [52.5] * 3, "when": ["2024-06-01", "2024-06-02", "2024-06-02"]})
    csv.write_csv(rows, tmp_path / "rows.csv")
    parquet.write_table(rows, tmp_path / "rows.parquet")
    frame = rows.to_pandas().astype({"when": object})
    for source in (rows, frame, tmp_path / "rows.csv", tmp_path / "rows.parquet"):
        assert people(source, person="when", time="when", since="2024-06-02") == 1
        assert people(source, person="when", time="when", timed=True) == 2


def test_numbers_are_times_only_in_the_unit_that_is_declared(tmp_path):
    numbers = pa.table({"user": [1, 2, 3], "lon": [13.3] * 3, "lat": [52.5] * 3, "ts": [1717236000, 1717236001, 2**62]})
    csv.write_csv(numbers, tmp_path / "rows.csv")
    for source in (numbers, tmp_path / "rows.csv", numbers.set_column(3, "ts", numbers["ts"].cast("string"))):
        window = {"since": "2024-06-01T10:00", "until": "2024-06-01T10:00:01"}
        assert people(source, time_format="seconds", **window) == 1
        assert people(source, time_format="milliseconds", since="1970-01-20", until="1970-01-21") == 2
    assert people(tmp_path / "rows.csv", since="1970-01-01") == 0
    with pytest.raises(TableError, match="say --time-format seconds or milliseconds"):
        people(numbers, since="1970-01-01")
    with pytest.raises(TableError, match="leave --time-format out"):
        people(timed(pa.timestamp("s")), since="1970-01-01", time_format="seconds")


def test_files_of_one_table_may_hold_times_and_texts_of_times(tmp_path):
    parquet.write_table(timed(None), tmp_path / "a.parquet")
    parquet.write_table(timed(pa.timestamp("us")), tmp_path / "b.parquet")
    parquet.write_table(timed(pa.date32()), tmp_path / "c.parquet")
    assert people(tmp_path, since="2024-06-01T12:00", person=None) == 1
    assert open_table(tmp_path, since="2024-06-01").votes(QUADTREE, RowIsPerson()).weights.sum() == 6


def test_a_time_that_is_none_is_refused():
    with pytest.raises(InputError, match="'yesterday'"):
        open_table(timed(pa.timestamp("s")), since="yesterday")


# Files that do not serve


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("none.parquet", None, "no file has the name or pattern"),
        ("empty.parquet", b"", "is empty"),
        ("empty.csv", b"", "is empty"),
        ("wrong.parquet", b"PAR1 is not enough, really", "not a Parquet file"),
        ("rows.xlsx", b"PK", "has a name of no known kind"),
        ("no-header.csv", b"7,13.3,52.5\n8,13.4,52.6\n", "first line .* is data"),
        ("picture.csv", bytes(range(256)) * 50, None),
    ],
)
def test_files_that_do_not_serve_are_refused(tmp_path, name, content, says):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises((FileError, TableError), match=says) as refusal:
        open_table(tmp_path / name)
    assert "13.3" not in str(refusal.value)


def test_a_folder_without_tables_and_one_with_two_kinds_are_refused(tmp_path):
    (tmp_path / "notes.md").write_text("nothing")
    with pytest.raises(FileError, match="holds no Parquet, CSV or point file"):
        open_table(tmp_path)
    parquet.write_table(SMALL, tmp_path / "a.parquet")
    csv.write_csv(SMALL, tmp_path / "a.csv")
    with pytest.raises(TableError, match="both"):
        open_table(tmp_path)
    assert people(tmp_path / "*.csv") == 2


def test_a_folder_of_two_reference_systems_is_refused(tmp_path):
    geodataframe(4326).to_parquet(tmp_path / "a.parquet")
    geodataframe(3857).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(TableError, match="reference system"):
        open_table(tmp_path)


def test_points_without_a_reference_system_are_refused(tmp_path):
    gpd = pytest.importorskip("geopandas")
    frame = gpd.GeoDataFrame({"user": [1]}, geometry=gpd.points_from_xy([13.3], [52.5]))
    frame.to_parquet(tmp_path / "rows.parquet")
    for source in (frame, tmp_path / "rows.parquet", pa.table(frame.to_arrow())):
        with pytest.raises(TableError, match="reference system"):
            open_table(source)


def test_a_shape_that_is_no_point_is_nowhere_and_files_that_declare_only_such_are_refused(tmp_path):
    frame = geodataframe(3857)
    frame.geometry = frame.geometry.buffer(100)
    frame.to_parquet(tmp_path / "rows.parquet")
    assert people(frame) == 0
    with pytest.raises(TableError, match="none of its geometries"):
        open_table(tmp_path / "rows.parquet")


def test_something_else_is_refused_by_its_type():
    with pytest.raises(TableError, match="cannot read a dict"):
        open_table({"lon": [1.0]})


def test_whether_a_column_of_objects_is_of_one_type_changes_nobody_s_id():
    pd = pytest.importorskip("pandas")
    objects = [7, 7.0, "7", Decimal("7.00"), "07", None, float("nan"), [7], "x", b"x", 8]
    for end in range(1, len(objects) + 1):
        ids = pd.Series(objects[:end], dtype=object)
        frame = pd.DataFrame({"user": ids, "lon": [13.3] * end, "lat": pd.Series([52.5] * end, dtype=object)})
        assert people(frame) == 1 + (end > 4) + (end > 8) + (end > 10)


# Nothing that rows hold is refused, for a refusal is not paid for (found fault 10)

NOWHERE = {
    "swapped": [(-33.9, 151.2), (-33.8, 151.1)],
    "swapped in the box": [(52.5, 13.3), (52.4, 13.4)],
    "metres": [(389_000.0, 5_819_000.0)],
    "not numbers": [(np.nan, 52.5), (None, None)],
    "no rows": [],
}


@pytest.mark.parametrize("places", NOWHERE.values(), ids=NOWHERE)
@pytest.mark.parametrize("kind", ["arrow", "csv", "parquet", "pandas"])
def test_fault_10_free_exact_answers_before_any_charge_are_not_to_be_had(tmp_path, places, kind):
    columns = {
        "lon": pa.array([x for x, _ in places], pa.float64()),
        "lat": pa.array([y for _, y in places], pa.float64()),
    }
    table = pa.table({"user": pa.array([f"{i}" for i in range(len(places))], pa.string()), **columns})
    source = {"arrow": table, "pandas": table.to_pandas()}.get(kind, tmp_path / f"rows.{kind}")
    if kind == "csv":
        csv.write_csv(table, source)
    if kind == "parquet":
        parquet.write_table(table, source)
    for box in (None, Box(13.0, 52.3, 13.8, 52.7)):
        assert people(source, box=box) == 0


def test_a_box_beyond_the_poles_is_refused_whoever_is_there():
    with pytest.raises(InputError, match="swapped"):
        Box.parse("13.0,100.5,13.8,152.0")


def test_a_few_wild_rows_are_dropped_and_refuse_nothing():
    wild = pa.table({"user": [1, 2, 3, 4], "lon": [13.3, 13.3, 13.3, 1e9], "lat": [52.5, 52.4, 95.0, np.nan]})
    assert people(wild) == 2


# Options


@pytest.mark.parametrize("options", [{"memory_limit": 1}, {"threads": 0}])
def test_impossible_options_are_refused(options):
    with pytest.raises(InputError):
        open_table(SMALL, **options)


def test_without_a_key_every_table_draws_its_own_sample():
    drawn = [open_table(ROWS).votes(QUADTREE, AtMostRows(1)).weights.tolist() for _ in range(3)]
    assert drawn[0] != drawn[1] or drawn[1] != drawn[2]


def test_nothing_stays_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table = open_table(ROWS.to_reader())
    table.votes(QUADTREE, RULE)
    del table
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_real_check_ins_are_read_as_they_are(shared: Path):
    path = shared / "data" / "gowalla_nyc_2009_2010.parquet"
    rows = parquet.read_table(path, columns=["user", "lon", "lat"])
    columns = {name: rows[name].to_numpy() for name in ("lon", "lat")}
    memory = MemoryTable(rows["user"].to_numpy().astype(np.int64), columns, key=1)
    from hazemap.spatial.h3_hexagons import Hexagons
    from hazemap.spatial.quadtree import Quadtree

    box = Box(-74.3, 40.5, -73.7, 41.0)
    for tree in (Quadtree.around(box, 12), Hexagons(box, 5, 9)):
        assert same(open_table(path, key=1).votes(tree, RULE), memory.votes(tree, RULE))


def test_columns_that_differ_in_capitals_alone_are_refused_where_one_would_be_taken_for_the_other(tmp_path):
    lines = b"user,lon,lat,size,SIZE,at\n1,13.3,52.5,0,5,2024-01-01\n2,13.3,52.5,5,0,2024-01-01\n"
    (tmp_path / "v.csv").write_bytes(lines)
    rows = csv.read_csv(tmp_path / "v.csv")
    parquet.write_table(rows, tmp_path / "v.parquet")
    (tmp_path / "hive" / "LAT=1").mkdir(parents=True)
    parquet.write_table(rows.select(["user", "lon", "lat"]), tmp_path / "hive" / "LAT=1" / "v.parquet")
    assert open_table(tmp_path / "v.csv", value="SIZE").votes(QUADTREE, OneVote(100)).weights.sum() == 100
    for source in (rows, rows.to_pandas(), tmp_path / "v.parquet", tmp_path / "hive"):
        with pytest.raises(TableError, match="does not tell apart"):
            open_table(source, value="SIZE")
    both = {"measured": "size", "mark": "at=2024-01-01"}
    with pytest.raises(TableError, match=r"does not tell the columns .* apart"):
        open_table(tmp_path / "v.csv", value="SIZE", **both).votes(QUADTREE, OneVote(100))


def changing_once(file, folder, change):
    """A table whose file is changed while its rows are read for the first time; what was done is told."""
    memory = crowd(3_000, 30_000)
    rows = pa.table({"user": memory.person, **memory.columns})
    file.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(rows, file)
    other = folder / "other"
    parquet.write_table(rows.slice(0, 29_000), other)
    done = []
    table = open_table(file if file.parent == folder else folder, memory_limit=1 << 16, threads=1, key=bytes(16))

    def changed(_part: float) -> None:
        if table.report.rows and not done:
            done.append(change(file, other) or change)

    table._progress = changed
    return table, done


@pytest.mark.parametrize("place", ["v.parquet", "user_group=1/v.parquet"])
@pytest.mark.parametrize("change", [lambda file, other: other.replace(file), lambda file, _other: file.unlink()])
def test_a_file_that_is_replaced_or_removed_between_two_passes_is_read_to_its_end(place, change, tmp_path):
    table, done = changing_once(tmp_path / place, tmp_path, change)
    plain, _ = changing_once(tmp_path / "still" / place, tmp_path / "still", lambda _file, _other: None)
    assert np.array_equal(table.votes(QUADTREE, AtMostRows(2)).cells, plain.votes(QUADTREE, AtMostRows(2)).cells)
    assert done


@pytest.mark.parametrize("place", ["v.parquet", "user_group=1/v.parquet"])
def test_a_file_that_is_written_into_between_two_passes_counts_for_nothing(place, tmp_path):
    table, done = changing_once(tmp_path / place, tmp_path, lambda file, other: file.write_bytes(other.read_bytes()))
    with pytest.raises(FileError, match=r"was changed while it was read|cannot be read to its end"):
        table.votes(QUADTREE, AtMostRows(2))
    assert done


def test_a_csv_file_that_is_replaced_between_two_passes_is_read_to_its_end(tmp_path):
    for name, rows in (("v.csv", 5), ("w.csv", 3)):
        (tmp_path / name).write_text("user,lon,lat\n" + "\n".join(f"{at},13.3,52.5" for at in range(rows)))
    table = open_table(tmp_path / "v.csv")
    (tmp_path / "w.csv").replace(tmp_path / "v.csv")
    assert table.votes(QUADTREE, AtMostRows(2)).weights.sum() == 5


@pytest.mark.parametrize("limit", ["0001-01-01T00:00+02:00", "9999-12-31T23:00-05:00"])
def test_a_limit_that_is_beyond_the_calendar_in_utc_is_refused(limit):
    with pytest.raises(InputError, match="between the years 1 and 9999"):
        utc(limit)
