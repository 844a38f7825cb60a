"""Fixed-key AES-128 over many blocks: its key schedule and its hash, as fast as this processor can.

This module imports numba.

`hash_blocks(keys, blocks, count)` replaces the first `count` rows of an array (uint64, two a row, with rows up to the
next multiple of `GROUP`) by H(x) = AES(k, s) xor s, where s = (hi, hi xor lo) for x = (lo, hi), little end first.
"""

from typing import Any

import numpy as np

from hazemap.machine_code.arrays import Words
from hazemap.machine_code.jit import compiled
from hazemap.vdaf import aes128_bitsliced, aes128_instructions

GROUP = aes128_instructions.GROUP
hash_blocks: Any = (aes128_instructions if aes128_instructions.AVAILABLE else aes128_bitsliced).hash_blocks


def _s_box() -> list[int]:
    """The S-box (FIPS 197, 5.1.1): p runs through the powers of 3 in GF(256), q through those of its inverse."""
    box, p, q = [0x63] * 256, 1, 1
    while True:
        p ^= (p << 1 & 0xFF) ^ (0x1B if p & 0x80 else 0)
        for shift in (1, 2, 4):
            q ^= q << shift & 0xFF
        q ^= 0x09 if q & 0x80 else 0
        ring = q << 8 | q
        box[p] = (q ^ ring >> 7 ^ ring >> 6 ^ ring >> 5 ^ ring >> 4 ^ 0x63) & 0xFF
        if p == 1:
            return box


S_BOX = np.array(_s_box(), dtype=np.uint64)
ROUND_CONSTANTS = np.array([1, 2, 4, 8, 16, 32, 64, 128, 27, 54], dtype=np.uint64)


@compiled
def expand_key(low: np.uint64, high: np.uint64, keys: Words) -> None:  # pragma: no cover - compiled
    """Write the 11 round keys of a key of two words (uint64[11, 2]). The key is public, so a table may be read."""
    byte, half = np.uint64(0xFF), np.uint64(32)
    word = np.uint64(0xFFFFFFFF)
    w = np.empty(44, dtype=np.uint64)
    w[0], w[1], w[2], w[3] = low & word, low >> half, high & word, high >> half
    for i in range(4, 44):
        last = w[i - 1]
        if i % 4 == 0:  # RotWord, SubWord and the round constant
            last = (
                S_BOX[(last >> np.uint64(8)) & byte]
                | S_BOX[(last >> np.uint64(16)) & byte] << np.uint64(8)
                | S_BOX[last >> np.uint64(24)] << np.uint64(16)
                | S_BOX[last & byte] << np.uint64(24)
            ) ^ ROUND_CONSTANTS[i // 4 - 1]
        w[i] = w[i - 4] ^ last
    for row in range(11):
        for column in range(2):
            keys[row, column] = w[4 * row + 2 * column] | w[4 * row + 2 * column + 1] << half
