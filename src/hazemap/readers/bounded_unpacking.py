"""Packed bytes from anywhere, unpacked no further than they may be long."""

import bz2
import io
import zlib
from typing import Any

_WINDOW = {"gzip": 31, "deflate": -15}
"""zlib's codes of gzip's format, and of one without a header."""


def unpacked(kind: str, data: bytes, most: int) -> bytes:
    """The bytes in `gzip`, `deflate`, `bzip2` or `zstandard`; `ValueError` for more than `most`, and for damaged ones.

    >>> unpacked("gzip", __import__("gzip").compress(b"some"), 4)
    b'some'
    """
    made: Any
    if kind == "zstandard":
        import zstandard

        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(data)) as stream:
            found, whole = stream.read(most + 1), True
    else:
        made = bz2.BZ2Decompressor() if kind == "bzip2" else zlib.decompressobj(_WINDOW[kind])
        found = made.decompress(data, most + 1)
        whole = made.eof or kind == "deflate"  # writers leave out its end
    if len(found) > most:
        raise ValueError(f"unpacked, it is more than {most} bytes")
    if not whole:
        raise ValueError("packed bytes are cut off")
    return bytes(found)


def snappy_size(data: bytes) -> int:
    """The length of what Snappy has packed, as its head says.

    >>> snappy_size(bytes([0x80, 0x02, 0]))
    256
    """
    size = 0
    for place, byte in enumerate(data[:5]):
        size |= (byte & 127) << 7 * place
        if byte < 128:
            break
    return size
