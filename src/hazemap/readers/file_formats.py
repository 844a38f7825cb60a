"""Tables in one or many files, named by a path, a folder, a pattern or an address; the suffix decides the format.

The names of folders may hold columns, as Hive writes them: `city=Berlin/day=2024-05-31/part-0.parquet`. Such a column
is text, whatever its values look like, and a number or a time is read in each value by itself, as in CSV: if all values
together decided, one folder would change how the rows of others are read.
"""

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from fnmatch import fnmatch
from functools import partial
from itertools import groupby
from pathlib import Path
from urllib.parse import unquote_to_bytes

from hazemap.engines.duckdb_connection import DuckDBConnection, literal
from hazemap.engines.table_source import FED, SourcePart, TableSource, named_numbers
from hazemap.errors import FileError, TableError
from hazemap.readers.column_roles import refuse_repeated_names
from hazemap.readers.csv_files import CsvDialect, CsvFiles
from hazemap.readers.lake_tables import open_delta, open_iceberg
from hazemap.readers.parquet_files import (
    Declared,
    ParquetFiles,
    ScannedFile,
    common_geometry,
    declarations_of,
    geometry_of,
    kinds_of_fed,
    refuse_large_pages,
)
from hazemap.readers.point_files import GEOJSON, VECTORS, layer_of, open_geojson, open_layer
from hazemap.readers.stored_file import LocalFile, StoredFile
from hazemap.readers.stored_folder import StoredFolder, ask_each, change_check, folder_at
from hazemap.readers.value_coercion import is_checked
from hazemap.sources.source import Address, Files, LocalFiles, RemoteFiles

NOTHING = "__HIVE_DEFAULT_PARTITION__"
"""Hive's name for the folder of rows without a value."""

_NAMED = re.compile(r"([^=]+)=(.*)", re.DOTALL)


def partitions_in(path: str) -> dict[str, str | None]:
    """The columns in a path below the table's folder, and their value for all rows of the file; None for no value.

    >>> partitions_in("city=S%C3%A3o%20Paulo/day=__HIVE_DEFAULT_PARTITION__/part-0.parquet")
    {'city': 'São Paulo', 'day': None}
    """
    found: dict[str, str | None] = {}
    for folder in path.split("/")[:-1]:
        named = _NAMED.fullmatch(folder)
        name = None if named is None else _text(named[1])
        if named is not None and name:
            found[name] = None if named[2] in {NOTHING, ""} else _text(named[2])
    return found


def _text(written: str) -> str | None:
    try:
        return unquote_to_bytes(written.encode("utf-8", "surrogateescape")).decode()
    except UnicodeDecodeError:
        return None


PARQUET = (".parquet", ".pq", ".parq", ".geoparquet")
CSV = tuple(kind + packed for kind in (".csv", ".tsv", ".txt") for packed in ("", ".gz", ".zst"))
ENDINGS = {"Parquet": PARQUET, "CSV": CSV, "GeoJSON": GEOJSON, "vector": VECTORS}


def open_files(connection: DuckDBConnection, source: Files, dialect: CsvDialect, named: Sequence[str]) -> TableSource:
    """The table in a file, in all files of a folder, or in the files that fit a pattern, in order of name.

    A folder with the log of a Delta table or the metadata of an Iceberg table is that table. GeoJSON declares no
    columns; those in `named` are read.
    """
    name, (place, layer) = str(source), layer_of(source)
    folder = folder_at(place)
    if folder.lake == "Delta":
        return open_delta(connection, folder)
    if folder.lake == "Iceberg":
        return open_iceberg(connection, folder)
    tables = _tables_in(folder)
    files = list(tables.files.values())
    kinds = {_kind(str(file)) for file in files}
    if len(kinds) > 1:
        raise TableError(f"{name} holds both {' and '.join(sorted(kinds))} files; pass a pattern that fits one kind")
    if "" in kinds:
        endings = "; ".join(f"{kind}: {', '.join(ends)}" for kind, ends in ENDINGS.items())
        if all(str(file).endswith((".duckdb", ".ddb")) for file in files):
            raise FileError(
                f"{name} is a database: write its table to a file, in DuckDB with COPY visits TO 'visits.parquet', or "
                f"pass duckdb.connect({name!r}, read_only=True).table('visits') in Python"
            )
        raise FileError(
            f"{name} has a name of no known kind ({endings}); open it with pandas or geopandas and pass the data frame"
        )
    empty = [file for file in files if file.size == 0]
    if empty:
        raise FileError(f"{empty[0]} is empty")
    if kinds <= {"Parquet", "CSV"}:
        tables = tables.held()
        files = list(tables.files.values())
    if kinds == {"Parquet"}:
        return _parquet(connection, tables)
    if kinds == {"CSV"}:
        return _csv(connection, name, files, dialect)
    if len(files) > 1:
        raise TableError(f"{name} holds several files of points; pass one, or convert them to Parquet")
    if not isinstance(files[0], LocalFile):
        raise TableError(f"remote tables must be Parquet or CSV: download {name}, and read the copy")
    if kinds == {"GeoJSON"}:
        return open_geojson(name, files[0].name, named)
    return open_layer(connection, name, files[0].name, layer)


def _tables_in(folder: StoredFolder) -> StoredFolder:
    """The files that are read: of a folder, those of a known kind."""
    if not folder.whole:
        return folder
    kept = {path: file for path, file in folder.seen().files.items() if _kind(path)}
    if not kept:
        raise FileError(f"the folder {folder.name} holds no Parquet, CSV or point file")
    return StoredFolder(folder.name, kept, True)


