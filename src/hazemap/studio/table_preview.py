"""The columns of a table and its first rows, as a steward sees them before anything is asked of it.

Rows are read to be looked at on this machine; they are stored nowhere, and no release depends on them.
"""

from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from hazemap.engines.duckdb_connection import DuckDBConnection, SqlQuery, quoted
from hazemap.engines.table_source import SourcePart, TableSource
from hazemap.errors import TableError
from hazemap.readers.column_roles import LAT, LON, PERSON, TIME, Role, are_degrees
from hazemap.readers.csv_dialect import CsvDialect
from hazemap.readers.open_table import LEAST_FOR_DUCKDB, PLAIN, source_of

ROWS, COLUMNS, LETTERS = 8, 100, 60
"""So many rows, columns, and letters of a value are shown."""

ROLES = {"person": PERSON, "lon": LON, "lat": LAT, "time": TIME}


@dataclass(frozen=True)
class TablePreview:
    """What files declare, which columns would be taken for what, and the first rows as texts.

    `guessed` names a column for each role that can be guessed, but never x and y, which may be no degrees; `rows` is
    empty where they are not to be seen.
    """

    columns: tuple[tuple[str, str], ...]
    more: int
    rows_in_all: int | None
    geometry: str | None
    guessed: dict[str, str]
    rows: tuple[tuple[str, ...], ...]


def previewed(path: Path, dialect: CsvDialect = PLAIN, rows: bool = True) -> TablePreview:
    """A table as it would be opened. `FileError` and `TableError` are those of opening it."""
    connection = DuckDBConnection(LEAST_FOR_DUCKDB, 1)
    source = source_of(connection, str(path), dialect)
    first = source.parts[0]
    shown = source.columns[:COLUMNS]
    kinds = tuple((name, "text" if name in first.written else first.kinds[name].lower()) for name in shown)
    return TablePreview(
        columns=kinds,
        more=len(source.columns) - len(shown),
        rows_in_all=source.rows,
        geometry=None if source.geometry is None else source.geometry.column,
        guessed=_guessed(source),
        rows=_first_rows(connection, source, first, shown) if rows and shown else (),
    )


def _guessed(source: TableSource) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, role in ROLES.items():
        if name in ("lon", "lat") and (source.geometry is not None or not are_degrees(source.columns)):
            continue
        found |= _column(source, name, role)
    return found


def _column(source: TableSource, name: str, role: Role) -> dict[str, str]:
    with suppress(TableError):
        return {name: role.column(source.columns, None)}
    return {}


def _first_rows(
    connection: DuckDBConnection, source: TableSource, part: SourcePart, columns: tuple[str, ...]
) -> tuple[tuple[str, ...], ...]:
    feed = part.feed or part.checking
    if feed is None:
        names = ", ".join(quoted(name) for name in columns)
        query = SqlQuery(f"SELECT {names} FROM {part.relation} LIMIT {ROWS}")  # noqa: S608 - quoted names
        batches = connection.stream(query, source.name)
    else:
        batches = feed.batches(columns)
    found: list[tuple[str, ...]] = []
    with closing(batches):
        for batch in batches:
            head = batch.slice(0, ROWS - len(found))
            found += zip(*(map(_text, column.to_pylist()) for column in head.columns), strict=True)
            if len(found) >= ROWS:
                break
    return tuple(islice(found, ROWS))


def _text(value: Any) -> str:
    """A value in a few letters."""
    if value is None:
        return ""
    if isinstance(value, bytes | dict | list):
        return f"({type(value).__name__})"
    text = str(value)
    return text if len(text) <= LETTERS else f"{text[: LETTERS - 1]}…"
