"""A table in PostgreSQL gives the votes of the same rows in memory, to the last bit, or none at all."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from tests.federated.server.postgres import cluster
from tests.tables.people import DEEP, HEXAGONS, IDS, PLACES, QUADTREE, RULES, WEIGHTS, crowd, same
from tests.tables.people import table as memory_of

from hazemap.errors import FileError, HazemapWarning, TableError
from hazemap.execution.crash_recovery import recover
from hazemap.execution.journal import Journal
from hazemap.privacy.ledger import Ledger
from hazemap.publish import release, stats
from hazemap.readers import postgresql_copy
from hazemap.readers.open_table import open_table
from hazemap.readers.postgresql_copy import PostgresqlSession
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.district_layers import DistrictLayer
from hazemap.spatial.districts import Districts
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, OneVote, RowIsPerson
from hazemap.temporal.time_slots import Clock
from hazemap.values.cell_slot_counters import ObservedCellSlots
from hazemap.values.value_encoding import ValueEncoding

pytestmark = pytest.mark.slow
psycopg = pytest.importorskip("psycopg")

SOME = [AtMostRows(2), AtMostCells(2), OneVote(1000), RowIsPerson()]
AREA = "13.0,52.3,13.8,52.7"


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with cluster() as url:
        yield url


@pytest.fixture
def database(server) -> Iterator[Any]:
    """A connection that commits at once, in a schema of the test's own."""
    with psycopg.connect(server, autocommit=True) as connection:
        ours = "application_name = 'hazemap'"  # a test that failed keeps its table, which keeps its locks
        connection.execute(f"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE {ours}")
        connection.execute("DROP SCHEMA IF EXISTS t CASCADE")
        connection.execute("CREATE SCHEMA t")
        yield connection


@pytest.fixture
def gis(database) -> Any:
    if not database.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'postgis'").fetchall():
        pytest.skip("PostGIS is not installed here")
    database.execute('CREATE SCHEMA IF NOT EXISTS "Gis"')
    database.execute('CREATE EXTENSION IF NOT EXISTS postgis SCHEMA "Gis"')
    return database


def stored(database, columns: dict[str, tuple[str, list]], name: str = "t.visits") -> None:
    """A table of these columns: their types and their values."""
    declared = ", ".join(f'"{column}" {kind}' for column, (kind, _) in columns.items())
    database.execute(f"CREATE TABLE {name} ({declared})")
    with database.cursor().copy(f"COPY {name} FROM STDIN") as copy:
        for row in zip(*(values for _, values in columns.values()), strict=True):
            copy.write_row(row)


def stored_people(database, memory, name: str = "t.visits") -> None:
    kinds = {"user": ("bigint", memory.person.tolist())}
    stored(database, kinds | {key: ("float8", found.tolist()) for key, found in memory.columns.items()}, name)


def url(server: str, name: str = "t.visits") -> str:
    return f"{server}&table={name}"


@contextmanager
def killed_in_the_middle(server: str, monkeypatch) -> Iterator[list[int]]:
    """Have the server end the reader's connection once the first rows have come."""
    real, killed = PostgresqlSession.copied, list[int]()

    def cut(self, *arguments):
        rows = real(self, *arguments)
        yield next(rows)
        if not killed:
            killed.append(self.connection.info.backend_pid)
            with psycopg.connect(server, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 60000)", killed)
        yield from rows

    with monkeypatch.context() as patched:
        patched.setattr(postgresql_copy, "CHUNK", 1 << 16)
        patched.setattr(PostgresqlSession, "copied", cut)
        yield killed


def districts() -> Districts:
    edges = [(13.0, 52.3, 13.3, 52.7), (13.3, 52.3, 13.8, 52.5), (13.3, 52.5, 13.8, 52.7)]
    shapes = [shapely.box(*edge) for edge in edges]
    names = {"name": ["west", "south", "north"]}
    return Districts.of(DistrictLayer(geopandas.GeoDataFrame(names, geometry=shapes, crs="EPSG:4326")))


