"""Numbers modulo 2^b, as secure sums have them: exact sums go in, packed words travel, signed sums come out.

Packed, number i of a vector is bits i·b … i·b + b − 1, least first, and bit j is bit j mod 8 of byte ⌊j/8⌋; the bits
left over in the last byte are zero. At b = 16 and b = 32 that is the little-endian words themselves and packing is a
copy; else one pass in machine code, some ten times as fast as numpy's `packbits`.
"""

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import CodecError, InputError
from hazemap.vdaf.compiled_loops import compiled

Words = NDArray[np.uint16 | np.uint32]


def word(bits: int) -> type[np.uint16] | type[np.uint32]:
    """What holds a number modulo 2^bits: uint16 up to 16 bits, else uint32; InputError outside 1 … 32.

    >>> word(16), word(17)
    (<class 'numpy.uint16'>, <class 'numpy.uint32'>)
    """
    if not 1 <= bits <= 32:
        raise InputError(f"a sum is modulo 2^1 … 2^32, not 2^{bits}")
    return np.uint16 if bits <= 16 else np.uint32


def reduced(numbers: NDArray[np.int64], bits: int) -> Words:
    """Signed numbers modulo 2^bits: a new vector of words, each in 0 … 2^bits − 1.

    >>> reduced(np.array([-1, 5]), 4).tolist()
    [15, 5]
    """
    kind = word(bits)
    words: Words = numbers.astype(kind)
    np.bitwise_and(words, kind((1 << bits) - 1), out=words)
    return words


def lifted(words: Words, bits: int) -> NDArray[np.int64]:
    """Words back to the signed numbers −2^(bits−1) … 2^(bits−1) − 1; bits above the modulus are ignored.

    >>> lifted(np.array([15, 5, 8, 16], dtype=np.uint16), 4).tolist()
    [-1, 5, -8, 0]
    """
    word(bits)
    half = 1 << (bits - 1)
    numbers = words.astype(np.int64)
    numbers &= (1 << bits) - 1
    numbers ^= half
    numbers -= half
    return numbers


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
