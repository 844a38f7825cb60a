"""A connection to PostgreSQL with one snapshot, and how the bytes of its binary COPY become Arrow arrays.

Nothing that is selected can fail for what a row holds: an error would tell of that row. Numbers of any length come as
text, for a cast would refuse those that no double holds; a shape that is no point comes as nothing.

libpq finds passwords by its own means (`~/.pgpass`, a service, PGPASSWORD); none passes through here. Rows come by
binary COPY (PostgreSQL's manual, COPY, "Binary Format"): a header; rows, each the number of its fields and, of each
field, its length (-1 for NULL) and its bytes, the greatest first; the number -1 in place of a row at the end. Whatever
ends otherwise is damaged: a stream that breaks off is no short table.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.duckdb_connection import quoted
from hazemap.errors import FileError
from hazemap.machine_code.arrays import Bools, Bytes, Ints
from hazemap.sources.postgresql import connect, driver
from hazemap.sources.source import DatabaseTable
from hazemap.vdaf.compiled_loops import once_compiled

Decoder = Callable[[Bytes, Ints, Ints], Any]
"""The Arrow array of fields, of the bytes that they lie in, where each begins, and its length, -1 for NULL."""

EPOCH_DAYS = 10_957
"""From 1970 to 2000, from which PostgreSQL counts."""

EPOCH = EPOCH_DAYS * 86_400 * 10**6
"""The same in microseconds."""


@dataclass(frozen=True)
class ColumnType:
    """A type: what DuckDB calls what comes of it, its decoder, and the SQL that selects a column, `{}` being its name.

    `measured` says that its text is a number of any length.
    """

    kind: str
    decoder: Decoder
    selected: str = "{}"
    measured: bool = False

    def select(self, column: str) -> str:
        """The SQL of a column.

        >>> print(TYPES[1700].select("of it"))
        pg_catalog.trim_scale("of it")::pg_catalog.text
        """
        return self.selected.replace("{}", quoted(column))


class DamagedCopy(FileError):
    """The server's answer is not a copy of the requested columns."""


def integers(width: int) -> Decoder:
    """Whole numbers of this many bytes."""
    kind = {2: np.int16, 4: np.int32, 8: np.int64}[width]

    def decode(data: Bytes, begins: Ints, lengths: Ints) -> Any:
        return _array(_words(data, begins, lengths, width).astype(kind), lengths >= 0)

    return decode


def floating(width: int) -> Decoder:
    """Floating-point numbers of this many bytes, to the last bit."""
    bits, kind = {4: (np.uint32, np.float32), 8: (np.uint64, np.float64)}[width]

    def decode(data: Bytes, begins: Ints, lengths: Ints) -> Any:
        return _array(_words(data, begins, lengths, width).astype(bits).view(kind), lengths >= 0)

    return decode


def truths(data: Bytes, begins: Ints, lengths: Ints) -> Any:
    """Columns of yes and no."""
    import pyarrow

    found = _words(data, begins, lengths, 1)
    return pyarrow.array(found != 0, mask=lengths < 0)


def days(data: Bytes, begins: Ints, lengths: Ints) -> Any:
    """Dates; `infinity` is none."""
    import pyarrow

    found = _words(data, begins, lengths, 4).astype(np.int32)
    ends = np.iinfo(np.int32)
    there = (lengths >= 0) & (found > ends.min) & (found <= ends.max - EPOCH_DAYS)
    shifted = np.where(there, found, np.int32(0)) + np.int32(EPOCH_DAYS)
    return _array(shifted, there, pyarrow.date32())


def times(zone: str | None) -> Decoder:
    """Times in microseconds; `infinity` is none, nor is what lies beyond DuckDB's calendar."""

    def decode(data: Bytes, begins: Ints, lengths: Ints) -> Any:
        import pyarrow

        found, ends = _words(data, begins, lengths, 8), np.iinfo(np.int64)
        there = (lengths >= 0) & (found > ends.min) & (found < ends.max - EPOCH)
        return _array(np.where(there, found, 0) + EPOCH, there, pyarrow.timestamp("us", tz=zone))

    return decode


def texts(data: Bytes, begins: Ints, lengths: Ints) -> Any:
    """Texts; bytes that are no UTF-8, as a database without an encoding may hold, are none."""
    import pyarrow

    from hazemap.readers.value_coercion import sound

    return sound(_run(data, begins, lengths, pyarrow.string()))


