"""The prime fields of Prio3, in plain Python: whole numbers below the modulus.

2^k divides modulus − 1 for a large k, so polynomials are multiplied by number theoretic transforms (NTT). A vector of
elements as an array is uint64[n, words], least significant word first.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from hazemap.vdaf.compiled_loops import Words
from hazemap.vdaf.errors import CodecError


@dataclass(frozen=True)
class NttField:
    """A prime field and its roots of unity.

    >>> FIELD64.root(2) == FIELD64.modulus - 1, FIELD64.decode(FIELD64.encode([1, 2]))
    (True, [1, 2])
    """

    name: str
    modulus: int
    size: int
    """bytes of an encoded element"""
    generator: int
    """of the subgroup of order 2^log_order"""
    log_order: int

    @property
    def words(self) -> int:
        """Words of 64 bits of an element."""
        return self.size // 8

    def root(self, n: int) -> int:
        """The principal n-th root of unity; n is a power of two."""
        return pow(self.generator, (1 << self.log_order) // n, self.modulus)

    def inverse(self, x: int) -> int:
        """1 / x, for x other than 0."""
        return pow(x, -1, self.modulus)

    def encode(self, vector: list[int]) -> bytes:
        """One element after another, little end first."""
        return b"".join(x.to_bytes(self.size, "little") for x in vector)

    def decode(self, data: bytes) -> list[int]:
        """What `encode` wrote; `CodecError` for a part of an element, and for what is not below the modulus."""
        if len(data) % self.size:
            raise CodecError(f"{len(data)} bytes are no whole number of elements of {self.size} bytes")
        vector = [int.from_bytes(data[i : i + self.size], "little") for i in range(0, len(data), self.size)]
        if any(x >= self.modulus for x in vector):
            raise CodecError(f"a number is no element of {self.name}: it is not below the modulus")
        return vector

    def decode_words(self, data: bytes) -> Words:
        """`decode` into an array: long vectors in little time."""
        if len(data) % self.size:
            raise CodecError(f"{len(data)} bytes are no whole number of elements of {self.size} bytes")
        array = np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(-1, self.words)
        below = np.zeros(len(array), dtype=np.bool_)
        for word in range(self.words):  # the most significant word decides last
            limit = np.uint64(self.modulus >> 64 * word & 0xFFFFFFFFFFFFFFFF)
            below = (array[:, word] < limit) | (array[:, word] == limit) & below
        if not below.all():
            raise CodecError(f"a number is no element of {self.name}: it is not below the modulus")
        return array

    def to_words(self, vector: list[int]) -> Words:
        """Elements as an array."""
        return np.frombuffer(self.encode(vector), dtype="<u8").astype(np.uint64).reshape(-1, self.words)

    def from_words(self, array: Words) -> list[int]:
        """An array's elements."""
        data = np.ascontiguousarray(array, dtype="<u8").tobytes()
        return [int.from_bytes(data[i : i + self.size], "little") for i in range(0, len(data), self.size)]

    def ntt(self, coefficients: list[int], n: int) -> list[int]:
        """The values of a polynomial of degree below n at the powers of the n-th root. O(n log n)."""
        return self._transform(coefficients + [0] * (n - len(coefficients)), self.root(n))

    def inverse_ntt(self, values: list[int]) -> list[int]:
        """The coefficients of the polynomial with these values at the powers of the root."""
        n = len(values)
        scale = self.inverse(n)
        return [x * scale % self.modulus for x in self._transform(values, self.inverse(self.root(n)))]

    def _transform(self, values: list[int], root: int) -> list[int]:
        if len(values) == 1:
            return values
        p, square = self.modulus, root * root % self.modulus
        even, odd = self._transform(values[::2], square), self._transform(values[1::2], square)
        twiddle, half = 1, len(even)
        found = [0] * len(values)
        for i in range(half):
            turned = twiddle * odd[i]
            found[i], found[i + half] = (even[i] + turned) % p, (even[i] - turned) % p
            twiddle = twiddle * root % p
        return found

    def lagrange_basis(self, n: int, at: int, points: int | None = None) -> list[int]:
        """Weights that make values at the first `points` (by default all) powers of the n-th root the value at `at`.

        The polynomial's degree is below the number of values; `at` is none of the points.
        """
        p, nodes = self.modulus, roots(self, n)[:points]
        found, before, after = [], 1, 1
        for x, weight in zip(nodes, _weights(self, n, points), strict=True):
            found.append(before * weight % p)
            before = before * (at - x) % p
        for i in range(len(nodes) - 1, -1, -1):
            found[i] = found[i] * after % p
            after = after * (at - nodes[i]) % p
        return found


@lru_cache(maxsize=64, typed=True)
def roots(field: NttField, n: int) -> list[int]:
    """The powers of the n-th root of unity."""
    found, root = [1], field.root(n)
    for _ in range(n - 1):
        found.append(found[-1] * root % field.modulus)
    return found


@lru_cache(maxsize=64, typed=True)
def _weights(field: NttField, n: int, points: int | None) -> list[int]:
    """The barycentric weights: one over the product of the distances to the other points."""
    nodes, p = roots(field, n)[:points], field.modulus
    if points is None or points == n:
        return [x * field.inverse(n) % p for x in nodes]
    found = []
    for x in nodes:
        product = 1
        for other in nodes:
            if other != x:
                product = product * (x - other) % p
        found.append(field.inverse(product))
    return found


def power_of_two_from(n: int) -> int:
    """The least power of two that is not below n, for n from 1."""
    return 1 << (n - 1).bit_length()


FIELD64: Final = NttField("Field64", 2**64 - 2**32 + 1, 8, pow(7, 2**32 - 1, 2**64 - 2**32 + 1), 32)
_P128 = 2**66 * 4611686018427387897 + 1
FIELD128: Final = NttField("Field128", _P128, 16, pow(7, 4611686018427387897, _P128), 66)
