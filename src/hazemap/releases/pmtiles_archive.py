"""PMTiles 3: many tiles in one file, with a directory of where each begins, in the order of a Hilbert curve."""

import gzip
import json
import math
import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

LEAF = 4096
"""Tiles of a leaf directory, where the root directory would be longer than readers fetch first."""

ROOT = 16_384 - 127
"""Bytes that a root directory may have: readers fetch it with the header."""

GZIP, VECTOR, LEVEL = 2, 1, 5


class MapTile(NamedTuple):
    """A tile of a web map, and its content, not compressed."""

    zoom: int
    column: int
    row: int
    content: bytes


class Entry(NamedTuple):
    """Where a tile, or a directory of tiles from a number on, stands."""

    number: int
    offset: int
    length: int
    run: int


def number_of(zoom: int, column: int, row: int) -> int:
    """The place of a tile on the Hilbert curve of its zoom, after the tiles of all zooms before.

    >>> [number_of(*tile) for tile in ((0, 0, 0), (1, 0, 0), (1, 0, 1), (1, 1, 1), (1, 1, 0), (2, 0, 0))]
    [0, 1, 2, 3, 4, 5]
    """
    number: int = ((1 << 2 * zoom) - 1) // 3
    side = 1 << zoom >> 1
    while side:
        right, below = bool(column & side), bool(row & side)
        number += side * side * ((3 * right) ^ below)
        if not below:
            if right:
                column, row = side - 1 - (column & side - 1), side - 1 - (row & side - 1)
            column, row = row, column
        side >>= 1
    return number


def archive(tiles: Sequence[MapTile], metadata: dict[str, Any], bounds: tuple[float, ...]) -> bytes:
    """A whole file; `bounds` are west, south, east and north in degrees. The same tiles give the same bytes.

    Zooms are those of the tiles, and the middle is shown first, at the coarsest of them.
    """
    entries, content, at = list[Entry](), list[bytes](), 0
    for number, tile in sorted((number_of(*tile[:3]), tile.content) for tile in tiles):
        content.append(squeezed(tile))
        entries.append(Entry(number, at, len(content[-1]), 1))
        at += len(content[-1])
    root, leaves = _directories(entries)
    said = squeezed(json.dumps(metadata, sort_keys=True, ensure_ascii=False).encode())
    starts = [127, 127 + len(root), 127 + len(root) + len(said), 127 + len(root) + len(said) + len(leaves)]
    head = b"PMTiles\3"
    for start, length in zip(starts, (len(root), len(said), len(leaves), at), strict=True):
        head += start.to_bytes(8, "little") + length.to_bytes(8, "little")
    coarsest, deepest = min(tile.zoom for tile in tiles), max(tile.zoom for tile in tiles)
    head += 3 * len(entries).to_bytes(8, "little") + bytes((1, GZIP, GZIP, VECTOR, coarsest, deepest))
    west, south = (math.floor(each * 1e7) for each in bounds[:2])
    east, north = (max(math.ceil(far * 1e7), near + 1) for far, near in zip(bounds[2:], (west, south), strict=True))
    head += b"".join(each.to_bytes(4, "little", signed=True) for each in (west, south, east, north))
    head += bytes((coarsest,))
    head += b"".join(((a + b) // 2).to_bytes(4, "little", signed=True) for a, b in ((west, east), (south, north)))
    return b"".join([head, root, said, leaves, *content])


def squeezed(content: bytes) -> bytes:
    """Bytes in the manner of gzip, without a time."""
    made = zlib.compressobj(LEVEL, zlib.DEFLATED, 31)
    return made.compress(content) + made.flush()


def _directories(entries: list[Entry]) -> tuple[bytes, bytes]:
    """The root directory, and all leaf directories one after another."""
    root = _directory(entries)
    if len(root) <= ROOT:
        return root, b""
    size = LEAF
    while True:
        leaves, tops = b"", list[Entry]()
        for start in range(0, len(entries), size):
            leaf = _directory(entries[start : start + size])
            tops.append(Entry(entries[start].number, len(leaves), len(leaf), 0))
            leaves += leaf
        root = _directory(tops)
        if len(root) <= ROOT:
            return root, leaves
        size *= 2


def _directory(entries: list[Entry]) -> bytes:
    """Column after column: numbers as differences, runs, lengths, offsets (0 for right after the one before)."""
    numbers = [entry.number for entry in entries]
    steps = [after - before for before, after in zip([0, *numbers], numbers, strict=False)]
    offsets = [
        0 if at and entries[at - 1].offset + entries[at - 1].length == entry.offset else entry.offset + 1
        for at, entry in enumerate(entries)
    ]
    columns = (steps, [entry.run for entry in entries], [entry.length for entry in entries], offsets)
    return squeezed(b"".join(varint(each) for each in (len(entries), *(each for part in columns for each in part))))


def varint(number: int) -> bytes:
    """Seven bits a byte, the least first."""
    parts = []
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    return bytes((*parts, number))


def unsqueezed(content: bytes) -> bytes:
    """What `squeezed` wrote."""
    return gzip.decompress(content)
