"""Numbers modulo 2^b, as secure sums have them: exact sums go in, unsigned words travel, signed sums come out."""

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError

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
