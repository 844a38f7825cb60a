"""The integers modulo 2^255 - 19, in which the leaves of an IDPF have their values.

A vector is an array uint64[n, 4]: words of 64 bits, lowest first, each element below the modulus. That is also its
encoding, 32 bytes an element, little end first.
"""

import numpy as np

from hazemap.vdaf.compiled_loops import Bools, Words

MODULUS = 2**255 - 19
SIZE = 32
"""Bytes of an encoded element."""

_TOP = np.uint64(2**63 - 1)
_ALL = np.uint64(2**64 - 1)
_LOW = np.uint64(2**64 - 19)


def from_ints(numbers: list[int]) -> Words:
    """A vector of whole numbers below the modulus.

    >>> from_ints([2**64 + 5]).tolist()
    [[5, 1, 0, 0]]
    """
    return np.frombuffer(b"".join(x.to_bytes(SIZE, "little") for x in numbers), dtype="<u8").reshape(-1, 4).copy()


def to_ints(vector: Words) -> list[int]:
    """The elements as whole numbers.

    >>> to_ints(from_ints([MODULUS - 1])) == [MODULUS - 1]
    True
    """
    data = np.ascontiguousarray(vector, dtype="<u8").tobytes()
    return [int.from_bytes(data[start : start + SIZE], "little") for start in range(0, len(data), SIZE)]


def below_modulus(words: Words) -> Bools:
    """Which rows of four words are elements."""
    most = (words[..., 3] == _TOP) & (words[..., 2] == _ALL) & (words[..., 1] == _ALL)
    within: Bools = (words[..., 3] <= _TOP) & ~(most & (words[..., 0] >= _LOW))
    return within


def add(a: Words, b: Words) -> Words:
    """The sum of two vectors.

    >>> to_ints(add(from_ints([MODULUS - 1, 7]), from_ints([3, 4])))
    [2, 11]
    """
    total = np.empty(np.broadcast_shapes(a.shape, b.shape), dtype=np.uint64)
    carry = np.zeros(total.shape[:-1], dtype=np.uint64)
    for word in range(4):  # below 2^256: no carry leaves the last word
        part = a[..., word] + b[..., word]
        total[..., word] = part + carry
        carry = (part < a[..., word]).astype(np.uint64) + (total[..., word] < part)
    return _reduced(total)


def negative(a: Words) -> Words:
    """Zero minus a vector.

    >>> to_ints(negative(from_ints([0, 1]))) == [0, MODULUS - 1]
    True
    """
    total = np.empty_like(a)
    borrow = np.zeros(a.shape[:-1], dtype=np.uint64)
    for word, most in enumerate((_LOW, _ALL, _ALL, _TOP)):
        part = most - a[..., word]
        total[..., word] = part - borrow
        borrow = (a[..., word] > most).astype(np.uint64) + (part < borrow)
    return _reduced(total)


def _reduced(total: Words) -> Words:
    """Below the modulus, of sums below twice of it: add 19, and drop bit 255 where that sets it."""
    shifted = np.empty_like(total)
    carry = np.full(total.shape[:-1], 19, dtype=np.uint64)
    for word in range(4):
        shifted[..., word] = total[..., word] + carry
        carry = (shifted[..., word] < total[..., word]).astype(np.uint64)
    over = shifted[..., 3] > _TOP
    shifted[..., 3] &= _TOP
    return np.where(over[..., None], shifted, total)
