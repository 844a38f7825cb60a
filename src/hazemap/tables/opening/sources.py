"""Opening whatever the user has: find the columns, check what they hold, refuse what would mislead.

Some refusals look at rows: an empty table, coordinates that are swapped or not degrees, ids that are not
whole numbers. They are a signal to the curator that nothing was read; their texts are fixed and hold no
number from the data; they are outside the privacy guarantee and must not be published.
"""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.domains.boxes import Box
from hazemap.errors import InputError, TableError
from hazemap.tables.draws import SamplingKey
from hazemap.tables.engine import EngineTable, Progress
from hazemap.tables.opening.columns import LAT, LON, MARK, MEASURED, PERSON, TIME, VALUE, Role
from hazemap.tables.opening.connection import Connection, quoted
from hazemap.tables.opening.files import open_files
from hazemap.tables.opening.frames import open_frame
from hazemap.tables.opening.ids import Ids, ids_of
from hazemap.tables.opening.layout import Layout
from hazemap.tables.opening.points import Points, Reprojected, TwoColumns, WellKnownBinary
from hazemap.tables.opening.source import Geometry, Source

MEMORY_LIMIT = 1 << 30
LEAST_MEMORY = 1 << 16
LEAST_FOR_DUCKDB = 1 << 28
FIRST_ROWS = 1 << 16
NUMBERS = {
    *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
}


