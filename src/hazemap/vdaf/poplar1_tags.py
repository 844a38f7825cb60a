"""The domain separation tags of Poplar1 and of its IDPF (draft-irtf-cfrg-vdaf-20, 6.2.3 and 8.2)."""

from enum import IntEnum

VERSION = 18
ID = 6


class Usage(IntEnum):
    """What an output of XofTurboShake128 is for."""

    SHARD_RAND = 1
    CORR_INNER = 2
    CORR_LEAF = 3
    VERIFY_RAND = 4


def tag(usage: Usage, ctx: bytes) -> bytes:
    """Of Poplar1 itself.

    >>> tag(Usage.VERIFY_RAND, b"app").hex()
    '1200000000060004617070'
    """
    return bytes([VERSION, 0]) + ID.to_bytes(4, "big") + usage.to_bytes(2, "big") + ctx


def idpf_tag(usage: int, ctx: bytes) -> bytes:
    """Of its point functions.

    >>> idpf_tag(1, b"app").hex()
    '1201000000000001617070'
    """
    return bytes([VERSION, 1]) + bytes(4) + usage.to_bytes(2, "big") + ctx


def length_and(part: bytes, size: int) -> bytes:
    """A part of a message after its length, little end first."""
    return len(part).to_bytes(size, "little") + part
