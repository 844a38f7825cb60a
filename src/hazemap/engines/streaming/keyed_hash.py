"""The hash of `tables.keyed_hash` for compiled loops, and the 64 bits of an id that is a text.

`tables.keyed_hash` works on arrays and needs no compiler: devices and tables in memory use it. This module imports
numba; import it inside the function that uses it.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.tables import keyed_hash as draws
from hazemap.vdaf.compiled_loops import compiled

mix: Any = compiled(draws.mix)  # the same lines, for one word instead of many


@compiled
def number(seed: np.uint64, word: np.uint64) -> np.uint64:
    """What a seed draws for a word: the twin of `draws.numbers`."""
    drawn: np.uint64 = mix(mix(word ^ seed) + seed)
    return drawn


@compiled
def seeds_of_numbers(people: NDArray[np.uint64], first: np.uint64, second: np.uint64) -> NDArray[np.uint64]:
    """A seed for each person: the twin of `draws.seeds`."""
    seeds = np.empty(people.size, dtype=np.uint64)
    for i in range(people.size):
        seeds[i] = mix(mix(people[i] + first) ^ second)
    return seeds


@compiled
def text_code(data: NDArray[np.uint8], start: int, stop: int) -> np.uint64:
    """64 bits of a text: its length, then eight bytes at a time, little end first."""
    code = np.uint64(stop - start)
    for at in range(start, stop, 8):
        word = np.uint64(0)
        for i in range(min(8, stop - at)):
            word |= np.uint64(data[at + i]) << np.uint64(8 * i)
        code = mix(code ^ word)
    return code


@compiled
def seeds_of_texts(
    data: NDArray[np.uint8], offsets: NDArray[np.int32], first: np.uint64, second: np.uint64
) -> NDArray[np.uint64]:
    """A seed for each person, from the code of their id. Here two people may have the same: see `NamedPeople`."""
    seeds = np.empty(offsets.size - 1, dtype=np.uint64)
    for i in range(seeds.size):
        seeds[i] = mix(mix(text_code(data, offsets[i], offsets[i + 1]) + first) ^ second)
    return seeds


@compiled
def high_product(a: np.uint64, b: np.uint64) -> np.uint64:
    """The upper 64 bits of a·b: a uniform number below b, where a is uniform below 2⁶⁴."""
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    middle = (a & low) * (b >> half) + (((a & low) * (b & low)) >> half)
    other = (a >> half) * (b & low) + (middle & low)
    return (a >> half) * (b >> half) + (middle >> half) + (other >> half)
