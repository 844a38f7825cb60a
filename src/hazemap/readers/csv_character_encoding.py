"""Letters of other encodings as UTF-8, in machine code.

This module imports numba; whoever uses it imports it inside a function.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Bytes
from hazemap.jit import compiled


def widened(chunk: Bytes, letters: Bytes, lengths: NDArray[np.int64]) -> Bytes:
    """Bytes of an encoding of one byte a letter in UTF-8, by a table of letters and their lengths. O(bytes)."""
    text = np.empty(3 * len(chunk), dtype=np.uint8)
    return text[: _widen(chunk, letters, lengths, text)]


def from_utf16(chunk: Bytes, big: bool, last: bool) -> tuple[Bytes, int]:
    """UTF-16 in UTF-8, with 0xFF for half a pair and for a last byte that is alone; and how many bytes were used.

    A first half at the end is left over, unless it is the `last` chunk. O(bytes).
    """
    text = np.empty(2 * len(chunk) + 4, dtype=np.uint8)
    size, used = _from_utf16(chunk, big, last, text)
    return text[:size], used


@compiled
def _widen(chunk, letters, lengths, text) -> int:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    at = 0
    for byte in chunk:
        for i in range(lengths[byte]):
            text[at + i] = letters[byte, i]
        at += lengths[byte]
    return at


@compiled
def _from_utf16(chunk, big, last, text) -> Any:  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
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
