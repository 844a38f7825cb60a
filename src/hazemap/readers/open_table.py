"""Opens a table: finds the columns by name and type, and refuses those that cannot serve.

Refusals follow from names, types and options, which are public, and never from rows: whether a table opens reveals
nothing about people. Rows that do not serve are dropped one by one, each for what it is itself.
"""

import json
import os
from collections.abc import Sequence
from typing import Any

from hazemap.engines.coordinate_readers import CellColumn, Points, Reprojected, TwoColumns, WellKnownBinary
from hazemap.engines.duckdb import EngineTable, Progress
from hazemap.engines.duckdb_connection import DuckDBConnection, quoted
from hazemap.engines.person_ids import IdColumnReader, Ids, ids_of
from hazemap.engines.row_query import Roles, TableLayout
from hazemap.engines.spark import ClusterFeed, SparkTable
from hazemap.engines.table_source import ChoosingFeed, Feed, Geometry, SourcePart, TableSource
from hazemap.errors import InputError, TableError
from hazemap.machine_code.parallel_map import processors
from hazemap.readers.column_roles import (
    CELL,
    LAT,
    LON,
    MEASURED,
    PERSON,
    TIME,
    VALUE,
    Limit,
    marked_columns,
    number_of,
    refuse_plain,
    side_of,
    time_column,
    utc,
)
from hazemap.readers.csv_files import CsvDialect
from hazemap.readers.data_frames import open_frame
from hazemap.readers.file_formats import open_files
from hazemap.readers.postgresql_tables import open_database
from hazemap.readers.spark_tables import is_spark_frame, open_spark_frame, open_spark_table
from hazemap.sources.source import DatabaseTable, Frame, SparkCatalogueTable, parse_source
from hazemap.spatial.bounding_box import Box
from hazemap.tables.keyed_hash import SamplingKey
from hazemap.temporal.time_format import TimeFormat
from hazemap.values.marks import Marks

MEMORY_LIMIT = 1 << 30
LEAST_MEMORY = 1 << 16
LEAST_FOR_DUCKDB = 1 << 28
LONGEST_POINT = 1_000
"""Bytes of a point, at most: what is longer is nowhere."""
PLAIN = CsvDialect()


