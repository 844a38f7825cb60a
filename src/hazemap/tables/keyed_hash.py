"""Pseudorandom numbers from a keyed hash: they choose which rows of a person are kept.

A number depends on the key, on one person and on a word (which of their rows, which cell), so what is kept of a person
never depends on other people. Privacy rests on that alone. Were the hash poor, or the key known, the choice would be
less fair, and people as private as before.

The hash is the finaliser of SplitMix64 (Steele, Lea and Flood 2014), twice for a person and twice for a
word. Each step is a bijection, so two people never have one seed and one person never draws a number twice.
"""

from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SamplingKey = int | bytes
"""The seed of a sample."""


class KeyWords(NamedTuple):
    """A sampling key as the two words that the hash takes in."""

    first: np.uint64
    second: np.uint64

    @classmethod
    def expanded(cls, key: SamplingKey, use: str) -> "KeyWords":
        """The words of a key for one use (the name of a bounding rule), so that no two rules draw alike."""
        text = key if isinstance(key, bytes) else b"%d" % key
        digest = blake2b(text, digest_size=16, person=use.encode()).digest()
        first, second = np.frombuffer(digest, dtype="<u8")
        return cls(np.uint64(first), np.uint64(second))


def mix(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A bijection of 64-bit words in which every bit of the input moves every bit of the output."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def seeds(people: NDArray[np.uint64], words: KeyWords) -> NDArray[np.uint64]:
    """A seed for each person, from the 64 bits of their code."""
    return mix(mix(people + words.first) ^ words.second)


def numbers(seeds: NDArray[np.uint64], words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The number that each seed draws for a word: uniform in [0, 2⁶⁴).

    >>> people = seeds(np.arange(2, dtype=np.uint64), KeyWords.expanded(7, "rows"))
    >>> numbers(people, np.zeros(2, dtype=np.uint64)) < np.uint64(2**63)
    array([ True, False])
    """
    return mix(mix(words ^ seeds) + seeds)