def written_numbers(data: Bytes, begins: Ints, lengths: Ints) -> Any:
    """Numbers of any length as text; NaN and the infinities are none."""
    import pyarrow
    from pyarrow import compute

    found = _run(data, begins, lengths, pyarrow.string())
    endless = compute.is_in(found, pyarrow.array(["NaN", "Infinity", "-Infinity"]))
    return compute.if_else(endless, pyarrow.scalar(None, pyarrow.string()), found)


def raw_bytes(data: Bytes, begins: Ints, lengths: Ints) -> Any:
    """Bytes as they are."""
    import pyarrow

    return _run(data, begins, lengths, pyarrow.binary())


_AS_TEXT = "{}::pg_catalog.text"
SINGLE, DOUBLE, DATE, TIME, ZONED, NUMERIC = 700, 701, 1082, 1114, 1184, 1700
TYPES: dict[int, ColumnType] = {
    16: ColumnType("BOOLEAN", truths),
    17: ColumnType("BLOB", raw_bytes),
    19: ColumnType("VARCHAR", texts, _AS_TEXT),  # name
    20: ColumnType("BIGINT", integers(8)),
    21: ColumnType("SMALLINT", integers(2)),
    23: ColumnType("INTEGER", integers(4)),
    25: ColumnType("VARCHAR", texts),
    SINGLE: ColumnType("FLOAT", floating(4)),
    DOUBLE: ColumnType("DOUBLE", floating(8)),
    1042: ColumnType("VARCHAR", texts, _AS_TEXT),  # character, filled up with blanks
    1043: ColumnType("VARCHAR", texts),
    DATE: ColumnType("DATE", days),
    TIME: ColumnType("TIMESTAMP", times(None)),
    ZONED: ColumnType("TIMESTAMP WITH TIME ZONE", times("UTC")),
    NUMERIC: ColumnType("VARCHAR", written_numbers, "pg_catalog.trim_scale({})::pg_catalog.text", measured=True),
    2950: ColumnType("VARCHAR", texts, _AS_TEXT),  # uuid
}
"""Types by the server's numbers (`pg_type.oid`), which are the same in all versions."""

CHOICE = ColumnType("VARCHAR", texts, _AS_TEXT)
"""Readers of types whose values are listed (`CREATE TYPE … AS ENUM`)."""


def _array(values: NDArray[Any], there: Bools, kind: Any = None) -> Any:
    import pyarrow

    kind = kind or pyarrow.from_numpy_dtype(values.dtype)
    whole = bool(there.all())
    bits = None if whole else pyarrow.py_buffer(np.packbits(there, bitorder="little"))
    return pyarrow.Array.from_buffers(kind, len(values), [bits, pyarrow.py_buffer(np.ascontiguousarray(values))])


def _run(data: Bytes, begins: Ints, lengths: Ints, kind: Any) -> Any:
    """Fields of any length, one after the other."""
    import pyarrow

    ends = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(np.maximum(lengths, 0), out=ends[1:])
    if ends[-1] > np.iinfo(np.int32).max:
        raise DamagedCopy("a row of the table is of gigabytes")
    letters = np.empty(ends[-1], dtype=np.uint8)
    once_compiled(_joined)(data, begins, ends, letters)
    there = lengths >= 0
    bits = None if there.all() else pyarrow.py_buffer(np.packbits(there, bitorder="little"))
    buffers = [bits, pyarrow.py_buffer(ends.astype(np.int32)), pyarrow.py_buffer(letters)]
    return pyarrow.Array.from_buffers(kind, len(lengths), buffers)


def _words(data: Bytes, begins: Ints, lengths: Ints, width: int) -> Ints:
    """Fields of `width` bytes, the greatest first, as signed numbers; 0 for NULL."""
    found = np.zeros(len(begins), dtype=np.int64)
    if not once_compiled(_whole)(data, begins, lengths, width, found):
        raise DamagedCopy("the server sent a field of another length than its type has")
    return found


def _whole(data, begins, lengths, width, found) -> bool:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for row in range(len(begins)):
        if lengths[row] >= 0:
            if lengths[row] != width:
                return False
            number = np.int64(np.int8(data[begins[row]]))
            for i in range(1, width):
                number = number << 8 | np.int64(data[begins[row] + i])
            found[row] = number
    return True


def _joined(data, begins, ends, letters) -> None:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    for row in range(len(begins)):
        for i in range(ends[row + 1] - ends[row]):
            letters[ends[row] + i] = data[begins[row] + i]


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


class PostgresqlSession:
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
