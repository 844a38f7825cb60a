"""Tables in one or many files, named by a path, a folder or a pattern; the suffix decides the format."""

import glob
import json
import os
import re
from collections.abc import Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path
from typing import Any

from hazemap.engines.duckdb_connection import BATCH, DuckDBConnection, literal
from hazemap.engines.table_source import FED, Geometry, SourcePart, TableSource
from hazemap.errors import FileError, TableError
from hazemap.postgresql_url import is_url
from hazemap.readers.csv_dialect import CsvDialect
from hazemap.readers.csv_files import CsvFiles
from hazemap.readers.geojson_points import GEOJSON, open_geojson
from hazemap.readers.geopackage_points import VECTORS, layer_of, open_layer
from hazemap.readers.value_coercion import is_checked, sound

PARQUET = (".parquet", ".pq", ".parq", ".geoparquet")
CSV = tuple(kind + packed for kind in (".csv", ".tsv", ".txt") for packed in ("", ".gz", ".zst"))
ENDINGS = {"Parquet": PARQUET, "CSV": CSV, "GeoJSON": GEOJSON, "vector": VECTORS}


def open_files(
    connection: DuckDBConnection, path: str | os.PathLike[str], dialect: CsvDialect, named: Sequence[str]
) -> TableSource:
    """The table in a file, in all files of a folder, or in the files that fit a pattern, in order of name.

    Of GeoJSON, which declares no columns, those that are `named` are read.
    """
    name = os.fspath(path)
    layer, files = layer_of(name)[1], files_of(name)
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise TableError(f"{name} holds both {' and '.join(sorted(kinds))} files; pass a pattern that fits one kind")
    if "" in kinds:
        endings = "; ".join(f"{kind}: {', '.join(ends)}" for kind, ends in ENDINGS.items())
        raise FileError(
            f"{name} has a name of no known kind ({endings}); open it with pandas or geopandas and pass the data frame"
        )
    empty = [file for file in files if Path(file).stat().st_size == 0]
    if empty:
        raise FileError(f"{empty[0]} is empty")
    if kinds == {"Parquet"}:
        return _parquet(connection, name, files)
    if kinds == {"CSV"}:
        return _csv(connection, name, files, dialect)
    if len(files) > 1:
        raise TableError(f"{name} holds several files of points; pass one, or convert them to Parquet")
    if kinds == {"GeoJSON"}:
        return open_geojson(name, files[0], named)
    return open_layer(connection, name, files[0], layer)


def files_of(source: str) -> list[str]:
    """The files in which a table is, by name; `FileError` where there is none."""
    name = layer_of(source)[0]
    path = Path(name)
    if path.is_file():
        return [name]
    if path.is_dir():
        files = [
            str(file)
            for file in sorted(path.rglob("*"))
            if file.is_file() and _kind(str(file)) and not re.search(r"(^|/)[._]", str(file.relative_to(path)))
        ]
        if not files:
            raise FileError(f"the folder {name} holds no Parquet, CSV or point file")
        return files
    files = sorted(file for file in glob.glob(name, recursive=True) if Path(file).is_file())  # noqa: PTH207 - any pattern
    if not files:
        raise FileError(f"no file has the name or pattern {name}")
    return files


def belongs(file: str | os.PathLike[str], source: str) -> bool:
    """Whether a file is one of a table's, or would be if it were there: in its folder, or fitting its pattern."""
    if is_url(source):
        return False
    goal, name = Path(os.path.realpath(file)), layer_of(source)[0]
    path = Path(os.path.realpath(name))
    if path.is_dir():
        return bool(_kind(goal.name)) and goal.is_relative_to(path)
    pattern = not path.is_file() and goal.parent == path.parent and fnmatch(goal.name, path.name)
    with suppress(FileError):
        return pattern or any(os.path.realpath(each) == str(goal) for each in files_of(source))
    return pattern


def _kind(file: str) -> str:
    lower = file.lower()
    return next((kind for kind, ends in ENDINGS.items() if lower.endswith(ends)), "")


