"""A connection to PostgreSQL with one snapshot, what it sends, and what it says when something goes wrong.

libpq finds passwords by its own means (`~/.pgpass`, a service, PGPASSWORD); none passes through here. Rows come by
binary COPY (PostgreSQL's manual, COPY, "Binary Format"): a header; rows, each the number of its fields and, of each
field, its length (-1 for NULL) and its bytes, the greatest first; the number -1 in place of a row at the end. Whatever
ends otherwise is damaged: a stream that breaks off is no short table.
"""

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any
from weakref import finalize

import numpy as np

from hazemap.errors import FileError
from hazemap.machine_code.arrays import Bytes, Ints
from hazemap.readers.postgresql_types import DamagedCopy, Decoder
from hazemap.sources.postgresql import connect, driver
from hazemap.sources.source import DatabaseTable
from hazemap.vdaf.compiled_loops import once_compiled

SIGNATURE = b"PGCOPY\n\xff\r\n\x00"
CHUNK = 1 << 22
"""Bytes of rows that become a batch: memory is a few of them, or the greatest row."""

_HEADER, _LAST = len(SIGNATURE) + 8, b""


def record_batches(
    blocks: Iterable[bytes], names: Sequence[str], decoders: Sequence[Decoder]
) -> Generator[Any, None, int]:
    """A batch for about every `CHUNK` bytes, of columns with these names; returns the number of rows.

    `DamagedCopy` for bytes that are not a whole copy of these columns. O(bytes).
    """
    import pyarrow

    rows, started, ended = 0, False, False
    held, size, enough = list[bytes](), 0, CHUNK
    for block in chain(blocks, (_LAST,)):
        if ended and len(block):
            raise DamagedCopy("the server sent more than it said")
        held.append(block)
        size += len(block)
        if ended or (size < enough and block is not _LAST):
            continue
        whole = b"".join(held)
        if not started:
            whole, started = _after_header(whole), True
        data = np.frombuffer(whole, dtype=np.uint8)
        begins, lengths, used, ended = fields(data, len(names))
        if ended and used < len(data):
            raise DamagedCopy("the server sent more than it said")
        if begins.shape[1]:
            rows += begins.shape[1]
            arrays = [decode(data, begins[i], lengths[i]) for i, decode in enumerate(decoders)]
            yield pyarrow.RecordBatch.from_arrays(arrays, names=list(names))
        held, size = [whole[used:]], len(data) - used
        enough = max(CHUNK, 2 * size)
    if not ended:
        raise DamagedCopy("the server broke off within the rows")
    return rows


def fields(data: Bytes, width: int) -> tuple[Ints, Ints, int, bool]:
    r"""Starts and lengths of the fields of whole rows, both (columns, rows); bytes used; whether they end.

    >>> one = b"\0\1" + b"\0\0\0\2" + b"me"
    >>> [found.tolist() if hasattr(found, "tolist") else found for found in fields(
    ...     np.frombuffer(one + b"\xff\xff", dtype=np.uint8), 1)]
    [[[6]], [[2]], 10, True]
    """
    most = len(data) // (2 + 4 * width) + 1
    begins, lengths = np.empty((width, most), dtype=np.int64), np.empty((width, most), dtype=np.int64)
    rows, used, ended = once_compiled(_fields)(data, width, begins, lengths)
    if rows < 0:
        raise DamagedCopy("the server sent rows of another width than was asked for")
    return begins[:, :rows], lengths[:, :rows], used, bool(ended)


def _after_header(data: bytes) -> bytes:
    """The rows; there are no flags that matter since PostgreSQL 12, and no extension of the header in any."""
    if len(data) < _HEADER or not data.startswith(SIGNATURE) or any(data[len(SIGNATURE) : _HEADER]):
        raise DamagedCopy("the server sent something else than rows")
    return data[_HEADER:]


def _fields(data, width, begins, lengths) -> Any:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    at, row = 0, 0
    while at + 2 <= len(data):
        number = np.int64(data[at]) << 8 | np.int64(data[at + 1])
        if number == 0xFFFF:
            return row, at + 2, True
        if number != width:
            return -1, at, False
        here = at + 2
        for column in range(width):
            if here + 4 > len(data):
                return row, at, False
            size: Any = np.int64(np.int8(data[here]))
            for i in range(1, 4):
                size = size << 8 | np.int64(data[here + i])
            here += 4
            if size < -1:
                return -1, at, False
            begins[column, row], lengths[column, row] = here, size
            if size > 0:
                here += size
            if here > len(data):
                return row, at, False
        at, row = here, row + 1
    return row, at, False


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
