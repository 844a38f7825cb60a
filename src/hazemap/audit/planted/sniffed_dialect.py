"""The delimiter, the quote and the escape of a CSV file are guessed from its first rows, as this project once did.

One line of one person can then change how everybody's lines are read.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hazemap.audit.planted.replacing import replaced
from hazemap.tables.opening import sources
from hazemap.tables.opening.connection import Connection, literal, quoted
from hazemap.tables.opening.files import open_files
from hazemap.tables.opening.source import Part, Source, named_numbers


@contextmanager
def planted() -> Iterator[None]:
    """DuckDB's own reader, with its sniffer, reads the file."""

    def sniffing(connection: Connection, path: Any, *rest: Any, **options: Any) -> Source:
        name = os.fspath(path)
        if not name.endswith(".csv"):
            return open_files(connection, path, *rest, **options)
        rows = f"read_csv([{literal(name)}], header = true, all_varchar = true, ignore_errors = true)"
        kinds = dict.fromkeys(connection.kinds(rows, name), "VARCHAR")
        written = named_numbers(list(kinds))
        numbers = ", ".join(f"TRY_CAST({quoted(a)} AS DOUBLE) AS {quoted(b)}" for a, b in written.items())
        return Source(name, (Part(f"(SELECT *, {numbers} FROM {rows})", kinds, None, written),))  # noqa: S608 - quoted

    with replaced(sources, "open_files", sniffing):
        yield
