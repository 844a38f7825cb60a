"""Some of a session's clients, one bit each."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import CodecError, InputError
from hazemap.vdaf.tls_encoding import TlsReader, TlsWriter


@dataclass(frozen=True)
class Bitmap:
    """Some of `size` clients: client i is bit 7 − i mod 8 of byte ⌊i/8⌋, and the bits left over are zero.

    >>> some = Bitmap.of(10, [0, 9])
    >>> some.bits.hex(), len(some), 9 in some, 8 in some, some.positions().tolist()
    ('8040', 2, True, False, [0, 9])
    """

    size: int
    bits: bytes

    def __post_init__(self) -> None:
        if self.size < 0 or len(self.bits) != (self.size + 7) // 8:
            raise InputError(f"{self.size} clients are {(self.size + 7) // 8} bytes of bits, not {len(self.bits)}")
        spare = -self.size % 8
        if spare and self.bits[-1] & ((1 << spare) - 1):
            raise InputError(f"after {self.size} clients a bit is set for one that there is not")

    @classmethod
    def of(cls, size: int, positions: Iterable[int] | NDArray[np.int64]) -> "Bitmap":
        """The bitmap of these positions."""
        marks = np.zeros(size, dtype=bool)
        marks[np.fromiter(positions, dtype=np.int64)] = True
        return cls(size, np.packbits(marks).tobytes())

    def marks(self) -> NDArray[np.bool_]:
        """Whether each client is in it, bool[size]."""
        return np.unpackbits(np.frombuffer(self.bits, dtype=np.uint8), count=self.size).astype(bool)

    def positions(self) -> NDArray[np.int64]:
        """Who is in it, ascending."""
        return np.flatnonzero(self.marks())

    def __len__(self) -> int:
        return int.from_bytes(self.bits, "big").bit_count()

    def __contains__(self, position: object) -> bool:
        return (
            isinstance(position, int)
            and 0 <= position < self.size
            and bool(self.bits[position >> 3] >> (7 - (position & 7)) & 1)
        )

    def write(self, writer: TlsWriter) -> None:
        """uint32 size, then the bits."""
        writer.number(self.size, 4).fixed(self.bits, len(self.bits))

    @classmethod
    def read(cls, reader: TlsReader) -> "Bitmap":
        """What `write` wrote."""
        size = reader.number(4)
        try:
            return cls(size, reader.fixed((size + 7) // 8))
        except InputError as error:
            raise CodecError(f"this bitmap is not written as it should be: {error}") from error
