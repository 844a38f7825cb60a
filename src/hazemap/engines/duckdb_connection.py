"""A DuckDB connection private to one table: it fetches nothing and leaves nothing on disk."""

from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

from hazemap.engines.table_source import FED, Feed
from hazemap.errors import FileError, HazemapError, TableError

BATCH = 1 << 15
"""Rows in a batch: about a megabyte."""


@dataclass(frozen=True)
class TableQuery:
    """A query in SQL; or of the rows that a feed calls `fed`, with the columns that it needs.

    A feed whose columns are all that is asked for, in this order, is not shown to DuckDB, and needs no `sql`.
    """

    sql: str | None
    feed: Feed | None = None
    columns: tuple[str, ...] = ()


class DuckDBConnection:
    """A database in memory that spills to a folder of its own, which goes when it does.

    >>> connection = DuckDBConnection(memory_limit=1 << 30, threads=1)
    >>> [batch.num_rows for batch in connection.stream(TableQuery("SELECT 1"), "a number")]
    [1]
    """

    def __init__(self, memory_limit: int, threads: int) -> None:
        self.threads, self.memory_limit = threads, memory_limit

    @cached_property
    def _duckdb(self) -> Any:
        """The database. It takes 20 ms, so it is made when something is asked of it: rows may need none."""
        import duckdb

        spill = mkdtemp(prefix="hazemap-")
        made: Any = duckdb.connect(
            config={
                "memory_limit": f"{self.memory_limit // 1024}KiB",
                "threads": self.threads,
                "temp_directory": spill,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
            }
        )
        made.execute("SET python_enable_replacements = false")  # a name in SQL is never a variable of ours
        made.execute("SET enable_geoparquet_conversion = false")  # geometries as they are stored: as bytes
        made.execute("SET TimeZone = 'UTC'")
        finalize(self, _closed, made, spill)
        return made

    def register(self, name: str, rows: Any) -> None:
        """Give Arrow data, of types that DuckDB has, a name in SQL."""
        self._duckdb.register(name, rows)

    def store(self, name: str, stream: Any) -> None:
        """Keep what can be read only once under a name in SQL; on disk, where memory does not suffice."""
        with explained("the stream"):
            self._duckdb.register("stream", stream)
            self._duckdb.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM stream")  # noqa: S608 - a name of ours
            self._duckdb.unregister("stream")

    def kinds(self, relation: str, name: str) -> dict[str, str]:
        """The type of each column of a relation."""
        with explained(name):
            described = self._duckdb.execute(f"DESCRIBE SELECT * FROM {relation}").fetchall()  # noqa: S608 - quoted
        return {str(column): str(kind) for column, kind, *_ in described}

    def kinds_of(self, schema: Any, name: str) -> dict[str, str]:
        """The type of each column of an Arrow schema, as DuckDB has it; without the columns whose types it has not.

        A half float, a union or a decimal of more than 38 digits makes no other column harder to read.
        """
        import duckdb
        import pyarrow

        try:
            self._duckdb.register("declared", schema.empty_table())
            try:
                return self.kinds("declared", name)
            finally:
                self._duckdb.unregister("declared")
        except (duckdb.Error, FileError, pyarrow.ArrowException):
            if len(schema) == 1:
                return {}
            return {key: kind for each in schema for key, kind in self.kinds_of(pyarrow.schema([each]), name).items()}

    def stream(self, query: TableQuery, name: str) -> Generator[Any, None, None]:
        """Arrow record batches of a query, in the order of the rows. Close it before asking anything else."""
        yield from self._stream(query, name, "true")

    def stream_in_any_order(self, query: TableQuery, name: str) -> Generator[Any, None, None]:
        """The same, a little faster, where nothing is drawn by the order of the rows."""
        yield from self._stream(query, name, "false")

    def _stream(self, query: TableQuery, name: str, ordered: str) -> Generator[Any, None, None]:
        if query.sql is not None:
            self._duckdb.execute(f"SET preserve_insertion_order = {ordered}")
        told = list[HazemapError]()
        try:
            with explained(name), ExitStack() as stack:
                if query.feed is not None:
                    rows = stack.enter_context(closing(_listened(query.feed.batches(query.columns), told)))
                    if query.sql is None:
                        yield from rows
                    elif not self._fed(rows, stack):
                        return
                if query.sql is not None:
                    yield from stack.enter_context(closing(self._duckdb.sql(query.sql).to_arrow_reader(BATCH)))
        except HazemapError as error:
            if told and told[0] is not error:
                raise told[0] from None  # DuckDB says only that its source failed
            raise

    def _fed(self, rows: Generator[Any, None, None], stack: ExitStack) -> bool:
        """Give these rows their name until the stack is left; False where there is none."""
        import pyarrow

        first = next(rows, None)
        if first is None:
            return False
        reader = pyarrow.RecordBatchReader.from_batches(first.schema, chain([first], rows))
        self._duckdb.register(FED, reader)
        stack.callback(self._duckdb.unregister, FED)
        return True


def _listened(rows: Generator[Any, None, None], told: list[HazemapError]) -> Generator[Any, None, None]:
    """The same rows; what the feed says when it fails is kept."""
    with closing(rows):
        try:
            yield from rows
        except HazemapError as error:
            told.append(error)
            raise


def _closed(database: Any, spill: str) -> None:
    database.close()
    rmtree(spill, ignore_errors=True)


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Say what went wrong in words of ours: DuckDB's and Arrow's quote rows."""
    import duckdb
    import pyarrow

    try:
        yield
    except (duckdb.OutOfMemoryException, MemoryError):
        raise TableError(f"reading {name} needs more memory than its limit; pass a larger memory limit") from None
    except (duckdb.Error, pyarrow.ArrowException, OSError):
        raise FileError(
            f"{name} cannot be read to its end: it is damaged, not of the kind that its name says, or changed since"
            " it was opened"
        ) from None


def quoted(name: str) -> str:
    """A name of any characters as an SQL identifier.

    >>> quoted('the "user" column')
    '"the ""user"" column"'
    """
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text of any characters as an SQL string.

    >>> literal("it's")
    "'it''s'"
    """
    return "'" + text.replace("'", "''") + "'"
