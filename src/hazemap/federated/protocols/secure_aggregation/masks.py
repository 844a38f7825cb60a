"""Masks: pseudorandom vectors that hide a contribution and cancel in the sum.

A mask is the AES-128 counter-mode keystream of a key (NIST SP 800-38A, counter from zero), read as little-endian
words of the vector's own width; adding wraps, so a vector and its masks live modulo 2¹⁶ or 2³². A key is used for
one vector only: two vectors under one mask reveal their difference. Without the key, n blocks of a mask differ from
uniform words by an advantage of at most n²/2¹²⁹ over that against AES-128 as a permutation (Bellare et al. 1997):
2⁻¹⁰¹ for 65,536 words of 32 bits.
"""

import threading

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hazemap.errors import InputError
from hazemap.federated.protocols.secure_aggregation.modular_packing import Words

KEY = 16

_PIECE = 1 << 17  # bytes of keystream at a time: few calls, and it and the zeros stay in the second cache
_ZEROS = memoryview(bytes(_PIECE))
_START = modes.CTR(bytes(16))


class _Keystream(threading.local):
    """Where each thread has its masks written, before they are added: one place, aligned to a cache line."""

    def __init__(self) -> None:
        room = np.empty(_PIECE + 64, dtype=np.uint8)
        start = -room.ctypes.data % 64
        piece = room[start : start + _PIECE]
        self.bytes = piece.data
        self.words: dict[int, Words] = {2: piece.view("<u2"), 4: piece.view("<u4")}


_KEYSTREAM = _Keystream()


def add_mask(vector: Words, key: bytes) -> None:
    """Add the mask of a key to a vector in place, wrapping: 65,536 × 32 bits in about 35 µs.

    `vector` is one contiguous row of uint16 or uint32.

    >>> vector = np.array([1, 2, 3], dtype=np.uint32)
    >>> add_mask(vector, bytes(16))
    >>> subtract_mask(vector, bytes(16))
    >>> vector.tolist()
    [1, 2, 3]
    """
    _apply(np.add, vector, key)


def subtract_mask(vector: Words, key: bytes) -> None:
    """Take the mask of a key off again, in place, wrapping; the other of two clients subtracts what one adds."""
    _apply(np.subtract, vector, key)


def _apply(operation: np.ufunc, vector: Words, key: bytes) -> None:
    if len(key) != KEY:
        raise InputError(f"a mask has a key of {KEY} bytes, not {len(key)}")
    flags = vector.flags
    if vector.dtype not in (np.uint16, np.uint32) or vector.ndim != 1 or not (flags.c_contiguous and flags.writeable):
        raise InputError(
            "a mask is for one contiguous row of uint16 or uint32 that can be written to, "
            f"not {vector.dtype} of shape {vector.shape}"
        )
    cipher = Cipher(algorithms.AES128(key), _START).encryptor()
    written, words = _KEYSTREAM.bytes, _KEYSTREAM.words[vector.itemsize]
    for start in range(0, len(vector), len(words)):
        piece = vector[start : start + len(words)]
        cipher.update_into(_ZEROS[: piece.nbytes], written[: piece.nbytes])
        operation(piece, words[: len(piece)], out=piece)
