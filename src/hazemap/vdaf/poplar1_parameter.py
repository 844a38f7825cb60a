"""What servers are asked to count in a Poplar1 (draft-irtf-cfrg-vdaf-20, 8.2): nodes of one level of the tree."""

import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from hazemap.errors import CodecError, InputError
from hazemap.machine_code.arrays import Words

MOST_LEVELS = 64
_HEAD = struct.Struct(">HI")


@dataclass(frozen=True, eq=False)
class Poplar1Parameter:
    """Level (0 is that below the root) and prefixes: the paths of its nodes as numbers, first step in the highest bit.

    >>> Poplar1Parameter(1, np.array([1, 2, 3], dtype=np.uint64)).to_bytes().hex()
    '0001000000034080c0'
    """

    level: int
    prefixes: Words

    def __post_init__(self) -> None:
        """Refuse levels that no tree has, and paths that are no nodes of the level."""
        if not 0 <= self.level < MOST_LEVELS:
            raise InputError(f"level {self.level}: there are 0 to {MOST_LEVELS - 1}")
        if self.prefixes.dtype != np.uint64 or self.prefixes.ndim != 1 or not 0 < self.prefixes.size < 1 << 32:
            raise InputError("prefixes are one or more whole numbers of 64 bits")
        if self.level < MOST_LEVELS - 1 and np.any(self.prefixes >> np.uint64(self.level + 1)):
            raise InputError(f"a prefix of level {self.level} has {self.level + 1} bits")

    @cached_property
    def increasing(self) -> bool:
        """Whether prefixes are sorted and none is there twice."""
        return bool(np.all(self.prefixes[1:] > self.prefixes[:-1]))

    def follows(self, previous: Self) -> bool:
        """Whether the level is deeper, and every prefix descends from one of those before. Both are increasing."""
        if self.level <= previous.level:
            return False
        above = self.prefixes >> np.uint64(self.level - previous.level)
        places = np.minimum(np.searchsorted(previous.prefixes, above), previous.prefixes.size - 1)
        return bool(np.array_equal(previous.prefixes[places], above))

    def to_bytes(self) -> bytes:
        """uint16 level, uint32 number of prefixes, and each in whole bytes, from the highest bit on."""
        size = self.level // 8 + 1
        aligned = self.prefixes << np.uint64(MOST_LEVELS - 1 - self.level)
        rows = aligned.astype(">u8").view(np.uint8).reshape(-1, 8)
        return _HEAD.pack(self.level, self.prefixes.size) + rows[:, :size].tobytes()

    @classmethod
    def from_bytes(cls, data: bytes, most: int) -> Self:
        """What `to_bytes` wrote, with at most so many prefixes; CodecError for anything else."""
        if len(data) < _HEAD.size:
            raise CodecError("an aggregation parameter of Poplar1 has a level and a number of prefixes")
        level, count = _HEAD.unpack_from(data)
        if level >= MOST_LEVELS or not 0 < count <= most:
            raise CodecError(f"{count} prefixes of level {level}: 1 to {most} below level {MOST_LEVELS} can be asked")
        size = level // 8 + 1
        if len(data) != _HEAD.size + size * count:
            raise CodecError(f"{count} prefixes of level {level} take {size * count} bytes")
        rows = np.zeros((count, 8), dtype=np.uint8)
        rows[:, :size] = np.frombuffer(data, dtype=np.uint8, offset=_HEAD.size).reshape(count, size)
        aligned = rows.view(">u8")[:, 0].astype(np.uint64)
        prefixes = aligned >> np.uint64(MOST_LEVELS - 1 - level)
        if not np.array_equal(prefixes << np.uint64(MOST_LEVELS - 1 - level), aligned):
            raise CodecError(f"a prefix of level {level} is longer than {level + 1} bits")
        return cls(level, prefixes)