def test_votes_are_those_of_memory_for_every_rule_and_tree(server, database):
    rng = np.random.default_rng(17)
    picked = [[each[i] for i in rng.integers(0, len(each), 300)] for each in (IDS, PLACES, WEIGHTS)]
    memory = memory_of(list(zip(*picked, strict=True)), b"key")
    stored_people(database, memory)
    table = open_table(url(server), value="weight", key=memory.key)
    for tree in (QUADTREE, DEEP, HEXAGONS, districts()):
        for rule in RULES:
            assert same(table.votes(tree, rule), memory.votes(tree, rule)), (tree, rule)


@pytest.mark.parametrize("rule", [AtMostRows(3), AtMostCells(2), OneVote()], ids=repr)
def test_many_batches_and_passes_change_nothing_nor_do_others_who_write_meanwhile(server, database, rule, monkeypatch):
    monkeypatch.setattr(postgresql_copy, "CHUNK", 1 << 14)
    memory = crowd(3_000, 30_000)
    stored_people(database, memory)
    table = open_table(url(server), value="weight", key=memory.key, memory_limit=1 << 16, threads=2)
    database.execute("UPDATE t.visits SET lon = 13.3 WHERE lat > 52.5")
    database.execute("DELETE FROM t.visits WHERE lat < 52.4")
    assert same(table.votes(QUADTREE, rule), memory.votes(QUADTREE, rule))
    assert table.report.passes > 2 and table.report.rows == 30_000


@pytest.mark.parametrize(
    "kind", ["text", "varchar(20)", "char(12)", "uuid", "numeric", "numeric(20,4)", "integer", "real", "bytea", "t.who"]
)
def test_people_are_told_apart_as_in_a_frame_whatever_type_tells_them(server, database, kind):
    memory = crowd(90, 2_000)
    codes = np.unique(memory.person, return_inverse=True)[1].tolist()
    ids = {
        "uuid": [f"00000000-0000-0000-0000-{code:012}" for code in codes],
        "numeric": [Decimal(code).scaleb(-1) for code in codes],
        "numeric(20,4)": [Decimal(code).scaleb(-1) for code in codes],
        "integer": codes,
        "real": [float(code) for code in codes],
        "bytea": [f"b{code}".encode() for code in codes],
        "t.who": [f"w{code}" for code in codes],
    }.get(kind, [f"é {code}" for code in codes])
    if kind == "t.who":
        listed = ", ".join(f"'{each}'" for each in sorted(set(ids)))
        database.execute(f"CREATE TYPE t.who AS ENUM ({listed})")
    ids[5], ids[77] = None, None
    lon, lat = (memory.columns[name].tolist() for name in ("lon", "lat"))
    stored(database, {"user": (kind, ids), "lon": ("float8", lon), "lat": ("float8", lat)})
    frame: Any = pa.table({"user": ids, "lon": lon, "lat": lat})
    if kind.startswith("numeric"):
        frame = pd.DataFrame({"user": pd.Series(ids, dtype=object), "lon": lon, "lat": lat})
    if kind == "numeric":  # numbers that are equal are one person, however many zeros are written
        database.execute('UPDATE t.visits SET "user" = "user" * 1.00 WHERE lat > 52.5')
    table, twin = (open_table(source, key=3, threads=2) for source in (url(server), frame))
    for rule in (AtMostCells(2), RowIsPerson()) if kind == "numeric" else SOME[:2]:
        assert same(table.votes(QUADTREE, rule), twin.votes(QUADTREE, rule))
    assert table.report.rows == 2_000
    assert table.need_id_column().read_as == twin.need_id_column().read_as


