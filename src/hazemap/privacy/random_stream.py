"""The random stream of a trust model: AES-256 in counter mode under a key from the system.

A stream never gives a word twice: not to two threads (a lock), not to a parent and its forked child (the
child takes a key of its own). Its words are uniform and independent as far as AES-256 is a pseudorandom
permutation; with n blocks read the counter mode adds at most n²/2¹²⁹ to an adversary's advantage (Bellare
et al. 1997). A machine that is snapshotted and started twice repeats its memory, keys included: do not.
"""

import os
import threading
from hashlib import sha256
from typing import NoReturn

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Ints

_ZEROS = memoryview(bytes(1 << 17))  # what is encrypted: the keystream itself comes out


class _Keystream:
    """One key in one process, read by one thread at a time."""

    def __init__(self, key: bytes) -> None:
        self.process = os.getpid()
        self.lock = threading.Lock()
        self.cipher = Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()


class Stream:
    """Fresh uniform words for noise.

    >>> stream = Stream.from_os()
    >>> stream.words(3).shape, stream.below(1)
    ((3,), 0)
    """

    def __init__(self, seed: bytes | None = None) -> None:
        self._seed = seed
        self._keystream = _Keystream(os.urandom(32) if seed is None else sha256(seed).digest())

    @classmethod
    def from_os(cls) -> "Stream":
        """A stream under a fresh 256-bit key of the operating system: the only one to protect people with."""
        return cls()

    @classmethod
    def fixed(cls, seed: bytes) -> "Stream":
        """The same words every time, FOR TESTS ONLY: whoever knows the seed can subtract the noise."""
        return cls(seed)

    @classmethod
    def keyed(cls, key: bytes) -> "Stream":
        """The stream of a secret key that was derived for one purpose: the same key gives the same words."""
        return cls(key)

    @property
    def is_fixed(self) -> bool:
        """Whether its words can be had again: then it protects nobody."""
        return self._seed is not None

    def words(self, n: int) -> NDArray[np.uint64]:
        """The next n words, uniform on 0 … 2⁶⁴ − 1; nobody else gets them."""
        if n < 0:
            raise InputError(f"a stream cannot give a negative number of words: {n}")
        words = np.empty(n, dtype="<u8")
        view = words.view(np.uint8).data
        keystream = self._own()
        with keystream.lock:
            for start in range(0, len(view), len(_ZEROS)):
                part = view[start : start + len(_ZEROS)]
                keystream.cipher.update_into(_ZEROS[: len(part)], part)
        return words.astype(np.uint64, copy=False)

    def bytes(self, n: int) -> bytes:
        """The next n bytes, from words of their own."""
        return self.words(-(-n // 8)).astype("<u8", copy=False).tobytes()[:n]

    def below(self, bound: int) -> int:
        """A uniform integer in 0 … bound − 1, of any size: words are cut to length and rejected, never reduced."""
        if bound < 1:
            raise InputError(f"a number below {bound} cannot be drawn: the bound must be at least 1")
        bits = (bound - 1).bit_length()
        if not bits:
            return 0
        words = -(-bits // 64)
        while True:
            value = int.from_bytes(self.words(words).astype("<u8").tobytes(), "little") >> (64 * words - bits)
            if value < bound:
                return value

    def _own(self) -> _Keystream:
        """This process's keystream. After a fork the child's first call replaces the copy it inherited.

        The copy's lock may be held for ever by a thread that the fork left behind, so it is not taken; if
        two threads of the child come here at once, each uses a fresh key of its own, which is as good.
        """
        keystream = self._keystream
        if keystream.process != os.getpid():
            if self._seed is not None:
                raise InputError("a fixed stream was used in a forked process: it would repeat its parent's words")
            keystream = self._keystream = _Keystream(os.urandom(32))
        return keystream

    def __reduce__(self) -> NoReturn:
        raise TypeError("a stream cannot be copied or sent elsewhere: its words would be used twice")


def in_any_order(stream: Stream, number: int) -> Ints:
    """A permutation of 0 … number − 1: the order of random words, all drawn again if two are equal.

    Given that no two are equal, every order of them is equally likely. Two of n are equal with a chance of n²/2⁶⁵.
    O(n log n).

    >>> sorted(in_any_order(Stream.from_os(), 4).tolist())
    [0, 1, 2, 3]
    """
    if number < 0:
        raise InputError(f"there is no permutation of {number} things")
    while True:
        words = stream.words(number)
        order = np.argsort(words, kind="stable")
        if not (np.diff(words[order]) == 0).any():
            return order