def _parquet(connection: DuckDBConnection, name: str, files: list[str]) -> TableSource:
    """Files next to each other that declare the same columns are one part: what they declare decides, and no row."""
    import pyarrow
    from pyarrow import parquet

    rows, schemas = 0, []
    for file in files:
        try:
            with parquet.ParquetFile(file) as opened:
                rows += opened.metadata.num_rows
                schemas.append(opened.schema_arrow)
        except (pyarrow.ArrowException, OSError):
            raise FileError(f"{file} is not a Parquet file, or it is damaged or may not be read") from None
    geometries = {_geometry(schema.metadata or {}, file) for schema, file in zip(schemas, files, strict=True)}
    if len(geometries) > 1:
        raise TableError(f"the files of {name} differ in their geometry column or its reference system; make them one")
    parts = []
    for _, run in groupby(
        zip(schemas, files, strict=True), key=lambda each: sorted((field.name, str(field.type)) for field in each[0])
    ):
        same = list(run)
        relation = f"read_parquet({_list([file for _, file in same])}, union_by_name = true, hive_partitioning = false)"
        kinds, fields = connection.kinds(relation, name), [(field.name, field.type) for field in same[0][0]]
        read = ParquetFiles(tuple(file for _, file in same), tuple(column for column, _ in fields if column in kinds))
        checked = frozenset(column for column, kind in fields if column in kinds and is_checked(kind))
        parts.append(SourcePart(relation, kinds, checked=checked, checking=read))
    return TableSource(name, tuple(parts), rows, geometries.pop())


def _geometry(metadata: dict[bytes, bytes], file: str) -> Geometry | None:
    """The points of a GeoParquet file (specification 1.0 and 1.1)."""
    if b"geo" not in metadata:
        return None
    try:
        geo = json.loads(metadata[b"geo"])
        column = geo["primary_column"]
        about = geo["columns"][column]
        encoding, kinds = about["encoding"], set(about.get("geometry_types", []))
    except (ValueError, KeyError, TypeError):
        raise FileError(f"the GeoParquet metadata of {file} cannot be read") from None
    if encoding not in {"WKB", "point"} or (kinds and not kinds & {"Point", "Point Z"}):
        raise TableError(f"rows are counted where their point is; {file} declares that none of its geometries is one")
    if "crs" in about and about["crs"] is None:
        raise TableError(f"{file} does not say the reference system of its points; set it, or pass --lon and --lat")
    return Geometry(column, encoding, json.dumps(about.get("crs", "OGC:CRS84"), sort_keys=True))


def _csv(connection: DuckDBConnection, name: str, files: list[str], dialect: CsvDialect) -> TableSource:
    lines = CsvFiles.opened(files, dialect, connection.threads)
    return TableSource(name, (SourcePart(FED, dict.fromkeys(lines.numbers, "VARCHAR"), lines, lines.numbers),))


def _list(files: list[str]) -> str:
    """Paths for DuckDB, which would take *, ? and [ in them for a pattern."""
    return "[" + ", ".join(literal(re.sub(r"([*?\[])", r"[\1]", file)) for file in files) + "]"


@dataclass(frozen=True)
class ParquetFiles:
    """Files that declare the same columns, one after the other. Memory is O(row group), of the columns asked for."""

    files: tuple[str, ...]
    columns: tuple[str, ...]

    def batches(self, columns: Sequence[str]) -> Generator[Any, None, None]:
        """Arrow record batches of these columns, with sound values alone."""
        import pyarrow
        from pyarrow import parquet

        for file in self.files:
            with parquet.ParquetFile(file) as opened:
                for batch in opened.iter_batches(BATCH, columns=list(columns)):
                    arrays = [_plain(batch.column(name)) for name in columns]
                    yield pyarrow.RecordBatch.from_arrays(arrays, names=list(columns))


def _plain(column: Any) -> Any:
    """A sound column, the words of a dictionary written out, and points as they are stored."""
    import pyarrow

    if getattr(column.type, "extension_name", "").startswith("geoarrow"):
        return column.storage
    found = sound(column)
    return found.dictionary_decode() if pyarrow.types.is_dictionary(found.type) else found
