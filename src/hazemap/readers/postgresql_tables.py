"""Tables and views in PostgreSQL, streamed by COPY from one snapshot; points of PostGIS among their columns.

The server sends the columns that are needed, of rows in the order in which they are stored; what counts them is what
counts files (`engines.duckdb`), so the votes are the same to the last bit. What the server may leave out, rows outside
of a box or of a time, is tested again here: it sends all that count, and perhaps more
(docs/decisions/0016-postgresql-is-streamed.md).

All readings see the table as it was when it was opened. A connection that breaks ends the reading with an error, and
nothing is read by another.
"""

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from hazemap.engines.arrow_arrays import texts
from hazemap.engines.duckdb_connection import quoted
from hazemap.engines.table_source import FED, Geometry, SourcePart, TableSource, named_numbers
from hazemap.errors import TableError
from hazemap.readers.csv_parser import numbers_in
from hazemap.readers.postgresql_copy import (
    CHOICE,
    DATE,
    DOUBLE,
    NUMERIC,
    SINGLE,
    TIME,
    TYPES,
    ZONED,
    ColumnType,
    Decoder,
    PostgresqlSession,
    raw_bytes,
)
from hazemap.sources.source import DatabaseTable
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.plane import PlaneBox

WGS84, CRS84 = 4326, "OGC:CRS84"
_MAY_BE_POINTS = {shape + more for shape in ("GEOMETRY", "POINT", "MULTIPOINT") for more in ("", "Z", "M", "ZM")}


@dataclass(frozen=True)
class PointType:
    """A column of geometry or geography, the schema of PostGIS's functions, and the reference system that the column
    declares.

    What is no point, or of another system than its column says, is nowhere: no function is called that refuses it.
    """

    schema: str
    srid: int
    crs: str | None
    geography: bool = False
    kind: str = "BLOB"
    decoder: Decoder = raw_bytes

    def select(self, column: str) -> str:
        """The point of a row in well-known binary.

        >>> print(PointType("gis", 4326, "OGC:CRS84").select("at"))  # doctest: +NORMALIZE_WHITESPACE
        CASE WHEN ("gis".ST_GeometryType("at") = 'ST_Point' OR "gis".ST_GeometryType("at") = 'ST_MultiPoint'
        AND "gis".ST_NumGeometries("at") = 1) AND "gis".ST_SRID("at") = 4326
        THEN "gis".ST_AsBinary("gis".ST_Force2D("at")) END
        """
        at, of = quoted(column), quoted(self.schema)
        if self.geography:
            at = f"{at}::{of}.geometry"
        return (
            f"CASE WHEN ({of}.ST_GeometryType({at}) = 'ST_Point' OR {of}.ST_GeometryType({at}) = 'ST_MultiPoint'"
            f" AND {of}.ST_NumGeometries({at}) = 1) AND {of}.ST_SRID({at}) = {self.srid}"
            f" THEN {of}.ST_AsBinary({of}.ST_Force2D({at})) END"
        )

    def near(self, column: str, box: Box) -> list[str]:
        """The condition that lets an index leave out points outside of a box of degrees; none for other systems.

        PostGIS compares boxes of single precision, which hold the point: it may find more, and never fewer.
        """
        if self.geography or self.crs != CRS84 or isinstance(box, PlaneBox):
            return []
        of = quoted(self.schema)
        edges = ", ".join(f"{float(edge)!r}" for edge in (box.west, box.south, box.east, box.north))
        return [f"{quoted(column)} OPERATOR({of}.&&) {of}.ST_MakeEnvelope({edges}, {WGS84})"]


