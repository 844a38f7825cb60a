"""Delta tables: their log says which files count, which columns there are, and what a folder's rows have in common.

delta-rs reads the log, of tables that lie elsewhere from a copy of it; the rows are read as those of any Parquet files.
What a log asks for and is not read here is refused by its name, before any row is read.
"""

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote

from hazemap.engines.duckdb_connection import DuckDBConnection
from hazemap.engines.table_source import TableSource
from hazemap.errors import FileError, TableError
from hazemap.readers.declared_columns import DeclaredFile, declared_source
from hazemap.readers.stored_file import LocalFile
from hazemap.readers.stored_folder import StoredFolder, asked

LOG = "_delta_log/"
LARGEST_LOG = 1 << 30
"""Bytes of a log that are copied at most: commits since the last checkpoint, and that."""

READ = {"timestampNtz", "vacuumProtocolCheck", "v2Checkpoint"}
"""Features of a table's protocol that change nothing about how its rows are read."""

_VERSION = re.compile(r"_delta_log/(\d{20})\.(.+)")


def open_delta(connection: DuckDBConnection, folder: StoredFolder) -> TableSource:
    """The last version of a table; `TableError` for what its log needs and we do not read."""
    if not all(isinstance(file, LocalFile) for file in folder.files.values()):
        with TemporaryDirectory(prefix="hazemap-") as copy:  # only we may see it: a log holds extremes of rows
            _copied(folder, Path(copy))
            return _opened(connection, folder, copy)
    return _opened(connection, folder, folder.name)


def _opened(connection: DuckDBConnection, folder: StoredFolder, place: str) -> TableSource:
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
    odd = sorted({str(feature) for feature in protocol.reader_features or ()} - READ)
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
    asked([needed[path] for path in with_places], lambda file: fetched(asked_of[str(file)]))