def test_coordinates_and_weights_of_any_number_are_rounded_as_in_a_frame(server, database):
    numbers = ["13.3", "13.30000000000000000001", "1e400", "-1e-400", "NaN", "13.1", None, "Infinity"]
    digits = [None if each is None else Decimal(each) for each in numbers] * 3
    lat, who = [52.5] * 24, list(range(24))
    columns = {
        "user": ("int", who),
        "lon": ("numeric", digits),
        "lat": ("real", lat),
        "weight": ("numeric", digits[::-1]),
    }
    stored(database, columns)
    frame = pd.DataFrame({name: pd.Series(found, dtype=object) for name, (_, found) in columns.items()})
    for rule in SOME:
        for box in (None, Box(13.2, 52.4, 13.35, 52.6)):
            table, twin = (open_table(each, value="weight", key=1, box=box) for each in (url(server), frame))
            assert same(table.votes(DEEP, rule), twin.votes(DEEP, rule)), (rule, box)


@pytest.mark.parametrize("kind", ["timestamp", "timestamptz", "date", "text"])
def test_a_time_window_chooses_the_rows_of_a_frame(server, database, kind):
    memory = crowd(50, 3_000)
    moments: list[Any] = [datetime.fromtimestamp(1.7e9 + 997 * i, UTC) for i in range(3_000)]
    moments[:3] = [None, datetime(2, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC)]
    written = [None if each is None else each.isoformat() for each in moments]
    there = list(written)
    if kind != "text":
        there[3:5], moments[3:5] = ["infinity", "-infinity"], [None, None]
    typed = {
        "timestamp": pa.array([each and each.replace(tzinfo=None) for each in moments], pa.timestamp("us")),
        "timestamptz": pa.array(moments, pa.timestamp("us", "UTC")),
        "date": pa.array([each and each.date() for each in moments], pa.date32()),
        "text": pa.array(written),
    }[kind]
    people = {"user": memory.person, "lon": memory.columns["lon"], "lat": memory.columns["lat"]}
    kinds = {"user": "bigint", "lon": "float8", "lat": "float8"}
    database.execute("SET TimeZone = 'UTC'")
    stored(database, {name: (kinds[name], found.tolist()) for name, found in people.items()} | {"at": (kind, there)})
    database.execute("CREATE INDEX ON t.visits (at)")
    database.execute("ALTER ROLE hazemap SET enable_seqscan = off")
    database.execute("ALTER ROLE hazemap SET TimeZone = 'Asia/Tokyo'")
    frame = pa.table(people | {"at": typed})
    try:
        for since, until in (
            ("2023-11-20", "2023-12-01"),
            (None, "2023-12-01T06:00"),
            ("2023-11-20T07:00+03:00", None),
        ):
            sources = (url(server), frame)
            table, twin = (open_table(each, time="at", since=since, until=until, key=8) for each in sources)
            assert same(table.votes(QUADTREE, AtMostRows(2)), twin.votes(QUADTREE, AtMostRows(2)))
            if kind != "text":
                assert 0 < table.report.rows < 2_999
    finally:
        database.execute("ALTER ROLE hazemap RESET ALL")


def test_a_box_changes_votes_as_it_does_in_memory_and_an_index_keeps_the_order_of_rows(server, database):
    memory = crowd(300, 4_000)
    stored_people(database, memory)
    database.execute("CREATE INDEX ON t.visits (lon, lat)")
    database.execute("ALTER ROLE hazemap SET enable_seqscan = off")
    box = Box(13.2, 52.4, 13.35, 52.5)
    twin = pa.table({"user": memory.person, **memory.columns})
    try:
        table = open_table(url(server), value="weight", key=memory.key, box=box)
    finally:
        database.execute("ALTER ROLE hazemap RESET ALL")
    same_rows = open_table(twin, value="weight", key=memory.key, box=box)
    for rule in RULES:
        assert same(table.votes(QUADTREE, rule), same_rows.votes(QUADTREE, rule)), rule