def files_of(source: LocalFiles) -> list[str]:
    """The files of this machine in which a table is, by name; `FileError` where there is none."""
    return [str(file) for file in _tables_in(folder_at(layer_of(source)[0])).files.values()]


def state_of(source: Files) -> list[tuple[str, int, str]]:
    """The names, sizes and times of change of the files of a table, and of all that says which of them count."""
    folder = folder_at(layer_of(source)[0])
    return (folder if folder.lake else _tables_in(folder)).state


def belongs(file: str | os.PathLike[str], source: Address) -> bool:
    """Whether a file is one of a table's, or would be if it were there: in its folder, or fitting its pattern."""
    if not isinstance(source, LocalFiles):
        return False
    goal, path = Path(os.path.realpath(file)), Path(os.path.realpath(str(layer_of(source)[0])))
    if path.is_dir():
        return bool(_kind(goal.name)) and goal.is_relative_to(path)
    pattern = not path.is_file() and goal.parent == path.parent and fnmatch(goal.name, path.name)
    with suppress(FileError):
        return pattern or any(os.path.realpath(each) == str(goal) for each in files_of(source))
    return pattern


def reads_csv(source: Address) -> bool:
    """Whether a table is of CSV files, by names alone."""
    if isinstance(source, RemoteFiles):
        return _kind(source.path) == "CSV"
    with suppress(FileError, OSError):
        return isinstance(source, LocalFiles) and all(_kind(file) == "CSV" for file in files_of(source))
    return False


def _kind(file: str) -> str:
    lower = file.lower()
    return next((kind for kind, ends in ENDINGS.items() if lower.endswith(ends)), "")


def _parquet(connection: DuckDBConnection, folder: StoredFolder) -> TableSource:
    """Files next to each other that declare the same columns are one part: what they declare decides, and no row.

    The names of folders declare columns too, of those files that have none of that name.
    """
    name, files = folder.name, list(folder.files.values())
    check = change_check(files)
    found = ask_each(files, declarations_of)
    schemas = [each.schema for each in found]
    geometries = [
        geometry_of(each.schema.metadata or {}, each.native, str(file)) for each, file in zip(found, files, strict=True)
    ]
    geometry = common_geometry(geometries, name)
    own = [
        {key: value for key, value in partitions_in(path).items() if key not in schema.names}
        for path, schema in zip(folder.files, schemas, strict=True)
    ]
    for file, schema, given in zip(files, schemas, own, strict=True):
        refuse_repeated_names([*schema.names, *given], str(file))
    parts = []
    for _, run in groupby(
        zip(found, files, own, strict=True),
        key=lambda each: (
            sorted((field.name, str(field.type)) for field in each[0].schema),
            sorted(each[0].native),
            sorted(each[2]),
        ),
    ):
        same = list(run)
        parts.append(_part(connection, name, same[0][0], [(file, given) for _, file, given in same]))
    local = [file for file in files if isinstance(file, LocalFile)]
    refuse = partial(refuse_large_pages, local, memory_limit=connection.memory_limit)
    return TableSource(name, tuple(parts), sum(each.rows for each in found), geometry, check, refuse)


def _part(
    connection: DuckDBConnection,
    name: str,
    declared: Declared,
    files: list[tuple[StoredFile, dict[str, str | None]]],
) -> SourcePart:
    """Files of one schema. DuckDB reads them by itself, but for files elsewhere and columns in the names of folders."""
    import pyarrow

    given, schema = sorted(files[0][1]), declared.schema
    names = named_numbers([*schema.names, *given])
    numbers = {key: names[key] for key in given}
    local = [file for file, _ in files if isinstance(file, LocalFile)]
    relation = f"read_parquet({_list(local)}, union_by_name = true, hive_partitioning = false)" if local else FED
    kinds = connection.kinds(relation, name) if local else kinds_of_fed(connection, schema, name)
    scanned = tuple(
        ScannedFile(file, given={key: pyarrow.scalar(value, pyarrow.string()) for key, value in own.items()})
        for file, own in files
    )
    kinds |= {column: "BLOB" for column in declared.native if column in kinds}  # read as they are stored
    stored = tuple(field.name for field in schema if field.name in kinds)
    read = ParquetFiles(scanned, (*stored, *given), numbers=numbers)
    kinds = kinds | dict.fromkeys(given, "VARCHAR")
    if not local:
        return SourcePart(FED, kinds, read, numbers)
    checked = {field.name for field in schema if field.name in kinds and is_checked(field.type)}
    apart = frozenset({*checked, *declared.native, *given, *numbers.values()})
    return SourcePart(relation, kinds, None, numbers, apart, read)


def _csv(connection: DuckDBConnection, name: str, files: Sequence[StoredFile], dialect: CsvDialect) -> TableSource:
    lines = CsvFiles.opened(files, dialect, connection.threads)
    return TableSource(name, (SourcePart(FED, dict.fromkeys(lines.numbers, "VARCHAR"), lines, lines.numbers),))


def _list(files: list[LocalFile]) -> str:
    """Paths for DuckDB, which would take *, ? and [ in them for a pattern."""
    return "[" + ", ".join(literal(re.sub(r"([*?\[])", r"[\1]", file.path)) for file in files) + "]"
