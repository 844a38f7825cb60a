"""Gzip for replies that begin alike: the beginning is squeezed once, however many devices are sent it.

An invitation is a task, the same for everybody and as long as the list of its cells, and a few bytes of one's own. A
deflate stream that was flushed may be followed by any other (RFC 1951), and the CRC of a whole follows from that of
its first part, so the two are put together at no more than the cost of the second.
"""

import zlib
from dataclasses import dataclass
from struct import pack

_HEADER = bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255))  # RFC 1952: deflate, no name, no time, unknown system


@dataclass(frozen=True)
class SharedPrefix:
    """The first part of many replies.

    >>> import gzip
    >>> gzip.decompress(SharedPrefix.of(b"the same, ").followed(b"my own"))
    b'the same, my own'
    """

    squeezed: bytes
    crc: int
    length: int

    @classmethod
    def of(cls, text: bytes) -> "SharedPrefix":
        """O(text), once."""
        squeeze = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
        return cls(squeeze.compress(text) + squeeze.flush(zlib.Z_FULL_FLUSH), zlib.crc32(text), len(text))

    def followed(self, rest: bytes) -> bytes:
        """A whole gzip file: O(rest) and a copy of the beginning."""
        squeeze = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
        tail = squeeze.compress(rest) + squeeze.flush()
        crc, length = zlib.crc32(rest, self.crc), (self.length + len(rest)) & 0xFFFFFFFF
        return b"".join((_HEADER, self.squeezed, tail, pack("<II", crc, length)))
