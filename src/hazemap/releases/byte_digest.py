"""A digest of all bytes of a file, in its own metadata: of the file with 64 zeros in the digest's place.

Digests of columns say nothing of what other tools read beside the numbers: statistics, by which they skip rows, indexes
of pages, names of types. One of all bytes does.
"""

import mmap
from hashlib import sha256
from pathlib import Path

KEY = b"hazemap.bytes"
"""Under which key of the metadata it stands."""

UNKNOWN = b"0" * 64
"""What stands there while the file is written."""

PARQUET = KEY + b"\x18\x40"
"""What stands before it in Parquet: the key, and that a text of 64 bytes follows (Thrift's compact protocol)."""

TAG = "HAZEMAP_BYTES"
"""Under which tag of a GeoTIFF it stands."""

GEOTIFF = f'<Item name="{TAG}">'.encode()
"""What stands before it there: GDAL writes its tags as XML, uncompressed."""


def fill(path: Path, before: bytes = PARQUET) -> None:
    """Put the digest in a file that was written with `UNKNOWN` in its place."""
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        at = _place(content, before + UNKNOWN)
        content[at : at + len(UNKNOWN)] = _digest(content, at)


def fits(path: Path, said: bytes, before: bytes = PARQUET) -> bool:
    """Whether a file is, byte for byte, the one that had this digest filled in: O(bytes)."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return len(said) == len(UNKNOWN) and _digest(content, _place(content, before + said)) == said


def _place(content: mmap.mmap, found: bytes) -> int:
    at = content.rfind(found)
    if at < 0:
        raise ValueError("the digest of its bytes does not stand where it belongs")
    return at + len(found) - len(UNKNOWN)


def _digest(content: mmap.mmap, at: int) -> bytes:
    """SHA-256 with zeros at this place, as hexadecimal digits."""
    found = sha256()
    with memoryview(content) as whole:
        for part in (whole[:at], memoryview(UNKNOWN), whole[at + len(UNKNOWN) :]):
            found.update(part)
            part.release()
    return found.hexdigest().encode()
