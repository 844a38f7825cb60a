"""PostgreSQL's binary COPY as Arrow record batches (PostgreSQL's manual, COPY, "Binary Format").

A header; rows, each the number of its fields and, of each field, its length (-1 for NULL) and its bytes, the greatest
first; the number -1 in place of a row at the end. Whatever ends otherwise is damaged: a stream that breaks off is no
short table.
"""

from collections.abc import Generator, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from hazemap.arrays import Bytes, Ints
from hazemap.jit import once_compiled
from hazemap.readers.postgresql_types import DamagedCopy, Decoder

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