def open_table(
    source: Any,
    *,
    person: str | None = None,
    lon: str | None = None,
    lat: str | None = None,
    time: str | None = None,
    value: str | None = None,
    mark: str | None = None,
    measured: str | None = None,
    timed: bool = False,
    box: Box | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
    key: SamplingKey | None = None,
    memory_limit: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> EngineTable:
    """A table from a path, a folder, a pattern or a data frame; columns that are not named are guessed.

    `mark` is a column of yes or no, for proportions; `measured` one of numbers, for statistics of values; `timed`
    says that the time of each row is needed too. `box` and the times `since <= t < until` (ISO 8601, UTC unless
    they say otherwise) choose rows; without `key` each table draws samples of its own; `memory_limit` is in bytes, 1
    GiB unless given. Ids in CSV files are texts as they are written, so 7 and 07 are two people; rows without an id are
    dropped. Errors: `FileError` for a file that is missing or damaged, `TableError` for columns that are missing,
    ambiguous or of a wrong type, for a table without rows, and for coordinates that are swapped or not degrees.

    >>> import pyarrow
    >>> open_table(pyarrow.table({"who": [1], "Longitude": [2.0], "Latitude": [48.0]}), person="who")
    EngineTable('the table')
    """
    limit = MEMORY_LIMIT if memory_limit is None else memory_limit
    workers = _processors() if threads is None else threads
    if limit < LEAST_MEMORY:
        raise InputError(f"the memory limit is at least {LEAST_MEMORY} bytes; found {limit}")
    if workers < 1:
        raise InputError(f"at least one thread has to work; found {workers}")
    connection = Connection(max(limit, LEAST_FOR_DUCKDB), workers)
    opened = source_of(connection, source)
    layout = layout_of(
        connection,
        opened,
        person=person,
        lon=lon,
        lat=lat,
        time=time,
        value=value,
        mark=mark,
        measured=measured,
        timed=timed,
        box=box,
        since=since,
        until=until,
    )
    return EngineTable(connection, layout, os.urandom(16) if key is None else key, limit, workers, progress)


def source_of(connection: Connection, source: Any) -> Source:
    """What a path, a folder, a pattern or a data frame holds."""
    return (open_files if isinstance(source, str | os.PathLike) else open_frame)(connection, source)


def layout_of(
    connection: Connection,
    source: Source,
    *,
    person: str | None = None,
    lon: str | None = None,
    lat: str | None = None,
    time: str | None = None,
    value: str | None = None,
    mark: str | None = None,
    measured: str | None = None,
    timed: bool = False,
    box: Box | None = None,
    since: datetime | str | None = None,
    until: datetime | str | None = None,
) -> Layout:
    """The roles of the columns of a source, as in `open_table`, once its first rows have been looked at."""
    layout = Layout(
        name=source.name,
        relation=source.relation,
        rows=source.rows,
        ids=_ids(source, person),
        points=_points(source, lon, lat),
        weight=None if value is None else _number(source, VALUE, value),
        mark=None if mark is None else _yes_or_no(source, mark),
        where=_times(connection, source, time, since, until),
        box=box,
        value=None if measured is None else _number(source, MEASURED, measured),
        moment=f"epoch({moment_of(connection, source, time)[0]})" if timed else None,
    )
    _refuse_what_misleads(connection, layout)
    return layout


def _processors() -> int:
    affinity: Callable[[int], set[int]] | None = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def _ids(source: Source, person: str | None) -> Ids | str:
    """How to read the ids; without any, why: it matters only to rules that need them."""
    try:
        column = PERSON.column(source.kinds, person)
        return ids_of(column, quoted(column), source.kinds[column])
    except TableError as error:
        if person is not None:
            raise
        return f"{error}; or say that each row is a person of its own"


def _number(source: Source, role: Role, wanted: str | None) -> str:
    """A column of numbers, as DOUBLE."""
    column = role.column(source.kinds, wanted)
    kind, name = source.kinds[column], quoted(column)
    if kind == "DOUBLE":
        return name
    if kind in NUMBERS or kind.startswith("DECIMAL"):
        return f"CAST({name} AS DOUBLE)"
    if kind == "VARCHAR" and source.numbers_as_text:
        return f"TRY_CAST(trim({name}) AS DOUBLE)"  # without trim, DuckDB 2.0 fails on words (its issue 23818)
    raise TableError(f"the {role.what} must be numbers; the column {column!r} is {kind}")


def _yes_or_no(source: Source, wanted: str) -> str:
    """A column of marks, as DOUBLE: 1 for yes, 0 for no; rows with anything else have no mark."""
    column = MARK.column(source.kinds, wanted)
    if source.kinds[column] == "BOOLEAN":
        return f"CAST({quoted(column)} AS DOUBLE)"
    if source.kinds[column] == "VARCHAR":
        return f"CAST(TRY_CAST(trim({quoted(column)}) AS BOOLEAN) AS DOUBLE)"
    return _number(source, MARK, wanted)


def _points(source: Source, lon: str | None, lat: str | None) -> Points:
    """The geometry, where there is one and no column is named; else two columns."""
    if source.geometry is not None and lon is None and lat is None:
        return _reprojected(_encoded(source.geometry, source), source.geometry.crs)
    return TwoColumns((_number(source, LON, lon), _number(source, LAT, lat)))


def _encoded(geometry: Geometry, source: Source) -> Points:
    name, kind = quoted(geometry.column), source.kinds.get(geometry.column, "nothing")
    if geometry.encoding == "point" and kind.startswith("STRUCT"):
        return TwoColumns((f"CAST({name}.x AS DOUBLE)", f"CAST({name}.y AS DOUBLE)"))
    if geometry.encoding == "WKB" and kind == "BLOB":
        return WellKnownBinary((name,))
    raise TableError(f"the points should be in the column {geometry.column!r} as {geometry.encoding}; found {kind}")


def _reprojected(points: Points, crs: str) -> Points:
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    try:
        system = CRS.from_user_input(json.loads(crs))
    except CRSError:
        raise TableError("the reference system of the points is not one that PROJ knows") from None
    wgs84 = CRS.from_user_input("OGC:CRS84")
    return points if system.equals(wgs84, ignore_axis_order=True) else Reprojected(points, system.to_wkt())


def _times(
    connection: Connection, source: Source, time: str | None, since: datetime | str | None, until: datetime | str | None
) -> tuple[str, ...]:
    """The conditions on the time, in SQL."""
    if time is None and since is None and until is None:
        return ()
    moment, zoned = moment_of(connection, source, time)
    kind, zone = ("TIMESTAMPTZ", "+00") if zoned else ("TIMESTAMP", "")
    return tuple(
        f"{moment} {sign} {kind} '{_utc(limit):%Y-%m-%d %H:%M:%S.%f}{zone}'"
        for sign, limit in ((">=", since), ("<", until))
        if limit is not None
    )


def moment_of(connection: Connection, source: Source, time: str | None) -> tuple[str, bool]:
    """The time of a row in SQL, and whether it is TIMESTAMPTZ; else it is TIMESTAMP, in UTC."""
    column = TIME.column(source.kinds, time)
    kind, name = source.kinds[column], quoted(column)
    if kind == "VARCHAR":
        text, name, kind = name, f"TRY_CAST(trim({name}) AS TIMESTAMPTZ)", "TIMESTAMP WITH TIME ZONE"
        _refuse_unknown_times(connection, source, column, text, name)
    if not kind.startswith(("DATE", "TIMESTAMP")):
        raise TableError(f"the time must be dates or timestamps; the column {column!r} is {kind}")
    zoned = kind == "TIMESTAMP WITH TIME ZONE"
    return (name if zoned else f"CAST({name} AS TIMESTAMP)"), zoned


def _utc(text: datetime | str) -> datetime:
    try:
        moment = text if isinstance(text, datetime) else datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"a time is written as 2024-05-31 or 2024-05-31T18:00:00+02:00; found {text!r}") from None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _refuse_what_misleads(connection: Connection, layout: Layout) -> None:
    """Look at the first rows, whatever the filter: is there anything, and is it degrees in the right order?"""
    query = f"SELECT {', '.join(layout.points.sql)} FROM {layout.relation} LIMIT {FIRST_ROWS}"  # noqa: S608 - quoted
    each = [layout.points.lonlat(batch.columns) for batch in connection.stream(query, layout.name)]
    lon, lat = (np.concatenate([*column]) for column in zip(*each, strict=True)) if each else (np.zeros(0),) * 2
    if not len(lon):
        raise TableError(f"{layout.name} has no rows")
    known = np.isfinite(lon) & np.isfinite(lat)
    lon, lat = lon[known], lat[known]
    if not len(lon):
        raise TableError(f"no row of the first ones of {layout.name} has two coordinates that are numbers")
    if _mostly((np.abs(lat) > 90) & (np.abs(lat) <= 180) & (np.abs(lon) <= 90)):
        raise TableError("longitude and latitude are swapped: exchange the columns with --lon and --lat")
    if not ((np.abs(lon) <= 180) & (np.abs(lat) <= 90)).any():
        raise TableError("the coordinates are not degrees; reproject them to longitude and latitude (WGS 84)")
    box = layout.box
    if box and not _inside(box, lon, lat).any() and _mostly(_inside(box, lat, lon)):
        raise TableError(
            f"longitude and latitude are swapped: nothing lies in the box {box}, but it would with the columns"
            " exchanged; exchange them with --lon and --lat"
        )


def _refuse_unknown_times(connection: Connection, source: Source, column: str, text: str, moment: str) -> None:
    """Texts that are not times would all be dropped by a filter."""
    first = f"SELECT {text} AS text, {moment} AS moment FROM {source.relation} LIMIT {FIRST_ROWS}"  # noqa: S608 - quoted
    query = f"SELECT 2 * count(moment) < count(text) AS unknown FROM ({first})"  # noqa: S608 - quoted
    if any(batch.column(0)[0].as_py() for batch in connection.stream(query, source.name)):
        raise TableError(f"the times in the column {column!r} are not written as in 2024-05-31 18:00:00; convert them")


def _mostly(condition: NDArray[np.bool_]) -> bool:
    return bool(condition.mean() > 0.5)


def _inside(box: Box, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.bool_]:
    inside: NDArray[np.bool_] = (box.west <= lon) & (lon <= box.east) & (box.south <= lat) & (lat <= box.north)
    return inside
