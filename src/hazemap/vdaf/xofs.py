"""The extendable output functions in plain Python, for messages of a few blocks, where no compiler is worth loading.

TurboSHAKE128 (RFC 9861, 2); XofTurboShake128 (draft-irtf-cfrg-vdaf-20, 6.2.1): a seed as a stream of bytes or of
elements; XofFixedKeyAes128 (6.2.2): the output function inside the IDPF. The last two have twins in machine code, for
many seeds at once: `turboshake128_kernels` and `aes128_kernels`.
"""

from functools import lru_cache

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hazemap.vdaf.errors import InputError
from hazemap.vdaf.ntt_field import NttField
from hazemap.vdaf.vdaf import VdafVersion

RATE = 168
"""Bytes of a block."""

ROUND_CONSTANTS = (
    0x000000008000808B,
    0x800000000000008B,
    0x8000000000008089,
    0x8000000000008003,
    0x8000000000008002,
    0x8000000000000080,
    0x000000000000800A,
    0x800000008000000A,
    0x8000000080008081,
    0x8000000000008080,
    0x0000000080000001,
    0x8000000080008008,
)
"""Of Keccak-p[1600, 12]: those of the last 12 rounds of Keccak-f (FIPS 202, 3.2.5)."""


def _steps() -> tuple[tuple[int, int, int], ...]:
    """Where rho and pi take each lane but the first: (from, to, by how many bits it is rotated)."""
    steps, x, y = [], 1, 0
    for t in range(24):
        steps.append((x + 5 * y, y + 5 * ((2 * x + 3 * y) % 5), (t + 1) * (t + 2) // 2 % 64))
        x, y = y, (2 * x + 3 * y) % 5
    return tuple(steps)


STEPS = _steps()
_ALL = (1 << 64) - 1


class TurboShake128:
    """An output stream of TurboSHAKE128, drawn bit by bit.

    >>> TurboShake128(b"", 0x1F).next(8).hex()
    '1e415f1c5983aff2'
    """

    def __init__(self, message: bytes, domain: int) -> None:
        """Absorb a message; the domain is from 1 to 127."""
        padded = bytearray(message + bytes([domain]) + bytes(-(len(message) + 1) % RATE))
        padded[-1] ^= 0x80
        self._lanes = [0] * 25
        for start in range(0, len(padded), RATE):
            for lane in range(RATE // 8):
                self._lanes[lane] ^= int.from_bytes(padded[start + 8 * lane : start + 8 * lane + 8], "little")
            self._lanes = permuted(self._lanes)
        self._block, self._used = self._squeezed(), 0

    def next(self, length: int) -> bytes:
        """The next bytes of the output."""
        while len(self._block) - self._used < length:
            self._lanes = permuted(self._lanes)
            self._block, self._used = self._block[self._used :] + self._squeezed(), 0
        self._used += length
        return self._block[self._used - length : self._used]

    def _squeezed(self) -> bytes:
        return b"".join(lane.to_bytes(8, "little") for lane in self._lanes[: RATE // 8])


def permuted(a: list[int]) -> list[int]:
    """Keccak-p[1600, 12] of 25 lanes: lane x + 5 y is `a[x + 5 * y]`."""
    for constant in ROUND_CONSTANTS:
        c = [a[x] ^ a[x + 5] ^ a[x + 10] ^ a[x + 15] ^ a[x + 20] for x in range(5)]
        d = [c[x - 1] ^ (c[(x + 1) % 5] << 1 & _ALL | c[(x + 1) % 5] >> 63) for x in range(5)]
        b = [a[0] ^ d[0]] * 25
        for here, there, by in STEPS:
            lane = a[here] ^ d[here % 5]
            b[there] = lane << by & _ALL | lane >> 64 - by
        a = [b[i] ^ (~b[i - i % 5 + (i + 1) % 5] & b[i - i % 5 + (i + 2) % 5]) for i in range(25)]
        a[0] ^= constant
    return a


DOMAIN = 1


def message(version: VdafVersion, seed: bytes, tag: bytes, binder: bytes) -> bytes:
    """What the hash function takes in, with domain 1."""
    if len(tag) >> 8 * version.tag_length_size or len(seed) > 255:
        raise InputError("a seed or a tag of the XOF is too long")
    length = bytes([len(seed)]) if version.writes_seed_length else b""
    return len(tag).to_bytes(version.tag_length_size, "little") + tag + length + seed + binder


class XofTurboShake128:
    """A seed's stream.

    >>> from hazemap.vdaf.vdaf import VDAF_18
    >>> XofTurboShake128(VDAF_18, bytes(32), b"tag", b"binder").next(4).hex()
    '034ea674'
    """

    def __init__(self, version: VdafVersion, seed: bytes, tag: bytes, binder: bytes) -> None:
        self._stream = TurboShake128(message(version, seed, tag, binder), DOMAIN)

    def next(self, length: int) -> bytes:
        """The next bytes."""
        return self._stream.next(length)

    def next_vector(self, field: NttField, length: int) -> list[int]:
        """The next field elements: numbers that are not below the modulus are passed over."""
        vector: list[int] = []
        while len(vector) < length:
            x = int.from_bytes(self._stream.next(field.size), "little")
            if x < field.modulus:
                vector.append(x)
        return vector


SEED_SIZE = 16
_DOMAIN = 2


@lru_cache(maxsize=64, typed=True)
def fixed_key(dst: bytes, binder: bytes, length_size: int = 2) -> bytes:
    """The key of AES, which is public; `length_size` is 1 in version 08.

    >>> fixed_key(b"domain", b"nonce").hex()
    'c503b24f0780883d66c6bf2b41b4870b'
    """
    return TurboShake128(len(dst).to_bytes(length_size, "little") + dst + binder, _DOMAIN).next(16)


class XofFixedKeyAes128:
    """Expands a seed of 16 bytes: block `i` is H(seed xor i), for H(x) = AES(k, s) xor s and s = (hi, hi xor lo).

    >>> XofFixedKeyAes128(bytes(16), fixed_key(b"domain", b"nonce")).next(4).hex()
    '3d13392e'
    """

    def __init__(self, seed: bytes, key: bytes) -> None:
        """Of a seed, under a key that `fixed_key` made."""
        self._seed = int.from_bytes(seed, "little")
        self._cipher = Cipher(algorithms.AES128(key), modes.ECB()).encryptor()  # noqa: S305 - the bare permutation
        self._block, self._made = b"", 0

    def next(self, length: int) -> bytes:
        """The next bytes of the output."""
        while len(self._block) < length:
            x = self._seed ^ self._made
            low, high = x & 0xFFFFFFFFFFFFFFFF, x >> 64
            sigma = high | (high ^ low) << 64
            hashed = int.from_bytes(self._cipher.update(sigma.to_bytes(16, "little")), "little") ^ sigma
            self._block += hashed.to_bytes(16, "little")
            self._made += 1
        taken, self._block = self._block[:length], self._block[length:]
        return taken
