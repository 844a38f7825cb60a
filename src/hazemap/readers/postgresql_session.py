"""A connection to PostgreSQL with one snapshot, and what it says when something goes wrong.

libpq finds passwords by its own means (`~/.pgpass`, a service, PGPASSWORD); none passes through here.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import finalize

from hazemap.errors import FileError
from hazemap.readers.postgresql_copy import record_batches
from hazemap.readers.postgresql_types import DamagedCopy, Decoder
from hazemap.sources.postgresql import connect, driver
from hazemap.sources.source import DatabaseTable

OLDEST = 130_000
"""PostgreSQL 13, the first that strips zeros of numbers (`trim_scale`)."""

ENCODINGS = ("UTF8", "SQL_ASCII", "LATIN1")
"""Encodings of a database whose texts can all be read as UTF-8. In others one text could stop the reading."""

SETTINGS = (
    *("synchronize_seqscans = off", "max_parallel_workers_per_gather = 0"),
    *("enable_indexscan = off", "enable_indexonlyscan = off", "TimeZone = 'UTC'"),
)
"""A scan begins at the first row, has one worker and keeps the order in which rows are stored, whichever index helps to
find them (bitmaps still may); times without a zone, compared with others, are UTC."""

_LOST = ("08", "57P")
"""Classes of SQLSTATE: the connection, and the server's going away."""


class Session:
    """A connection with one snapshot, which ends with it, or with a reading that did not come to its end.

    A sample draws by the rank of a row among its person's rows, so their order is kept as far as SQL can.
    """

    def __init__(self, url: DatabaseTable) -> None:
        self.name = f"the table {url.table} in PostgreSQL"
        psycopg = driver()
        try:
            self.connection: Any = connect(url.database, client_encoding="UTF8", application_name="hazemap")
        except psycopg.Error as error:
            raise FileError(f"{self.name} cannot be reached: {_first_line(error)}") from None
        finalize(self, self.connection.close)
        if self.connection.info.server_version < OLDEST:
            raise FileError(f"{self.name} is in a server older than PostgreSQL 13, which hazemap does not read")
        self.connection.autocommit = False
        self.connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        self.connection.read_only = True
        for setting in SETTINGS:
            self.ask(f"SET LOCAL {setting}")
        self._encoding = encoding = self.ask("SHOW server_encoding")[0][0]
        if encoding not in ENCODINGS:
            raise FileError(
                f"{self.name} is in a database in {encoding}, of which hazemap does not know that every text can be "
                f"had as UTF-8: copy it to one in {ENCODINGS[0]}"
            )

    def ask(self, sql: str, values: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        """The rows of a statement about the catalogue."""
        with self._explained():
            found = self.connection.execute(sql, values)
            return list(found.fetchall()) if found.description else []

    def described(self, relation: str) -> list[tuple[str, int, int]]:
        """The name, the type's number and its modifier of each column; no row is read."""
        with self._explained():
            found = self.connection.execute(f"SELECT * FROM {relation} LIMIT 0").pgresult  # noqa: S608 - quoted
            return [(found.fname(i).decode(), found.ftype(i), found.fmod(i)) for i in range(found.nfields)]

    def copied(self, select: str, names: Sequence[str], decoders: Sequence[Decoder]) -> Generator[Any, None, None]:
        """Arrow record batches of a SELECT. If it is not read to its end, the session ends too."""
        if self.connection.closed:
            raise FileError(f"the snapshot of {self.name} went with its connection: open it again")
        whole = False
        if self._encoding == "SQL_ASCII":
            self.ask(
                "SET LOCAL client_encoding = 'SQL_ASCII'"
            )  # as it is: the server would refuse a text for its bytes
        try:
            with self._explained(), self.connection.cursor() as cursor:
                with cursor.copy(f"COPY ({select}) TO STDOUT (FORMAT binary)".encode()) as copy:
                    rows = yield from record_batches(copy, names, decoders)
                if cursor.rowcount != rows:
                    raise DamagedCopy(f"it sent {rows} rows, and said that they are {cursor.rowcount}")
                whole = True
        finally:
            if not whole:
                self.connection.close()

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Say what went wrong in words of ours: the server's may quote rows."""
        psycopg = driver()
        try:
            yield
        except psycopg.Error as error:
            raise FileError(f"{self.name} cannot be read to its end: {_why(error.sqlstate)}") from None
        except DamagedCopy as error:
            raise FileError(f"{self.name} cannot be read to its end: {error}") from None


def _why(state: str | None) -> str:
    """The meaning of a server's error, by its SQLSTATE alone."""
    if state is None or state.startswith(_LOST):
        return "the connection to the server broke, so what was read of it counts for nothing; run it again"
    if state == "57014":
        return "the server cancelled it (SQLSTATE 57014), perhaps for its statement_timeout"
    if state == "42501":
        return "this user may not read it (SQLSTATE 42501)"
    return f"the server refused (SQLSTATE {state}); its log says why"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
