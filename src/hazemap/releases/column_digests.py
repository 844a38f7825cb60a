"""Digests of what a file holds: of parts one after another, and of the columns of a table.

Columns are digested block of rows by block, so that a part of a file can be checked alone.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa


class Long(NamedTuple):
    """A byte string in pieces, which is never whole in memory."""

    length: int
    pieces: Iterator[memoryview]


class Digest:
    """SHA-256 over a sequence of byte strings, each with its length, so that none can lend bytes to the next."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()

    def add(self, *parts: bytes | memoryview | Long) -> None:
        """Go on with these parts."""
        for part in parts:
            if isinstance(part, Long):
                self._sum.update(part.length.to_bytes(8, "little"))
                for piece in part.pieces:
                    self._sum.update(piece)
                continue
            self._sum.update(memoryview(part).nbytes.to_bytes(8, "little"))
            self._sum.update(part)

    def text(self) -> str:
        """The digest of all parts so far, in hexadecimal digits."""
        return self._sum.hexdigest()

    def seal(self, label: dict[str, Any]) -> str:
        """The label as text, with the digest of all parts and of itself."""
        self.add(_canonical(label).encode())
        return _canonical({**label, "digest": self._sum.hexdigest()})

    def check(self, label: dict[str, Any]) -> None:
        """Raise `ValueError` unless the label was sealed with these parts."""
        said = label.pop("digest")
        self.add(_canonical(label).encode())
        if said != self._sum.hexdigest():
            raise ValueError("its content does not match its digest")


def _canonical(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


MOST_LETTERS, MOST_IN_MEMORY = 1 << 34, 1 << 30
"""Bytes of texts of dictionaries in a file, as often as rows name them: how many are digested, and how many may be in
memory at once. Outlines of districts in many slots are long, names are not."""

AT_ONCE = 1 << 24
"""Bytes of texts of a dictionary that are written out together."""


def column_digests(table: "pa.Table") -> dict[str, str]:
    """SHA-256 of each column, the parts of `bbox` apart, by its name."""
    return {name: _column_digest(name, column) for name, column in _flat(table)}


def parts(table: "pa.Table") -> Iterator[bytes]:
    """Every name, type and value of a table as bytes, however its file was laid out."""
    for name, column in _flat(table):
        yield from _parts(name, column)


def _flat(table: "pa.Table") -> Iterator[tuple[str, "pa.ChunkedArray"]]:
    flat = table.flatten()
    return zip(flat.column_names, flat.columns, strict=True)


def _column_digest(name: str, column: "pa.ChunkedArray") -> str:
    digest = Digest()
    digest.add(*_parts(name, column))
    return digest.text()


def _parts(name: str, column: "pa.ChunkedArray") -> Iterator[Any]:
    import pyarrow as pa

    named = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if named else column.type
    yield f"{name} {kind} {column.null_count} {len(column)}".encode()
    if named:
        lengths = _lengths(column)
        yield lengths.astype("<i8", copy=False).data
        yield Long(int(lengths.sum()), (each.data for each in _letters(column, lengths)))
    elif pa.types.is_string(column.type) or pa.types.is_binary(column.type):
        lengths, letters = texts_of(column)
        yield lengths.astype("<i8", copy=False).data
        yield letters.data
    else:
        values = numbers_of(column)
        yield np.ascontiguousarray(values, values.dtype.newbyteorder("<")).data


def texts_of(column: "pa.ChunkedArray") -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The length in bytes of each text of a column, and all of their bytes; a missing text is an error."""
    if column.null_count:
        raise ValueError("a text is missing")
    lengths, letters = [np.empty(0, np.int64)], [np.empty(0, np.uint8)]
    for chunk in (each for each in column.chunks if len(each)):
        _, ends, content = chunk.buffers()
        at = np.frombuffer(ends, np.int32)[chunk.offset : chunk.offset + len(chunk) + 1].astype(np.int64)
        lengths.append(np.diff(at))
        letters.append(np.frombuffer(content or b"", np.uint8)[at[0] : at[-1]])
    if len(lengths) == 2:
        return lengths[1], letters[1]
    return np.concatenate(lengths), np.concatenate(letters)


def _lengths(column: "pa.ChunkedArray") -> NDArray[np.int64]:
    """The length in bytes of each text of a column of which every text stands in a dictionary."""
    import pyarrow as pa

    if column.null_count:
        raise ValueError("a text is missing")
    chunks = [each for each in column.chunks if len(each)]
    found = [texts_of(pa.chunked_array([each.dictionary]))[0][each.indices.to_numpy()] for each in chunks]
    lengths = np.concatenate([np.empty(0, np.int64), *found])
    if lengths.sum() > MOST_LETTERS:
        raise ValueError("its texts would be many times as long as it is")
    return lengths


def letters_of(table: "pa.Table") -> int:
    """Bytes of all texts that stand in dictionaries, as often as rows name them."""
    import pyarrow as pa

    return sum(int(_lengths(column).sum()) for _, column in _flat(table) if pa.types.is_dictionary(column.type))


def _letters(column: "pa.ChunkedArray", lengths: NDArray[np.int64]) -> Iterator[NDArray[np.uint8]]:
    """The bytes of all texts of such a column, some at a time: a long one that comes often is not there often."""
    step = max(AT_ONCE // max(int(lengths.max(initial=0)), 1), 1)
    for start in range(0, len(column), step):
        yield texts_of(column.slice(start, step).cast(column.type.value_type))[1]


def plain(column: "pa.ChunkedArray") -> "pa.ChunkedArray":
    """A column without its dictionary; `ValueError` where it would be many times as long."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    if _lengths(column).sum() > MOST_IN_MEMORY:
        raise ValueError("its texts would be many times as long as it is")
    return column.cast(column.type.value_type)


def numbers_of(column: "pa.ChunkedArray") -> NDArray[Any]:
    """The numbers of a column; where none is missing from their memory, which does not load pandas."""
    import pyarrow as pa

    number = pa.types.is_integer(column.type) or pa.types.is_floating(column.type)
    if column.null_count or not number:
        values: NDArray[Any] = column.to_numpy()
        return values
    kind = column.type.to_pandas_dtype()
    parts_of = [np.frombuffer(c.buffers()[1], kind)[c.offset : c.offset + len(c)] for c in column.chunks if len(c)]
    return parts_of[0] if len(parts_of) == 1 else np.concatenate([np.empty(0, kind), *parts_of])