@pytest.mark.parametrize(
    ("kind", "srid"),
    [
        ("geometry(Point,4326)", 4326),
        ("geometry(Geometry,4326)", 4326),
        ("geography", 4326),
        ("geometry(PointZ,25833)", 25833),
    ],
)
def test_points_of_postgis_are_those_of_geoparquet(server, gis, kind, srid, tmp_path):
    memory = crowd(60, 1_500)
    lon, lat, who = memory.columns["lon"], memory.columns["lat"], memory.person.tolist()
    points = geopandas.GeoSeries(geopandas.points_from_xy(lon, lat, 1.0 if "Z" in kind else None), crs=4326).to_crs(
        srid
    )
    shapes = [None if shapely.is_empty(each) or np.isnan(each.x) else each for each in points]
    if "Geometry" in kind or kind == "geography":
        shapes[:2] = [shapely.box(13.2, 52.4, 13.3, 52.5), shapely.MultiPoint([(13.3, 52.5)])]
    wkb = [None if each is None else shapely.to_wkb(each, hex=True, include_srid=False) for each in shapes]
    gis.execute('SET search_path = "Gis", public')
    stored(gis, {"user": ("bigint", who), "wkb": ("text", wkb)}, "t.raw")
    made = f"ST_SetSRID(ST_GeomFromWKB(decode(wkb, 'hex')), {srid})"
    gis.execute(f'CREATE TABLE t.visits ("user" bigint, "the Place" {kind})')
    gis.execute(f'INSERT INTO t.visits SELECT "user", {made}::{kind} FROM t.raw')
    empty = "POINT Z EMPTY" if "Z" in kind else "POINT EMPTY"
    gis.execute(f"INSERT INTO t.visits SELECT 5, ST_GeomFromText('{empty}', {srid})::{kind}")
    gis.execute('CREATE INDEX ON t.visits USING gist ("the Place")')
    gis.execute("CREATE VIEW t.seen AS SELECT * FROM t.visits")
    frame = geopandas.GeoDataFrame({"user": who}, geometry=shapes, crs=srid)
    frame.to_parquet(tmp_path / "visits.parquet")
    for name in ("t.visits", "t.seen"):
        for box in (None, Box(13.2, 52.4, 13.35, 52.5)):
            table, twin = (
                open_table(each, key=2, box=box) for each in (url(server, name), tmp_path / "visits.parquet")
            )
            for tree in (QUADTREE, HEXAGONS):
                for rule in SOME:
                    assert same(table.votes(tree, rule), twin.votes(tree, rule)), (name, box, rule)
            if box and srid == 4326 and kind != "geography":
                assert table.report.rows < 1_000  # the last rule may leave rows out


def test_shapes_that_are_no_points_and_points_of_no_system_are_refused(server, gis):
    gis.execute('SET search_path = "Gis", public')
    gis.execute('CREATE TABLE t.areas ("user" int, place geometry(Polygon,4326))')
    gis.execute('CREATE TABLE t.nowhere ("user" int, place geometry(Point))')
    with pytest.raises(TableError, match=r"no column is known to hold the longitude"):
        open_table(url(server, "t.areas"))
    with pytest.raises(TableError, match="do not say their reference system"):
        open_table(url(server, "t.nowhere"))


def test_pairs_of_values_are_those_of_a_frame(server, database):
    memory = crowd(40, 2_000)
    seconds = pa.array((1.7e15 + 1e10 * np.arange(2_000)).astype(np.int64), pa.timestamp("us"))
    frame = pa.table({"user": memory.person, **memory.columns, "at": seconds})
    columns = {name: frame[name].to_pylist() for name in frame.column_names}
    kinds = {"user": "bigint", "at": "timestamp"}
    stored(database, {name: (kinds.get(name, "float8"), found) for name, found in columns.items()})
    places = ObservedCellSlots(QUADTREE, Clock("Europe/Berlin", (0, 43200)), ValueEncoding(0, 5))
    options: dict[str, Any] = {"measured": "weight", "timed": True, "time": "at", "key": 5}
    one, other = (open_table(source, **options).pairs(places) for source in (url(server), frame))
    assert np.array_equal(one.sums, other.sums) and len(one.sums)
    assert np.array_equal(one.whereabouts.place, other.whereabouts.place)