def point_types(session: PostgresqlSession, declared: Sequence[tuple[str, int, int]]) -> dict[str, PointType | str]:
    """The columns of PostGIS among those that are declared: name, number of the type, and its modifier.

    One that declares other shapes than points is called by its type. One that declares no reference system has none.
    """
    installed = session.ask(
        "SELECT n.nspname, t.oid::pg_catalog.int8, t.typname FROM pg_catalog.pg_extension e"
        " JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace"
        " JOIN pg_catalog.pg_type t ON t.typnamespace = n.oid"
        " WHERE e.extname = 'postgis' AND t.typname IN ('geometry', 'geography')"
    )
    names = {number: (schema, str(name)) for schema, number, name in installed}
    found: dict[str, PointType | str] = {}
    for column, number, modifier in declared:
        if number not in names:
            continue
        schema, name = names[number]
        of = quoted(schema)
        ((shape, srid),) = session.ask(
            f"SELECT {of}.postgis_typmod_type(%s), {of}.postgis_typmod_srid(%s)",
            [modifier, modifier],
        )
        geography = name == "geography"
        if geography and modifier < 0:
            shape, srid = "Geometry", WGS84
        if str(shape).upper() not in _MAY_BE_POINTS:
            found[column] = f"{name}({shape})"
        else:
            found[column] = PointType(schema, int(srid), _system(session, schema, int(srid)), geography)
    return found


def _system(session: PostgresqlSession, schema: str, srid: int) -> str | None:
    """A reference system as PROJ knows it; None where a column declares none."""
    if srid == WGS84:
        return CRS84
    rows = session.ask(
        f"SELECT auth_name, auth_srid, srtext FROM {quoted(schema)}.spatial_ref_sys WHERE srid = %s",  # noqa: S608
        [srid],
    )
    if not rows:
        return None
    authority, number, text = rows[0]
    return f"{authority}:{number}" if authority and number else str(text)


KINDS = "rpvmf"
"""`pg_class.relkind` of tables, also of those in parts, of views, of materialised ones, and of foreign tables."""

MARGIN = 1e-6
"""Margin around a box within which the server still sends numbers of any length: far more than rounding moves them."""

_MOMENTS = {TYPES[DATE]: "date", TYPES[TIME]: "timestamp", TYPES[ZONED]: "timestamptz"}
_NUMBERS = {TYPES[SINGLE]: "float8", TYPES[DOUBLE]: "float8", TYPES[NUMERIC]: "numeric"}
"""Types with an order that SQL and we agree on, and the type of a literal that it compares without an error."""


@dataclass(frozen=True)
class CopiedTable:
    """The rows of a table or a view (an `engines.table_source.ChoosingFeed`).

    A column has a type, or the name of one that is not read. Beside the columns that hold numbers of any length are
    these numbers as doubles.
    """

    session: PostgresqlSession
    relation: str
    types: Mapping[str, ColumnType | PointType | str]
    conditions: tuple[str, ...] = ()

    @cached_property
    def numbers(self) -> dict[str, str]:
        """The columns that hold numbers of any length, and what these are called as doubles."""
        names = named_numbers(list(self.types))
        return {name: names[name] for name, kind in self.types.items() if kind is TYPES[NUMERIC]}

    @property
    def columns(self) -> tuple[str, ...]:
        """All that can be had of a row."""
        return (*self.types, *self.numbers.values())

    def batches(self, columns: Sequence[str]) -> Generator[Any, None, None]:
        """Arrow record batches of these columns, in the order of the rows."""
        import pyarrow

        written = {number: name for name, number in self.numbers.items()}
        needed = list(dict.fromkeys(written.get(name, name) for name in columns))
        decoders = [self._readable(name).decoder for name in needed]
        for batch in self.session.copied(self.statement(needed), needed, decoders):
            found = dict(zip(needed, batch.columns, strict=True))
            arrays = [
                pyarrow.array(numbers_in(*texts(found[written[name]]), ".")) if name in written else found[name]
                for name in columns
            ]
            yield pyarrow.RecordBatch.from_arrays(arrays, names=list(columns))

    def statement(self, columns: Sequence[str]) -> str:
        """The SELECT of these columns."""
        selected = ", ".join(self._readable(name).select(name) for name in columns)
        where = f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        return f"SELECT {selected} FROM {self.relation}{where}"  # noqa: S608 - quoted

    def during(self, column: str, since: datetime | None, until: datetime | None) -> "CopiedTable":
        """The same, perhaps without rows that are not in `since <= time < until`, both in UTC."""
        kind = self.types[column]
        if not isinstance(kind, ColumnType) or kind not in _MOMENTS:
            return self
        of, conditions = _MOMENTS[kind], []
        for sign, limit in ((">=", since), ("<", until)):
            if limit is not None and of == "date":  # the day of `until` counts, unless it begins then
                conditions.append(f"{quoted(column)} {sign.rstrip('=')}= '{limit.date()}'::pg_catalog.date")
            elif limit is not None:
                text = limit.replace(tzinfo=None).isoformat() + ("+00" if of == "timestamptz" else "")
                conditions.append(f"{quoted(column)} {sign} '{text}'::pg_catalog.{of}")
        return replace(self, conditions=(*self.conditions, *conditions))

    def inside(self, columns: Sequence[str], box: Box) -> "CopiedTable":
        """The same, perhaps without rows whose place, in these columns or this one, is outside of a box."""
        conditions = list[str]()
        for column, low, high in zip(columns, (box.west, box.south), (box.east, box.north), strict=False):
            kind = self.types[column]
            if isinstance(kind, PointType):
                conditions += kind.near(column, box)
            elif isinstance(kind, ColumnType) and kind in _NUMBERS:
                wider = MARGIN if kind is TYPES[NUMERIC] else 0.0
                edges = (f"'{edge!r}'::pg_catalog.{_NUMBERS[kind]}" for edge in (low - wider, high + wider))
                conditions.append(f"{quoted(column)} BETWEEN {' AND '.join(edges)}")
        return replace(self, conditions=(*self.conditions, *conditions))

    def _readable(self, name: str) -> ColumnType | PointType:
        kind = self.types[name]
        if isinstance(kind, str):
            raise TableError(
                f"the column {name!r} is {kind}, which hazemap does not read: make a view in which it is text, a "
                "number or a time"
            )
        return kind


