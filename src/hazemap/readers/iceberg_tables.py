"""Iceberg tables: metadata and manifests say which files and rows count, and which column is which by its number.

PyIceberg reads metadata and manifests through a folder that shows it nothing but the table's own files; the rows are
read as those of any Parquet files. What it names and is not read here is refused before any row is read.
"""

import io
import re
from collections import defaultdict
from typing import Any

import numpy as np

from hazemap.engines.duckdb_connection import DuckDBConnection
from hazemap.engines.table_source import TableSource
from hazemap.errors import FileError, HazemapError, TableError
from hazemap.readers.declared_columns import DeclaredFile, declared_source
from hazemap.readers.parquet_files import opened_parquet
from hazemap.readers.stored_file import StoredFile
from hazemap.readers.stored_folder import StoredFolder, asked

LARGEST = 1 << 28
"""Bytes of a file of metadata or of a manifest."""

_METADATA = re.compile(r"metadata/(?:v(\d{1,18})|(\d{1,18})-[^/]*?)(?:\.gz)?\.metadata\.json")


def open_iceberg(connection: DuckDBConnection, folder: StoredFolder) -> TableSource:
    """The current snapshot of the table in a folder; `TableError` for what it needs and we do not read."""
    name = folder.name
    try:
        import pyiceberg.exceptions  # noqa: F401
    except ImportError:
        raise TableError(f"{name} is an Iceberg table, and reading it needs: pip install 'hazemap[lakes]'") from None
    try:
        return _opened(connection, folder)
    except HazemapError:
        raise
    except Exception:  # of metadata of any kind, in any place
        raise FileError(
            f"the metadata of the Iceberg table {name} is damaged, or is written in a way that is not read"
        ) from None


def _opened(connection: DuckDBConnection, folder: StoredFolder) -> TableSource:
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.serializers import NOOP_COMPRESSOR, FromByteStream
    from pyiceberg.table import StaticTable

    from hazemap.readers.iceberg_folder import FolderIO

    place = current_metadata(folder)
    shown = FolderIO.of(folder, LARGEST)
    metadata = FromByteStream.table_metadata(io.BytesIO(shown.unpacked(place)), "utf-8", NOOP_COMPRESSOR)
    shown.at(metadata.location)
    table = StaticTable(("table",), metadata, place, shown, NoopCatalog("table"))
    schema = table.schema()
    arrow = schema_to_pyarrow(schema)
    try:
        tasks = sorted(table.scan().plan_files(), key=lambda task: str(task.file.file_path))
    except ValueError as error:
        if "equality" not in str(error):
            raise
        raise _deleted_otherwise(folder) from None
    if any(str(task.file.file_format).rpartition(".")[2].upper() != "PARQUET" for task in tasks):
        raise TableError(f"the Iceberg table {folder.name} has files that are not Parquet; no others are read")
    dropped = _dropped(folder, shown, tasks)
    stored = asked([shown.file(task.file.file_path) for task in tasks], _numbered)
    files = []
    for task, columns in zip(tasks, stored, strict=True):
        file = shown.file(task.file.file_path)
        if columns is None:
            raise TableError(f"a file of the Iceberg table {folder.name} has columns without numbers: write it anew")
        held = {field.name: columns.get(field.field_id) for field in schema.fields}
        files.append(DeclaredFile(file, held, _partition(table, task.file, schema), dropped.get(task.file.file_path)))
    if any(getattr(field, "initial_default", None) is not None for field in schema.fields):
        raise TableError(f"the Iceberg table {folder.name} has columns with values for rows older than they are")
    return declared_source(connection, folder.name, arrow, files)


def current_metadata(folder: StoredFolder) -> str:
    """The path of the newest metadata, by its number; where that is not enough, by the hint that some writers leave.

    A hint may be older than the table: it is written after a version. `TableError` where two have the highest number,
    as after two writers without a catalog, or where a hint names an older one than a catalog may know.
    """
    found = {path: int(named[1] or named[2]) for path in folder.files if (named := _METADATA.fullmatch(path))}
    newest = [path for path, number in found.items() if number == max(found.values())]
    hinted = [path for path in _hinted(folder) if path in found]
    if hinted and hinted[0] in newest:
        return hinted[0]
    if len(newest) == 1 and (not hinted or newest[0].startswith("metadata/v")):  # so called, it is there by a commit
        return newest[0]
    if len(newest) == 1:
        raise TableError(
            f"the folder of the Iceberg table {folder.name} has newer metadata than its version-hint.text names: "
            "remove what no catalog knows, or the hint"
        )
    raise TableError(
        f"the folder of the Iceberg table {folder.name} has {len(newest) or 'no'} newest metadata: remove what no "
        "catalog knows"
    )


def _hinted(folder: StoredFolder) -> tuple[str, ...]:
    hint = folder.files.get("metadata/version-hint.text")
    if hint is None or hint.size > 100:
        return ()
    with hint.open() as source:
        written = source.read().decode("ascii", "replace").strip()
    return f"metadata/v{written}.metadata.json", f"metadata/v{written}.gz.metadata.json", f"metadata/{written}"


def _numbered(file: StoredFile) -> dict[int, str] | None:
    """The names of a file's columns by their numbers; None where one has none."""
    with opened_parquet(file) as opened:
        numbers = [(field.metadata or {}).get(b"PARQUET:field_id") for field in opened.schema_arrow]
        named = zip(numbers, opened.schema_arrow.names, strict=True)
        return None if None in numbers else {int(number): name for number, name in named if number is not None}


def _partition(table: Any, file: Any, schema: Any) -> dict[str, Any]:
    """Values that all rows of a file have, of columns that it may not hold: those by which it was put apart."""
    spec = table.metadata.specs()[file.spec_id]
    values = [file.partition[place] for place in range(len(spec.fields))]
    return {
        schema.find_column_name(field.source_id): value
        for field, value in zip(spec.fields, values, strict=True)
        if str(field.transform) == "identity" and schema.find_column_name(field.source_id)
    }


def _deleted_otherwise(folder: StoredFolder) -> TableError:
    return TableError(
        f"rows of the Iceberg table {folder.name} are deleted in a way that is not read (by equality, or by vectors): "
        "compact it first"
    )


def _dropped(folder: StoredFolder, shown: Any, tasks: list[Any]) -> dict[str, Any]:
    """The rows of each file that are deleted, ascending. Memory is O(deleted rows), 8 bytes each."""
    positions = defaultdict[str, list[Any]](list)
    named = {task.file.file_path for task in tasks}
    deletes = {each.file_path: each for task in tasks for each in task.delete_files}
    for path, each in sorted(deletes.items()):
        kinds = (str(each.content).upper(), str(each.file_format).upper())
        if "POSITION" not in kinds[0] or not kinds[1].endswith("PARQUET"):
            raise _deleted_otherwise(folder)
        with opened_parquet(shown.file(path)) as opened:
            for batch in opened.iter_batches(columns=["file_path", "pos"]):
                files = batch.column(0).dictionary_encode()
                codes, numbers = files.indices.to_numpy(zero_copy_only=False), batch.column(1).to_numpy()
                for code, file in enumerate(files.dictionary.to_pylist()):
                    if file in named:
                        positions[file].append(numbers[codes == code])
    return {file: np.unique(np.concatenate(each)) for file, each in positions.items()}
