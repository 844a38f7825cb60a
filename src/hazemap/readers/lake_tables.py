"""Tables of lakes, Delta and Iceberg: metadata say which files count, and which columns and rows are in them.

delta-rs reads the log of a Delta table, of one that lies elsewhere from a copy of it. PyIceberg reads metadata and
manifests through a folder that shows it nothing but the table's own files. The rows are read as those of any Parquet
files, whose columns the table declares apart from them. What a table asks for and is not read here is refused by its
name, before any row is read.
"""

import io
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

import numpy as np

from hazemap.engines.duckdb_connection import DuckDBConnection
from hazemap.engines.table_source import FED, SourcePart, TableSource
from hazemap.errors import FileError, HazemapError, TableError
from hazemap.readers.parquet_files import ParquetFiles, ScannedFile, declarations_of, kinds_of_fed, opened_parquet
from hazemap.readers.stored_file import LocalFile, StoredFile
from hazemap.readers.stored_folder import StoredFolder, ask_each, change_check


@dataclass(frozen=True)
class DeclaredFile:
    """A file of a table, the names of its columns by those of the table where they differ, and values of all its rows.

    A column that is held as None is not in the file, even if one of its name is.
    `dropped` are numbers of rows in the file, from 0 on and ascending, that are deleted.
    """

    file: StoredFile
    held: Mapping[str, str | None] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)
    dropped: Any = None


def declared_source(
    connection: DuckDBConnection,
    name: str,
    schema: Any,
    files: Sequence[DeclaredFile],
    apart: frozenset[str] = frozenset(),
) -> TableSource:
    """The table of these files, its columns of the types in an Arrow schema.

    Columns that are `apart` are in no file, and have the values that are given. A column that a file lacks is missing
    in all its rows. `TableError` where a file declares a type whose values the table's type may not hold.
    """
    check = change_check([each.file for each in files])
    found = ask_each([each.file for each in files], declarations_of)
    kinds = kinds_of_fed(connection, schema, name)
    declared = {each.name: each.type for each in schema if each.name in kinds}
    scanned = []
    for each, (_, own, _) in zip(files, found, strict=True):
        held, given = dict[str, str](), dict[str, Any]()
        for column, kind in declared.items():
            stored = each.held.get(column, column)
            if stored is not None and stored in own.names and column not in apart:
                if not _becomes(own.field(stored).type, kind):
                    raise TableError(
                        f"the column {column!r} of {name} is {kind}, and a file of the table has it as "
                        f"{own.field(stored).type}: write that file anew"
                    )
                held[column] = stored
            else:
                given[column] = _scalar(each.given.get(column), kind, name)
        scanned.append(ScannedFile(each.file, held, given, each.dropped))
    deleted = sum(0 if each.dropped is None else len(each.dropped) for each in files)
    feed = ParquetFiles(tuple(scanned), tuple(declared), declared)
    return TableSource(name, (SourcePart(FED, kinds, feed),), sum(each.rows for each in found) - deleted, check=check)


def _scalar(value: Any, kind: Any, name: str) -> Any:
    import pyarrow

    try:
        return pyarrow.scalar(value, kind)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        raise FileError(f"{name} says of a whole file what is no value of a column's type, {kind}") from None


def _becomes(kind: Any, declared: Any) -> bool:
    """Whether every value of a type is one of another: decided from the types, and never from a value."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return _becomes(kind.value_type, declared)
    if kind == declared:
        return True
    pairs = (
        (_is_text, _is_text),
        (_is_bytes, _is_bytes),
        (types.is_timestamp, _is_micro),
        (types.is_date32, _is_micro),
        (types.is_floating, types.is_float64),
        (types.is_nested, types.is_nested),
    )
    if types.is_integer(kind) and types.is_integer(declared):
        return bool(
            kind.bit_width <= declared.bit_width and types.is_signed_integer(kind) == types.is_signed_integer(declared)
        )
    if types.is_integer(kind) and types.is_float64(declared):
        return bool(kind.bit_width <= 32)
    if types.is_decimal(kind) and types.is_decimal(declared):
        return bool(kind.scale == declared.scale and kind.precision <= declared.precision)
    return any(one(kind) and other(declared) for one, other in pairs)


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _is_micro(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_timestamp(kind) and kind.unit == "us")


def _is_bytes(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


LOG = "_delta_log/"
LARGEST_LOG = 1 << 30
"""Bytes of a log that are copied at most: commits since the last checkpoint, and that."""

READ_FEATURES = {"timestampNtz", "vacuumProtocolCheck", "v2Checkpoint"}
"""Features of a table's protocol that change nothing about how its rows are read."""

_VERSION = re.compile(r"_delta_log/(\d{20})\.(.+)")


