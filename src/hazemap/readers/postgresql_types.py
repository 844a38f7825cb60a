"""Types of PostgreSQL's columns: what a statement selects of each, and how its bytes become an Arrow array.

Nothing that is selected can fail for what a row holds: an error would tell of that row. Numbers of any length come as
text, for a cast would refuse those that no double holds; a shape that is no point comes as nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.duckdb_connection import quoted
from hazemap.errors import FileError
from hazemap.machine_code.arrays import Bools, Bytes, Ints
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
