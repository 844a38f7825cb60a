"""XofFixedKeyAes128 (draft-irtf-cfrg-vdaf-20, 6.2.2): the output function inside the IDPF, in plain Python.

`idpf_kernels` computes the same in machine code, for many seeds at once.
"""

from functools import lru_cache

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from hazemap.vdaf.turboshake128 import TurboShake128

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
