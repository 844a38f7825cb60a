"""The bytes of a CSV file as UTF-8, in blocks: unpacked, decoded, and with LF as the newline.

Whatever cannot be decoded becomes a byte that UTF-8 does not have, so that the line it is in is dropped, and no other.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Bytes
from hazemap.errors import FileError
from hazemap.jit import once_compiled
from hazemap.readers.held_file import path_of
from hazemap.readers.stored_file import StoredFile

CHUNK = 1 << 22
"""Bytes that are read at once."""

PACKED = {".gz": "gzip", ".zst": "zstd"}

_UTF8, _UTF16_LE, _UTF16_BE = b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff"
_LF, _CR = 10, 13


def utf8_chunks(file: str | StoredFile, encoding: str) -> Iterator[Bytes]:
    """The text of a file in UTF-8 without a byte order mark, chunk by chunk; `FileError` if its start contradicts the
    encoding. Where the first line ends with CR alone, CR ends every line, and a line with LF in it counts as damaged.
    """
    returns = None
    for chunk in _decoded(_raw(file), file, encoding):
        if returns is None:
            returns = _ends_with_return(chunk)
        yield _with_newlines(chunk) if returns else chunk


def _raw(file: str | StoredFile) -> Iterator[Bytes]:
    """Chunks of bytes, all but the last of an even size."""
    import pyarrow

    with ExitStack() as stack:
        source: Any = stack.enter_context(
            open(path_of(file), "rb", buffering=0) if isinstance(file, str) else file.open()  # noqa: PTH123, SIM115
        )
        packed = next((how for end, how in PACKED.items() if str(file).lower().endswith(end)), None)
        if packed is not None:
            source = stack.enter_context(pyarrow.input_stream(source, compression=packed))
        while True:
            chunk = np.empty(CHUNK, dtype=np.uint8)
            filled = 0
            while filled < CHUNK:
                more = source.readinto(chunk[filled:].data)
                if not more:
                    break
                filled += more
            if filled:
                yield chunk[:filled]
            if filled < CHUNK:
                return


def _decoded(chunks: Iterator[Bytes], file: str | StoredFile, encoding: str) -> Iterator[Bytes]:
    start = next(chunks, None)
    if start is None:
        return
    begins = start[:4].tobytes()
    if encoding.startswith("utf-16"):
        yield from _from_utf16(start, chunks, file, encoding)
        return
    if begins.startswith((_UTF16_LE, _UTF16_BE)):
        raise FileError(f"{file} begins as UTF-16 does, and not as {encoding}; say so with --encoding utf-16")
    if begins.startswith(_UTF8):
        if encoding != "utf-8":
            raise FileError(f"{file} begins as UTF-8 does, and not as {encoding}; leave out --encoding")
        start = start[3:]
    if encoding == "utf-8":
        if len(start):
            yield start
        yield from chunks
        return
    letters, lengths = _single_bytes(encoding)

    yield widened(start, letters, lengths)
    for chunk in chunks:
        yield widened(chunk, letters, lengths)


def _from_utf16(start: Bytes, chunks: Iterator[Bytes], file: str | StoredFile, encoding: str) -> Iterator[Bytes]:

    begins = start[:2].tobytes()
    big = {"utf-16-le": False, "utf-16-be": True}.get(encoding, begins == _UTF16_BE)
    marked = begins in {_UTF16_LE, _UTF16_BE}
    if marked and begins != (_UTF16_BE if big else _UTF16_LE):
        raise FileError(f"{file} begins with the byte order mark of the other UTF-16; say --encoding utf-16")
    if not marked and encoding == "utf-16":
        raise FileError(
            f"{file} does not begin with a byte order mark, so it is not what --encoding utf-16 means;"
            " say utf-16-le or utf-16-be, or another encoding"
        )
    held = start[2:] if marked else start
    for chunk in chunks:
        even = len(held) & ~1
        text, used = from_utf16(held[:even], big, False)
        yield text
        held = np.concatenate([held[used:], chunk])
    text, _ = from_utf16(held, big, True)
    yield text


def _single_bytes(encoding: str) -> tuple[Bytes, NDArray[np.int64]]:
    """The UTF-8 of each byte of an encoding of one byte a letter, and its length; 0xFF for none."""
    letters, lengths = np.zeros((256, 3), dtype=np.uint8), np.zeros(256, dtype=np.int64)
    for byte in range(256):
        try:
            text = bytes([byte]).decode(encoding).encode()
        except UnicodeDecodeError:
            text = b"\xff"
        lengths[byte] = len(text)
        letters[byte, : len(text)] = list(text)
    return letters, lengths


def _ends_with_return(chunk: Bytes) -> bool:
    ends = np.flatnonzero((chunk == _LF) | (chunk == _CR))[:2]
    if not len(ends) or chunk[ends[0]] == _LF:
        return False
    return not (len(ends) == 2 and ends[1] == ends[0] + 1 and chunk[ends[1]] == _LF)


def _with_newlines(chunk: Bytes) -> Bytes:
    swapped = np.where(chunk == _LF, np.uint8(0), chunk)
    swapped[chunk == _CR] = _LF
    return swapped


def widened(chunk: Bytes, letters: Bytes, lengths: NDArray[np.int64]) -> Bytes:
    """Bytes of an encoding of one byte a letter in UTF-8, by a table of letters and their lengths. O(bytes)."""
    text = np.empty(3 * len(chunk), dtype=np.uint8)
    return text[: once_compiled(_widen)(chunk, letters, lengths, text)]


def from_utf16(chunk: Bytes, big: bool, last: bool) -> tuple[Bytes, int]:
    """UTF-16 in UTF-8, with 0xFF for half a pair and for a last byte that is alone; and how many bytes were used.

    A first half at the end is left over, unless it is the `last` chunk. O(bytes).
    """
    text = np.empty(2 * len(chunk) + 4, dtype=np.uint8)
    size, used = once_compiled(_utf8_of_utf16)(chunk, big, last, text)
    return text[:size], used


def _widen(chunk, letters, lengths, text) -> int:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    at = 0
    for byte in chunk:
        for i in range(lengths[byte]):
            text[at + i] = letters[byte, i]
        at += lengths[byte]
    return at


def _utf8_of_utf16(chunk, big, last, text) -> Any:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    high, low = (0, 1) if big else (1, 0)
    at = size = 0
    while at + 1 < chunk.size:
        unit = np.int64(chunk[at + high]) << 8 | np.int64(chunk[at + low])
        if 0xD800 <= unit < 0xE000:
            if unit < 0xDC00 and at + 3 >= chunk.size and not last:
                return size, at
            other = np.int64(0)
            if unit < 0xDC00 and at + 3 < chunk.size:
                other = np.int64(chunk[at + 2 + high]) << 8 | np.int64(chunk[at + 2 + low])
            if 0xDC00 <= other < 0xE000:
                letter = 0x10000 + ((unit - 0xD800) << 10) + (other - 0xDC00)
                text[size] = 0xF0 | letter >> 18
                text[size + 1] = 0x80 | letter >> 12 & 0x3F
                text[size + 2] = 0x80 | letter >> 6 & 0x3F
                text[size + 3] = 0x80 | letter & 0x3F
                size += 4
                at += 2
            else:
                text[size] = 0xFF
                size += 1
        elif unit < 0x80:
            text[size] = unit
            size += 1
        elif unit < 0x800:
            text[size] = 0xC0 | unit >> 6
            text[size + 1] = 0x80 | unit & 0x3F
            size += 2
        else:
            text[size] = 0xE0 | unit >> 12
            text[size + 1] = 0x80 | unit >> 6 & 0x3F
            text[size + 2] = 0x80 | unit & 0x3F
            size += 3
        at += 2
    if last and at < chunk.size:
        text[size] = 0xFF
        size += 1
        at += 1
    return size, at