def open_delta(connection: DuckDBConnection, folder: StoredFolder) -> TableSource:
    """The last version of a table; `TableError` for what its log needs and we do not read."""
    if not all(isinstance(file, LocalFile) for file in folder.files.values()):
        with TemporaryDirectory(prefix="hazemap-") as copy:  # only we may see it: a log holds extremes of rows
            _copied(folder, Path(copy))
            return _delta_at(connection, folder, copy)
    return _delta_at(connection, folder, folder.name)


def _delta_at(connection: DuckDBConnection, folder: StoredFolder, place: str) -> TableSource:
    import pyarrow

    name = folder.name
    try:
        import deltalake
    except ImportError:
        raise TableError(f"{name} is a Delta table, and reading its log needs: pip install 'hazemap[lakes]'") from None
    try:
        table = deltalake.DeltaTable(place)
        protocol, about = table.protocol(), table.metadata()
        schema: Any = pyarrow.schema(table.schema().to_arrow())
        added = pyarrow.table(table.get_add_actions())
        actions = added.select([name for name in ("path", "partition") if name in added.column_names]).to_pylist()
        told = "deletionVectors" in (protocol.reader_features or ())
        deleting = told or pyarrow.table(table.deletion_vectors()).num_rows > 0  # which the protocol forgot
    except (
        BaseException
    ) as error:  # of logs of any kind, in any place: in Rust, what nobody thought of is no `Exception`
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise FileError(
            f"the log of the Delta table {name} is damaged, or is written in a way that is not read"
        ) from None
    odd = sorted({str(feature) for feature in protocol.reader_features or ()} - READ_FEATURES)
    if deleting:
        odd = sorted({*odd, "deletionVectors"})
    if about.configuration.get("delta.columnMapping.mode", "none") != "none":
        odd = sorted({*odd, "columnMapping"})
    if odd or protocol.min_reader_version > 3:
        raise TableError(
            f"the Delta table {name} needs what is not read: {', '.join(odd) or 'a newer protocol'}; copy it without "
            "that (deletionVectors: set delta.enableDeletionVectors to false, purge, and drop the feature)"
        )
    files = []
    for action in sorted(actions, key=lambda each: str(each["path"])):
        file = folder.files.get(unquote(action["path"])) or folder.files.get(action["path"])
        if file is None:
            raise FileError(f"the log of the Delta table {name} names a file that is not in its folder")
        files.append(DeclaredFile(file, {}, dict(action.get("partition") or {})))
    return declared_source(connection, name, schema, files, frozenset(about.partition_columns))


def _copied(folder: StoredFolder, copy: Path) -> None:
    """Copy the log from its last checkpoint on."""
    log = {path: file for path, file in folder.files.items() if path.startswith(LOG)}
    versions = {path: _VERSION.fullmatch(path) for path in log}
    checkpoints = [int(found[1]) for found in versions.values() if found and found[2].startswith("checkpoint")]
    first = max(checkpoints, default=0)
    needed = {
        path: file
        for path, file in log.items()
        if ((found := versions[path]) is not None and int(found[1]) >= first) or path.startswith(LOG + "_sidecars/")
    }
    if any(not re.fullmatch(r"[\w.=-]+(/[\w.=-]+)*", path) or ".." in path for path in needed):
        raise FileError(f"the log of the Delta table {folder.name} has files with names of another kind")
    if sum(file.size for file in needed.values() if not isinstance(file, LocalFile)) > LARGEST_LOG:
        raise TableError(
            f"the log of the Delta table {folder.name} is larger than {LARGEST_LOG >> 20} MB: make a checkpoint of it"
        )

    def fetched(path: str) -> None:
        file = needed[path]
        if not isinstance(file, LocalFile):
            goal = copy / path
            goal.parent.mkdir(parents=True, exist_ok=True)
            with file.open() as source, goal.open("wb") as written:
                while piece := source.read(1 << 22):
                    written.write(piece)
            file.check()

    with_places = list(needed)
    asked_of = {str(needed[path]): path for path in with_places}
    ask_each([needed[path] for path in with_places], lambda file: fetched(asked_of[str(file)]))


LARGEST_METADATA = 1 << 28
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
        return _iceberg_in(connection, folder)
    except HazemapError:
        raise
    except Exception:  # of metadata of any kind, in any place
        raise FileError(
            f"the metadata of the Iceberg table {name} is damaged, or is written in a way that is not read"
        ) from None


def _iceberg_in(connection: DuckDBConnection, folder: StoredFolder) -> TableSource:
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.serializers import NOOP_COMPRESSOR, FromByteStream
    from pyiceberg.table import StaticTable

    from hazemap.readers.iceberg_folder import FolderIO

    place = current_metadata(folder)
    shown = FolderIO.of(folder, LARGEST_METADATA)
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
    stored = ask_each([shown.file(task.file.file_path) for task in tasks], _numbered)
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