def test_what_is_no_table_is_refused_and_no_message_quotes_a_row(server, database):
    stored_people(database, crowd(5, 50))
    database.execute("CREATE INDEX secretly ON t.visits (lon)")
    database.execute('CREATE VIEW t.failing AS SELECT "user", lon, lat, 1 / ("user" - "user") AS weight FROM t.visits')
    database.execute(
        """CREATE VIEW t.quoting AS SELECT "user", lon, lat, ('row ' || lon)::int AS weight FROM t.visits"""
    )
    database.execute("CREATE VIEW t.odd AS SELECT *, '{}'::jsonb AS mark FROM t.visits")
    for name in ("visits", "t.missing", "t.secretly", "nowhere.visits"):
        with pytest.raises(TableError, match=r"no table or view|neither a table nor a view"):
            open_table(url(server, name))
    for name, state in (("failing", "22012"), ("quoting", "22P02")):
        with pytest.raises(FileError, match=f"SQLSTATE {state}") as failure:
            open_table(url(server, f"t.{name}"), value="weight").votes(QUADTREE, OneVote())
        assert "row" not in str(failure.value)
    with pytest.raises(TableError, match="only user, lon, lat, weight"):
        open_table(url(server), person="somebody")
    with pytest.raises(TableError, match=r"jsonb"):
        open_table(url(server, "t.odd"), mark="mark")
    with pytest.raises(TableError, match=r"the column 'mark' is jsonb"):
        open_table(url(server, "t.odd"), mark="mark=yes").votes(QUADTREE, RowIsPerson())


def test_an_empty_table_and_one_of_many_parts_are_read(server, database):
    database.execute('CREATE TABLE t.none ("user" int, lon float8, lat float8)')
    assert not len(open_table(url(server, "t.none")).votes(QUADTREE, AtMostRows(1)).cells)
    database.execute(
        'CREATE TABLE t.parts ("user" bigint, lon float8, lat float8, weight float8) PARTITION BY RANGE (lon)'
    )
    for low, high in (("MINVALUE", "13.3"), ("13.3", "MAXVALUE")):
        part = f"t.p{low[0]}"
        database.execute(f"CREATE TABLE {part} PARTITION OF t.parts FOR VALUES FROM ({low}) TO ({high})")
    memory = crowd(50, 2_000)
    stored_people(database, memory)
    database.execute("INSERT INTO t.parts SELECT * FROM t.visits")
    rule = AtMostCells(2)  # draws cells, wherever their rows are stored
    table = open_table(url(server, "t.parts"), key=memory.key)
    assert same(table.votes(QUADTREE, rule), memory.votes(QUADTREE, rule))


