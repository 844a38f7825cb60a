"""How messages are written: the presentation language of TLS (RFC 8446, section 3).

Numbers are big-endian uint8, uint16, uint32; `opaque` is bytes after their length. Each value has one encoding, and
a reader refuses everything else with `CodecError`: bytes that are missing, bytes left over, lengths that do not fit.
"""

import struct
from collections.abc import Mapping
from itertools import pairwise

from hazemap.errors import CodecError, InputError

_NUMBERS = {1: struct.Struct(">B"), 2: struct.Struct(">H"), 4: struct.Struct(">I"), 8: struct.Struct(">Q")}


class TlsWriter:
    """Puts one value after another.

    >>> TlsWriter().number(7, 2).opaque(b"abc", 1).done().hex()
    '000703616263'
    """

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def number(self, value: int, width: int) -> "TlsWriter":
        """A whole number in `width` bytes: 1, 2, 4 or 8."""
        try:
            self._parts.append(_NUMBERS[width].pack(value))
        except struct.error:
            raise InputError(f"{value} is not a number of {width} bytes") from None
        return self

    def fixed(self, data: bytes, length: int) -> "TlsWriter":
        """Bytes whose length is known to both sides."""
        if len(data) != length:
            raise InputError(f"a field of {length} bytes cannot hold {len(data)}")
        self._parts.append(data)
        return self

    def opaque(self, data: bytes, width: int) -> "TlsWriter":
        """Bytes after their length, which is a number of `width` bytes."""
        self.number(len(data), width)
        self._parts.append(data)
        return self

    def numbered(self, items: Mapping[int, bytes], length: int) -> "TlsWriter":
        """Items of `length` bytes each with its number (uint32), ascending, after how many there are (uint32)."""
        self.number(len(items), 4)
        if any(len(item) != length for item in items.values()):
            raise InputError(f"an item of {length} bytes has another length")
        both = struct.Struct(f">I{length}s")
        self._parts.extend(both.pack(number, items[number]) for number in sorted(items))
        return self

    def numbers(self, values: tuple[int, ...]) -> "TlsWriter":
        """Ascending numbers (uint32) after how many there are (uint32)."""
        self.number(len(values), 4)
        _ascending(values, InputError)
        self._parts.append(struct.pack(f">{len(values)}I", *values))
        return self

    def done(self) -> bytes:
        """Everything written."""
        return b"".join(self._parts)


class TlsReader:
    """Takes one value after another, in the order they were written.

    >>> reader = TlsReader(bytes.fromhex("000703616263"))
    >>> reader.number(2), reader.opaque(1), reader.end()
    (7, b'abc', None)
    """

    __slots__ = ("_data", "_place")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def fixed(self, length: int) -> bytes:
        """The next `length` bytes."""
        start, self._place = self._place, self._place + length
        if self._place > len(self._data):
            raise CodecError(f"a message ends {self._place - len(self._data)} bytes early")
        return self._data[start : self._place]

    def number(self, width: int) -> int:
        """A whole number of `width` bytes."""
        return int.from_bytes(self.fixed(width), "big")

    def opaque(self, width: int) -> bytes:
        """Bytes after their length."""
        return self.fixed(self.number(width))

    def numbered(self, length: int) -> dict[int, bytes]:
        """Items of `length` bytes by their numbers, which must ascend: no number comes twice."""
        count = self.number(4)
        items = dict(struct.iter_unpack(f">I{length}s", self.fixed(count * (4 + length))))
        if len(items) != count:
            raise CodecError("a number comes twice in a list of ascending numbers")
        _ascending(tuple(items), CodecError)
        return items

    def numbers(self) -> tuple[int, ...]:
        """Ascending numbers."""
        count = self.number(4)
        values = struct.unpack(f">{count}I", self.fixed(4 * count))
        _ascending(values, CodecError)
        return values

    def end(self) -> None:
        """CodecError unless everything was read."""
        if self._place != len(self._data):
            raise CodecError(f"a message has {len(self._data) - self._place} bytes too many")


def _ascending(values: tuple[int, ...], error: type[CodecError | InputError]) -> None:
    if any(left >= right for left, right in pairwise(values)):
        raise error("numbers that must ascend do not")
