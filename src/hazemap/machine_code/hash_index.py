"""Positions of numbers in an array, by hashing: finds millions of rows among thousands of cells."""

import numpy as np
from numpy.typing import NDArray

from hazemap.vdaf.compiled_loops import once_compiled

Numbers = NDArray[np.uint64]


class HashIndex:
    """The position of each of some different numbers. O(numbers) to make, 32 to 64 bytes each.

    >>> HashIndex(np.array([30, 10, 20], dtype=np.uint64)).of(np.array([10, 11, 30], dtype=np.uint64))
    array([ 1, -1,  0])
    """

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self._table = np.zeros((1 << (2 * len(numbers)).bit_length(), 2), dtype=np.uint64)
        once_compiled(_fill)(numbers, self._table)

    def of(self, numbers: Numbers) -> NDArray[np.int64]:
        """Where each number stands, int64[len(numbers)]; −1 for those that are not there. O(1) for each."""
        found: NDArray[np.int64] = once_compiled(_look_up)(numbers, self._table)
        return found


# A row of the table is a number and its position + 1, or zeros; a number stands at its hash or after it.
MIX = np.uint64(0x9E3779B97F4A7C15)  # 2⁶⁴ divided by the golden ratio (Knuth)
HALF = np.uint64(32)


def _fill(numbers, table):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    last = np.int64(len(table) - 1)
    for i in range(numbers.size):
        at = np.int64((numbers[i] * MIX) >> HALF) & last
        while table[at, 1] != 0:
            at = (at + 1) & last
        table[at, 0], table[at, 1] = numbers[i], i + 1


def _look_up(numbers, table):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    found = np.empty(numbers.size, dtype=np.int64)
    last = np.int64(len(table) - 1)
    for i in range(numbers.size):
        at = np.int64((numbers[i] * MIX) >> HALF) & last
        while table[at, 1] != 0 and table[at, 0] != numbers[i]:
            at = (at + 1) & last
        found[i] = np.int64(table[at, 1]) - 1
    return found
