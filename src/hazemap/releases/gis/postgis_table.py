"""A release as a table of PostGIS: made by COPY in one transaction, so it is there whole or not at all.

The URL is one of a table that is read (`sources.source`): what was exported is found again by the same name.
"""

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from hazemap.errors import FileError, InputError
from hazemap.releases.gis.catalogue_facts import columns_of
from hazemap.sources import postgresql
from hazemap.sources.source import DatabaseTable
from hazemap.spatial.plane import plane_of, reference_system

if TYPE_CHECKING:
    from hazemap.releases.base_release import BaseRelease, Rows

TYPES = {"O": "text", "f": "double precision", "b": "boolean", "i": "smallint"}
KEY, GEOMETRY = "fid", "geometry"
LONGEST_NAME = 63  # bytes: PostgreSQL cuts longer ones off
BLOCK = 20_000  # rows
WGS_84 = 4326


def write_table(release: "BaseRelease", url: str, replace: bool = False) -> list[tuple[str, int]]:
    """Make the table and fill it; its name, and how many rows it has.

    Of a release with slots a second table has the total of all of them: NAME_total.

    Columns are those of every export, after a `fid` that numbers the rows; what is not known is NULL. The statement is
    the table's comment. Raises `FileError`, and changes nothing, where there is a table of this name (unless it is to
    be replaced), no PostGIS, or the server refuses.
    """
    address = DatabaseTable.parse(url)
    tables = [(release, address)]
    if release.total_release is not None:
        tables.append((release.total_release, address.beside("_total")))
    if not all(_fits(name) for _, each in tables for name in each.names):
        raise InputError(f"a table in PostgreSQL has a name of at most {LONGEST_NAME} bytes, without control codes")
    psycopg = postgresql.driver()
    srid = _srid(release)
    unfit = [each.name for each in columns_of(release) if not _fits(each.name) or each.name == KEY]
    if unfit:
        raise FileError(
            f"PostgreSQL cannot hold a column called {unfit[0]!r}: names have at most {LONGEST_NAME} bytes,"
            f" no control codes, and are not {KEY!r}"
        )
    made = list[tuple[str, int]]()
    try:
        with (
            postgresql.connect(address.database, application_name="hazemap") as connection,
            connection.transaction(),
            connection.cursor() as cursor,
        ):
            for each, place in tables:
                _begin(cursor, place, replace)
                made.append((place.table, _fill(cursor, each, place, srid)))
                _describe(cursor, each, place)
    except psycopg.Error as error:
        raise FileError(
            f"PostgreSQL did not take the table {address.table}, and nothing was changed there:"
            f" {' '.join(str(error).split())}"
        ) from error
    return made


def _begin(cursor: Any, address: DatabaseTable, replace: bool) -> None:
    """Refuse what cannot be; make room where a table is to be replaced."""
    from psycopg import sql

    if not cursor.execute("SELECT 1 FROM pg_extension WHERE extname = 'postgis'").fetchone():
        raise FileError(
            "this database has no PostGIS, so it has no type for outlines: have its owner say CREATE EXTENSION postgis,"
            " or export a .gpkg"
        )
    table = sql.Identifier(*address.names)
    there = cursor.execute("SELECT to_regclass(%s)", [table.as_string(cursor)]).fetchone()[0] is not None
    if there and not replace:
        raise FileError(f"there is a table {address.table} already: choose another name, or --force")
    if there:
        cursor.execute(sql.SQL("DROP TABLE {}").format(table))


def _fill(cursor: Any, release: "BaseRelease", address: DatabaseTable, srid: int) -> int:
    """The table with all rows; how many there are."""
    from psycopg import sql

    table, count = sql.Identifier(*address.names), 0
    blocks = release.rows(BLOCK)
    first = next(blocks)
    kinds = {name: TYPES[column.dtype.kind] for name, column in first.columns.items()}
    fields = [sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kind)) for name, kind in kinds.items()]
    shape = sql.SQL("{} geometry(Geometry, {})").format(sql.Identifier(GEOMETRY), sql.Literal(srid))
    made = [sql.SQL("{} integer PRIMARY KEY").format(sql.Identifier(KEY)), *fields, shape]
    cursor.execute(sql.SQL("CREATE TABLE {} ({})").format(table, sql.SQL(", ").join(made)))
    with cursor.copy(sql.SQL("COPY {} FROM STDIN").format(table)) as copy:
        for block in blocks:
            for row in _rows(block, srid):
                count += 1
                copy.write_row((count, *row))
    cursor.execute(sql.SQL("CREATE INDEX ON {} USING gist ({})").format(table, sql.Identifier(GEOMETRY)))
    return count


def _rows(block: "Rows", srid: int) -> Any:
    """The rows of a block as Python's own values: None for what is not known."""
    import shapely

    shapes = shapely.to_wkb(shapely.set_srid(block.shapes, srid), hex=True, include_srid=True)
    columns = [
        [None if np.isnan(each) else each for each in column.tolist()] if column.dtype.kind == "f" else column.tolist()
        for column in block.columns.values()
    ]
    return zip(*columns, np.repeat(shapes, block.times).tolist(), strict=True)


def _describe(cursor: Any, release: "BaseRelease", address: DatabaseTable) -> None:
    """The statement, for people and for machines, as the table's comment; what each column is, as its own."""
    from psycopg import sql

    table = sql.Identifier(*address.names)
    statement = release.statement
    text = f"{statement.line()}\n{json.dumps(statement.to_json(), ensure_ascii=False)}"
    cursor.execute(sql.SQL("COMMENT ON TABLE {} IS {}").format(table, sql.Literal(text)))
    for each in columns_of(release):
        meaning = "the outline of the cell" if each.name == GEOMETRY else each.meaning
        place = sql.Identifier(*address.names, each.name)
        cursor.execute(sql.SQL("COMMENT ON COLUMN {} IS {}").format(place, sql.Literal(meaning)))


def _srid(release: "BaseRelease") -> int:
    """The number of the reference system as PostGIS knows it; 0 for a plane that has none."""
    plane = plane_of(release.cells.tree)
    if plane is None:
        return WGS_84
    code = reference_system(plane.crs).to_epsg() if plane.crs else 0
    if code is None:
        raise FileError(f"PostGIS knows reference systems by EPSG numbers, and {plane.crs} has none: export a .gpkg")
    return int(code)


def _fits(name: str) -> bool:
    return len(name.encode()) <= LONGEST_NAME and not re.search(r"[\x00-\x1f\x7f]", name)
