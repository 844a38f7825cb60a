"""What a GeoPackage may hold before GDAL opens it: a database can be a program, and its tables may have no end.

A GeoPackage is an SQLite database. A view in it runs a query of its maker's, and so does a computed column; a virtual
table may read other files; and pages that name each other make a small file long. Here SQLite looks at it first, and
stops after as many steps as a file of its size may take.
"""

import os
import re
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from hazemap.errors import FileError
from hazemap.gdal.own_files import refuse_named_files

INDEXES = ("rtree", "fts3", "fts4", "fts5")
"""The kinds of virtual tables that index others."""

STEPS = 1 << 24
"""So many steps of SQLite, about a second, are free; a row of a table takes four."""

LONGEST = 1 << 24
"""Bytes of what a GeoPackage says of itself, all tables together."""

_VIRTUAL = re.compile(r"\s*CREATE\s+VIRTUAL\s+TABLE\b.*?\bUSING\s+[\"'`\[]?(\w+)", re.IGNORECASE | re.DOTALL)
_COMPUTED = (2, 3)


def check_geopackage(file: str) -> None:
    """`FileError` where opening a file would run a query of its maker's, or takes longer than its size allows."""
    with _database(file) as base:
        tables = base.execute("SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
        if ("table", "gpkg_contents") not in {(kind, name.lower()) for kind, name, _ in tables}:
            raise FileError(f"{file} is no GeoPackage: it has no table gpkg_contents")
        length = 0
        for kind, name, sql in tables:
            using = _VIRTUAL.match(sql or "")
            if using is not None and using[1].lower() not in INDEXES:
                raise FileError(f"{file} holds the virtual table {name!r}, which may read other files: drop it")
            if not name.lower().startswith("gpkg_"):
                continue
            if kind == "view" or using is not None or _computes(base, name):
                raise FileError(f"{file} is no GeoPackage: {name!r} is not a plain table")
            for row in base.execute(f"SELECT * FROM {_quoted(name)}"):  # noqa: S608 - quoted
                if name.lower() == "gpkg_spatial_ref_sys":
                    for said in row:
                        refuse_named_files(said if isinstance(said, bytes) else str(said).encode(), file)
                length += 8 + sum(len(value) if isinstance(value, str | bytes) else 8 for value in row)
                if length > LONGEST:
                    raise FileError(f"{file} says more of itself than {LONGEST >> 20} MB: copy its layer to a new one")


def check_layer(file: str, layer: str) -> None:
    """`FileError` for a layer that is no table, computes columns, or has more rows than its file can hold.

    GDAL calls the layers of a table or view of two geometries `name (column)`: there is no table of this name.
    """
    with _database(file) as base:
        found = base.execute("SELECT type, sql FROM sqlite_master WHERE name = ? COLLATE NOCASE", [layer]).fetchall()
        if not found:
            raise FileError(f"the layer {layer!r} of {file} is not a plain table: store its rows in one")
        if any(kind != "table" or _VIRTUAL.match(sql or "") for kind, sql in found):
            raise FileError(f"the layer {layer!r} of {file} is a view, which is a query: store its rows in a table")
        if _computes(base, layer):
            raise FileError(f"the layer {layer!r} of {file} computes a column: store its values")
        base.execute(f"SELECT sum(1) FROM {_quoted(layer)} NOT INDEXED").fetchall()  # noqa: S608 - quoted


def _computes(base: sqlite3.Connection, table: str) -> bool:
    return any(hidden in _COMPUTED for *_, hidden in base.execute(f"PRAGMA table_xinfo({_quoted(table)})"))


@contextmanager
def _database(file: str) -> Generator[sqlite3.Connection, None, None]:
    """A database to read, as GDAL will; `FileError` for none, and for one that takes too many steps."""
    log, step = Path(file + "-wal"), 1 << 12
    fixed = "" if log.exists() and log.stat().st_size else "&immutable=1"
    left = (STEPS + 4 * sum(os.stat(each).st_size for each in (file, log) if Path(each).exists())) // step  # noqa: PTH116

    def tired() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    try:
        with closing(sqlite3.connect(f"file:{quote(file)}?mode=ro{fixed}", uri=True)) as base:
            base.set_progress_handler(tired, step)
            base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
            base.execute("PRAGMA trusted_schema = OFF")
            yield base
    except (sqlite3.Error, UnicodeError) as error:
        why = "its tables are longer than a file of its size can hold" if left < 0 else "it is damaged"
        raise FileError(f"{file} cannot be read: {why}, or it is not of the kind that its name says") from error


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