def open_database(url: DatabaseTable) -> TableSource:
    """The table or view that a URL names; no row is read.

    `FileError` for a server that cannot be reached, and for a table that is not
    there or may not be read.
    """
    session = PostgresqlSession(url)
    relation = _relation(session, url)
    declared = session.described(relation)
    points = point_types(session, declared)
    types = {name: TYPES.get(number) or points.get(name) for name, number, _ in declared}
    named = _other_types(session, sorted({number for name, number, _ in declared if types[name] is None}))
    readable = {name: types[name] or named[number] for name, number, _ in declared}
    feed = CopiedTable(session, relation, readable)
    kinds = {name: kind if isinstance(kind, str) else kind.kind for name, kind in readable.items()}
    shapes = [(name, kind) for name, kind in readable.items() if isinstance(kind, PointType)]
    geometry = Geometry(shapes[0][0], "WKB", json.dumps(shapes[0][1].crs)) if len(shapes) == 1 else None
    return TableSource(session.name, (SourcePart(FED, kinds, feed, feed.numbers),), None, geometry)


def _relation(session: PostgresqlSession, url: DatabaseTable) -> str:
    """The quoted name of a table or view, with its schema; `FileError` where there is none."""
    found = session.ask(
        "SELECT n.nspname, c.relname, c.relkind::pg_catalog.text FROM pg_catalog.pg_class c"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass(%s)",
        [url.table],
    )
    if not found:
        raise TableError(
            f"the database has no table or view {url.table}: name its schema, or quote a name with capitals, as in "
            'trips."Visits"'
        )
    schema, name, kind = found[0]
    if kind not in KINDS:
        raise TableError(f"{url.table} is neither a table nor a view of the database")
    return f"{quoted(schema)}.{quoted(name)}"


def _other_types(session: PostgresqlSession, numbers: Sequence[int]) -> dict[int, ColumnType | str]:
    """Types by their numbers: those of listed values are texts, of others only the name is known."""
    found = session.ask(
        "SELECT oid::pg_catalog.int8, pg_catalog.format_type(oid, NULL), typtype::pg_catalog.text"
        " FROM pg_catalog.pg_type WHERE oid = ANY(%s::pg_catalog.oid[])",
        [list(numbers)],
    )
    known = {number: CHOICE if kind == "e" else str(name) for number, name, kind in found}
    return {number: known.get(number, "of an unknown type") for number in numbers}
