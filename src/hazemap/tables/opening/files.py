"""Tables in files: Parquet, GeoParquet and CSV, one or many, named by a path, a folder or a pattern."""

import glob
import json
import os
import re
from pathlib import Path

from hazemap.errors import FileError, TableError
from hazemap.tables.opening.connection import Connection, literal
from hazemap.tables.opening.source import Geometry, Source

PARQUET = (".parquet", ".pq", ".parq", ".geoparquet")
CSV = tuple(kind + packed for kind in (".csv", ".tsv", ".txt") for packed in ("", ".gz", ".zst"))


def open_files(connection: Connection, path: str | os.PathLike[str]) -> Source:
    """The table in a file, in all files of a folder, or in the files that fit a pattern, in order of name."""
    name = os.fspath(path)
    files = _found(name)
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise TableError(f"{name} holds both Parquet and CSV files; pass a pattern that fits one kind, such as *.csv")
    if "" in kinds:
        raise FileError(
            f"{name} is neither Parquet ({', '.join(PARQUET)}) nor CSV ({', '.join(CSV)}) by its name; open it with"
            " pandas or geopandas and pass the data frame"
        )
    empty = [file for file in files if Path(file).stat().st_size == 0]
    if empty:
        raise FileError(f"{empty[0]} is empty")
    return (_parquet if kinds == {"parquet"} else _csv)(connection, name, files)


def _found(name: str) -> list[str]:
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
            raise FileError(f"the folder {name} holds no Parquet or CSV file")
        return files
    files = sorted(file for file in glob.glob(name, recursive=True) if Path(file).is_file())  # noqa: PTH207 - any pattern
    if not files:
        raise FileError(f"no file is called or fits {name}")
    return files


def _kind(file: str) -> str:
    lower = file.lower()
    return "parquet" if lower.endswith(PARQUET) else "csv" if lower.endswith(CSV) else ""


def _parquet(connection: Connection, name: str, files: list[str]) -> Source:
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
    relation = f"read_parquet({_list(files)}, union_by_name = {len(files) > 1})"
    kinds = connection.kinds(relation, name)
    common = {column: kind for column, kind in kinds.items() if all(column in schema.names for schema in schemas)}
    geometries = {_geometry(schema.metadata or {}, file) for schema, file in zip(schemas, files, strict=True)}
    if len(geometries) > 1:
        raise TableError(f"the files of {name} differ in their geometry column or its reference system; make them one")
    return Source(name, relation, common, rows, geometries.pop())


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
    if encoding not in {"WKB", "point"} or not kinds <= {"Point", "Point Z"}:
        raise TableError(f"rows are counted where their point is; the geometries of {file} are not all points")
    if "crs" in about and about["crs"] is None:
        raise TableError(f"{file} does not say the reference system of its points; set it, or pass --lon and --lat")
    return Geometry(column, encoding, json.dumps(about.get("crs", "OGC:CRS84"), sort_keys=True))


def _csv(connection: Connection, name: str, files: list[str]) -> Source:
    # What is sniffed from the first lines may not hold for the rest, so everything is read as text.
    options = "header = true, all_varchar = true"
    each = [connection.kinds(f"read_csv({_list([file])}, {options})", file) for file in files]
    common = {column: "VARCHAR" for column in each[0] if all(column in kinds for kinds in each)}
    if any(re.fullmatch(r"[-+]?\d+([.,]\d+)?", column.strip()) for column in common):
        raise TableError(f"the first line of {name} is data; a CSV file needs a line with the names of its columns")
    relation = f"read_csv({_list(files)}, {options}, union_by_name = {len(files) > 1})"
    return Source(name, relation, common, None, None, numbers_as_text=True)


def _list(files: list[str]) -> str:
    """Paths for DuckDB, which would take *, ? and [ in them for a pattern."""
    return "[" + ", ".join(literal(re.sub(r"([*?\[])", r"[\1]", file)) for file in files) + "]"
