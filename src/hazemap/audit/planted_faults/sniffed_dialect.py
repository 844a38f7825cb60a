"""The delimiter, the quote and the escape of a CSV file are guessed from its first rows, as this project once did.

One line of one person can then change how everybody's lines are read.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hazemap.audit.planted_faults.monkeypatch import replaced
from hazemap.engines.duckdb_connection import DuckDBConnection, literal, quoted
from hazemap.engines.table_source import SourcePart, TableSource, named_numbers
from hazemap.readers import open_table as sources
from hazemap.readers.file_formats import open_files


@contextmanager
def planted() -> Iterator[None]:
    """DuckDB's own reader, with its sniffer, reads the file."""

    def sniffing(connection: DuckDBConnection, path: Any, *rest: Any, **options: Any) -> TableSource:
        name = os.fspath(path)
        if not name.endswith(".csv"):
            return open_files(connection, path, *rest, **options)
        rows = f"read_csv([{literal(name)}], header = true, all_varchar = true, ignore_errors = true)"
        kinds = dict.fromkeys(connection.kinds(rows, name), "VARCHAR")
        written = named_numbers(list(kinds))
        numbers = ", ".join(f"TRY_CAST({quoted(a)} AS DOUBLE) AS {quoted(b)}" for a, b in written.items())
        return TableSource(name, (SourcePart(f"(SELECT *, {numbers} FROM {rows})", kinds, None, written),))  # noqa: S608 - quoted

    with replaced(sources, "open_files", sniffing):
        yield