def open_table(
    source: Any,
    *,
    person: str | None = None,
    lon: str | None = None,
    lat: str | None = None,
    time: str | None = None,
    value: str | None = None,
    mark: Marks | str | None = None,
    measured: str | None = None,
    cell: str | None = None,
    resolution: int = 0,
    timed: bool = False,
    box: Box | None = None,
    since: Limit = None,
    until: Limit = None,
    time_format: TimeFormat = "iso",
    unplaced: str | None = None,
    dialect: CsvDialect = PLAIN,
    key: SamplingKey | None = None,
    memory_limit: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> EngineTable:
    """A table from a path, a folder, a pattern, an address or a data frame; columns that are not named are guessed.

    `mark` is a column of yes or no, for shares, or several `Marks`; `measured` one of numbers, for statistics of
    values; `cell` one of H3 cells, which say where rows are instead of coordinates, read at a `resolution`; `timed`
    says that the time of each row is needed too. `box` and the times `since <= t < until` (ISO 8601, UTC unless they
    say otherwise) choose rows; `time_format` declares numbers since 1970 ("seconds", "milliseconds"), where times are
    such; `unplaced` says what to do where only columns called x and y tell where rows are, and is
    None where those are known to be degrees; `dialect` says how CSV files are written; without `key` each table draws
    samples of its own; `memory_limit` is in bytes, 1 GiB unless given. Ids in CSV files are texts as they are written,
    so 7 and 07 are two people; rows without an id are dropped. Errors: `FileError` for a file that is missing or
    damaged, `TableError` for columns that are missing, ambiguous or of a wrong type; never for what rows hold.

    >>> import pyarrow
    >>> open_table(pyarrow.table({"who": [1], "Longitude": [2.0], "Latitude": [48.0]}), person="who")
    EngineTable('the table')
    """
    limit = MEMORY_LIMIT if memory_limit is None else memory_limit
    workers = processors() if threads is None else threads
    if limit < LEAST_MEMORY:
        raise InputError(f"the memory limit must be at least {LEAST_MEMORY} bytes; found {limit}")
    if workers < 1:
        raise InputError(f"give at least one thread; found {workers}")
    marks = Marks.of(mark) if isinstance(mark, str) else mark
    connection = DuckDBConnection(max(limit, LEAST_FOR_DUCKDB), workers)
    layout = layout_of(
        source_of(
            connection,
            source,
            dialect,
            named_columns(person, lon, lat, time, value, *(marks.columns if marks else ()), measured, cell),
        ),
        person=person,
        lon=lon,
        lat=lat,
        time=time,
        value=value,
        marks=marks,
        measured=measured,
        cell=cell,
        resolution=resolution,
        timed=timed,
        box=box,
        since=since,
        until=until,
        time_format=time_format,
        unplaced=unplaced,
    )
    kind = SparkTable if isinstance(layout.parts[0].feed, ClusterFeed) else EngineTable
    return kind(connection, layout, os.urandom(16) if key is None else key, limit, workers, progress)


def source_of(
    connection: DuckDBConnection, source: Any, dialect: CsvDialect = PLAIN, named: Sequence[str] = ()
) -> TableSource:
    """The table in a path, a folder, a pattern, a database's URL, a name in Spark or a data frame.

    The dialect is that of CSV files; `named` are columns to be looked for where files do not declare any.
    """
    match parse_source(source):
        case DatabaseTable() as table:
            return open_database(table)
        case SparkCatalogueTable() as table:
            return open_spark_table(table)
        case Frame(table):
            return open_spark_frame(table) if is_spark_frame(table) else open_frame(connection, table)
        case files:
            return open_files(connection, files, dialect, named)


def named_columns(*columns: str | None) -> list[str]:
    """Those that are given."""
    return [column for column in columns if column is not None]


def layout_of(
    source: TableSource,
    *,
    person: str | None = None,
    lon: str | None = None,
    lat: str | None = None,
    time: str | None = None,
    value: str | None = None,
    marks: Marks | None = None,
    measured: str | None = None,
    cell: str | None = None,
    resolution: int = 0,
    timed: bool = False,
    box: Box | None = None,
    since: Limit = None,
    until: Limit = None,
    time_format: TimeFormat = "iso",
    unplaced: str | None = None,
) -> TableLayout:
    """The roles of the columns of a source, as in `open_table`, from what its parts declare."""
    columns = source.columns
    geometry = source.geometry if lon is None and lat is None and cell is None else None
    hexagon = None if cell is None else CELL.column(columns, cell)
    where = None if geometry or hexagon else (LON.column(columns, lon), LAT.column(columns, lat))
    if where and unplaced is not None:
        refuse_plain(columns, lon, lat, unplaced)
    weight = None if value is None else VALUE.column(columns, value)
    marked = {} if marks is None else marked_columns(columns, marks)
    measure = None if measured is None else MEASURED.column(columns, measured)
    timely = timed or time is not None or since is not None or until is not None
    when = TIME.column(columns, time) if timely else None
    times = [None if when is None else time_column(part, when, time_format) for part in source.parts]
    window = (since, until) if any(each is not None and each.typed is None for each in times) else (None, None)
    read = timed or window != (None, None)
    ids, id_column, texts = _ids(source, person)
    places = (geometry.column,) if geometry else where
    if source.refuse is not None:
        told_apart_by = None if id_column is None else id_column.name
        source.refuse(named_columns(told_apart_by, *(places or ()), hexagon, when, weight, measure, *marked))
    parts = []
    for i, (part, each) in enumerate(zip(source.parts, times, strict=True)):
        feed, checking = (
            feed if when is None else _during(feed, when, since, until) for feed in (part.feed, part.checking)
        )
        near = feed.inside(places, box) if isinstance(feed, ChoosingFeed) and box is not None and places else None
        parts.append(
            Roles(
                relation=part.relation,
                feed=feed,
                person=texts[i] if texts else None,
                points=_points(part, geometry, where) if hexagon is None else _hexagons(part, hexagon, resolution),
                weight=None if weight is None else number_of(part, VALUE, weight),
                mark=side_of(part, marked) if marked else None,
                value=None if measure is None else number_of(part, MEASURED, measure),
                moment=None if each is None or not read else each.sql,
                where=() if each is None else each.within(since, until),
                checked=part.checked,
                checking=checking,
                near=near,
            )
        )
    return TableLayout(
        source.name,
        source.rows,
        ids,
        id_column,
        tuple(parts),
        box,
        source.check,
        zoneless=None if all(each is None or each.zoned for each in times) else when,
        time_format=time_format,
        window=tuple(None if limit is None else utc(limit).timestamp() for limit in window),  # type: ignore[arg-type]
    )


def _during(feed: Feed | None, column: str, since: Limit, until: Limit) -> Feed | None:
    """A feed without rows that are not in the window, where it can leave them out."""
    if not isinstance(feed, ChoosingFeed):
        return feed
    return feed.during(column, *(limit if limit is None else utc(limit) for limit in (since, until)))


def _ids(source: TableSource, person: str | None) -> tuple[Ids | str, IdColumnReader | None, tuple[str, ...]]:
    """The reading of ids; without any, the reason, which matters only to rules that need them."""
    try:
        column = PERSON.column(source.columns, person)
        ids, texts = ids_of(column, quoted(column), source.parts)
    except TableError as error:
        if person is not None:
            raise
        return f"{error}; or say that each row is a person of its own", None, ()
    return ids, IdColumnReader(column, ids.read_as, guessed=person is None), texts


def _points(part: SourcePart, geometry: Geometry | None, columns: tuple[str, str] | None) -> Points:
    """The geometry, where there is one and no column is named; else two columns."""
    if geometry is not None:
        return _reprojected(_encoded(part, geometry), geometry.crs)
    if columns is None:
        raise TypeError("points must be a geometry or two columns")
    return TwoColumns((number_of(part, LON, columns[0]), number_of(part, LAT, columns[1])))


def _hexagons(part: SourcePart, column: str, resolution: int) -> CellColumn:
    """A column of H3 cells, as texts or as whole numbers of 64 bits; `TableError` for one of another type."""
    kind, name = part.kinds[column], quoted(column)
    if kind == "VARCHAR":
        return CellColumn((name,), resolution)
    if kind in ("BIGINT", "UBIGINT"):
        return CellColumn((f"TRY_CAST({name} AS UBIGINT)",), resolution)
    raise TableError(
        f"the H3 cells of rows are texts, such as 871f18b24ffffff, or whole numbers of 64 bits; the column {column!r} "
        f"is {kind}"
    )


def _encoded(part: SourcePart, geometry: Geometry) -> Points:
    name, kind = quoted(geometry.column), part.kinds.get(geometry.column, "nothing")
    if geometry.encoding == "point" and kind.startswith("STRUCT"):
        return TwoColumns((f"CAST({name}.x AS DOUBLE)", f"CAST({name}.y AS DOUBLE)"))
    if geometry.encoding == "WKB" and kind == "BLOB":
        if part.feed is None:  # many rows may name one polygon that their file holds once
            name = f"CASE WHEN octet_length({name}) <= {LONGEST_POINT} THEN {name} END"
        return WellKnownBinary((name,))
    raise TableError(f"the points should be in the column {geometry.column!r} as {geometry.encoding}; found {kind}")


def _reprojected(points: Points, crs: str) -> Points:
    from pyproj import CRS, Transformer
    from pyproj.exceptions import CRSError, ProjError

    declared = json.loads(crs)
    if declared is None:
        raise TableError("the points do not say their reference system: declare it, or pass --lon and --lat")
    try:
        system = CRS.from_user_input(declared)
    except CRSError:
        raise TableError("the reference system of the points is not one that PROJ knows") from None
    wgs84 = CRS.from_user_input("OGC:CRS84")
    if system.equals(wgs84, ignore_axis_order=True):
        return points
    try:  # now, and not while rows are read, which are paid for by then
        Transformer.from_crs(system.to_wkt(), wgs84, always_xy=True)
    except ProjError:
        raise TableError("no way is known from the reference system of the points to degrees: convert them") from None
    return Reprojected(points, system.to_wkt())
