"""Vectors of b-bit numbers as bytes, without a bit to spare: number i is bits i·b … i·b + b − 1, least first.

Bit j of a vector is bit j mod 8 of byte ⌊j/8⌋; the bits left over in the last byte are zero. At b = 16 and b = 32
that is the little-endian words themselves and packing is a copy; else one pass in machine code.
"""

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import CodecError, InputError
from hazemap.jit import compiled
from hazemap.protocols.secure_aggregation.modular_arithmetic import Words, word


def packed_length(size: int, bits: int) -> int:
    """How many bytes `size` numbers of `bits` bits are: ⌈size · bits / 8⌉."""
    return (size * bits + 7) // 8


def pack(vector: Words, bits: int) -> bytes:
    """The lowest `bits` bits of every word: what a vector modulo 2^bits is.

    >>> pack(np.array([1, 2, 7], dtype=np.uint16), 3).hex()
    'd101'
    """
    kind = word(bits)
    if vector.dtype != kind or vector.ndim != 1:
        raise InputError(f"{bits} bits are packed from one row of {kind.__name__}, not {vector.dtype}")
    if bits in (16, 32):
        return vector.astype(vector.dtype.newbyteorder("<"), copy=False).tobytes()
    words = np.zeros(-(-len(vector) * bits // 32), dtype=np.uint32)
    _pack(np.ascontiguousarray(vector), np.uint64(bits), words)
    return words.astype("<u4", copy=False).tobytes()[: packed_length(len(vector), bits)]


def unpack(data: bytes, size: int, bits: int) -> Words:
    """The `size` words that `pack` wrote; CodecError for another length or a padding bit that is set.

    >>> unpack(bytes.fromhex("d101"), 3, 3).tolist()
    [1, 2, 7]
    """
    kind = word(bits)
    if len(data) != packed_length(size, bits):
        raise CodecError(f"{size} numbers of {bits} bits are {packed_length(size, bits)} bytes, not {len(data)}")
    spare = -size * bits % 8
    if spare and data[-1] >> (8 - spare):
        raise CodecError(f"{size} numbers of {bits} bits end in {spare} zero bits: one is set")
    vector: Words = np.empty(size, dtype=kind)
    if bits in (16, 32):
        vector[:] = np.frombuffer(data, dtype=vector.dtype.newbyteorder("<"))
        return vector
    words = np.zeros(len(data) // 4 + 2, dtype="<u4")  # a word of zeros at the end: every number is read from two
    words.view(np.uint8)[: len(data)] = np.frombuffer(data, dtype=np.uint8)
    _unpack(words.astype(np.uint32, copy=False), np.uint64(bits), vector)
    return vector


@compiled
def _pack(vector: Words, bits: np.uint64, words: NDArray[np.uint32]) -> None:
    one, low = np.uint64(1), np.uint64(32)
    mask = (one << bits) - one
    pending, held, place = np.uint64(0), np.uint64(0), 0
    for number in vector:
        pending |= (np.uint64(number) & mask) << held
        held += bits
        if held >= low:
            words[place] = np.uint32(pending & np.uint64(0xFFFFFFFF))
            pending >>= low
            held -= low
            place += 1
    if held:
        words[place] = np.uint32(pending)


@compiled
def _unpack(words: NDArray[np.uint32], bits: np.uint64, vector: Words) -> None:
    mask = (np.uint64(1) << bits) - np.uint64(1)
    for i in range(len(vector)):
        bit = np.uint64(i) * bits
        place = bit >> np.uint64(5)
        both = np.uint64(words[place]) | (np.uint64(words[place + np.uint64(1)]) << np.uint64(32))
        vector[i] = (both >> (bit & np.uint64(31))) & mask