def test_texts_that_are_no_utf_8_are_nobody_s(server, database):
    database.execute("DROP DATABASE IF EXISTS raw")
    database.execute("CREATE DATABASE raw ENCODING 'SQL_ASCII' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    raw = server.replace("///postgres", "///raw")
    with psycopg.connect(raw, autocommit=True) as other:
        other.execute('CREATE TABLE visits ("user" text, lon float8, lat float8)')
        other.execute(
            "INSERT INTO visits VALUES (E'\\\\351', 13.3, 52.5), (E'\\\\303\\\\251', 13.3, 52.5), ('e', 13.3, 52.5)"
        )
        other.execute("UPDATE visits SET \"user\" = E'\\351' WHERE \"user\" = E'\\\\351'")
    table = open_table(raw + "&table=visits")
    assert table.votes(QUADTREE, AtMostRows(1)).weights.sum() == 2
    assert table.report.without_person == 1


def test_a_connection_that_is_cut_in_the_middle_charges_nothing_and_the_run_can_be_repeated(
    server, database, monkeypatch, tmp_path
):
    stored_people(database, crowd(3_000, 200_000))
    ledger, goal = Ledger(tmp_path / "ledger.sqlite"), tmp_path / "map.parquet"
    options: dict[str, Any] = {"person": "user", "epsilon": 1, "box": AREA, "ledger": ledger, "output": goal}
    for attempt in (release, stats):
        asked = options | ({"value": "weight", "low": 0, "high": 5} if attempt is stats else {})
        with (
            killed_in_the_middle(server, monkeypatch) as killed,
            pytest.raises(FileError, match=r"connection .* broke"),
        ):
            attempt(url(server), **asked)
        assert len(killed) == 1 and not goal.exists()
    assert list(ledger.history()) == [] and not list((tmp_path / "ledger.sqlite.runs").glob("*"))
    made = release(url(server), **options)
    assert [charge.charge.dataset for charge in ledger.history()] == ["visits"]
    assert abs(made.total().unbiased - 3_000) < 600 and goal.exists()


def test_a_recovery_reads_a_database_only_if_somebody_vouches_for_it_and_pays_once_if_it_is_cut(
    server, database, monkeypatch, tmp_path
):
    stored_people(database, crowd(3_000, 200_000))
    ledger, goal = Ledger(tmp_path / "ledger.sqlite"), tmp_path / "map.parquet"

    def dies(*_arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "answer", dies)
        with pytest.raises(KeyboardInterrupt):
            release(url(server), person="user", epsilon=1, box=AREA, ledger=ledger, output=goal)
    with pytest.raises(FileError, match=r"is in a database.*--same-table"):
        recover(1, ledger=ledger)
    for _ in range(2):
        with killed_in_the_middle(server, monkeypatch), pytest.raises(FileError, match=r"connection .* broke"):
            recover(1, ledger=ledger, same_table=True)
        assert len(list(ledger.history())) == 1
    recover(1, ledger=ledger, same_table=True)
    assert goal.exists() and len(list(ledger.history())) == 2  # the question without an answer was asked again


def test_a_table_that_moves_into_a_database_still_looks_like_itself(server, database, tmp_path):
    memory = crowd(2_000, 20_000)
    stored_people(database, memory, "t.other")
    pq.write_table(pa.table({"user": memory.person, **memory.columns}), tmp_path / "visits.parquet")
    ledger = Ledger(tmp_path / "ledger.sqlite")
    release(tmp_path / "visits.parquet", person="user", epsilon=1, box=AREA, ledger=ledger)
    with pytest.warns(HazemapWarning, match="looks like one that pays as 'visits'"):
        release(url(server, "t.other"), person="user", epsilon=1, box=AREA, ledger=ledger)


def test_a_password_that_libpq_finds_is_written_nowhere(server, database, tmp_path):
    stored_people(database, crowd(500, 5_000))
    database.execute(
        "ALTER TABLE t.visits ALTER lon TYPE numeric"
    )  # read in a process that imported no more than needed
    home, secret = tmp_path / "home", "hunter2-of-libpq"
    command = [
        sys.executable,
        "-c",
        "from hazemap.cli.main import run; run()",
        "release",
        url(server),
        "--person",
        "user",
        "--epsilon",
        "1",
    ]
    command += [f"--box={AREA}", "-o", str(tmp_path / "map.parquet")]
    beside = {"PGPASSWORD": secret, "HAZEMAP_HOME": str(home)}
    done = subprocess.run(command, env=os.environ | beside, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    files = [each for each in tmp_path.rglob("*") if each.is_file()]
    assert len(files) > 1 and not any(secret.encode() in each.read_bytes() for each in files)
    assert secret not in done.stdout + done.stderr
