"""Rows of files whose columns a table declares apart from them, as Delta and Iceberg do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hazemap.engines.duckdb_connection import DuckDBConnection
from hazemap.engines.table_source import FED, SourcePart, TableSource
from hazemap.errors import FileError, TableError
from hazemap.readers.parquet_files import ParquetFiles, ScannedFile, described, kinds_of_fed
from hazemap.readers.stored_file import StoredFile
from hazemap.readers.stored_folder import asked, changing


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
    check = changing([each.file for each in files])
    found = asked([each.file for each in files], described)
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
