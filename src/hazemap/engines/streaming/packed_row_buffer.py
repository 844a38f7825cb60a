"""Rows that weigh alike, each in one word: whose (a place), in which base cell, and how many of them.

A row buffer needs 20 or 28 bytes an entry, because it orders by any word and keeps any value. Where a tree has few base
cells and rows have no weights, 8 do: the place in the upper 32 bits, the base cell below it, and in what is left one
less than the number of rows. So sorting words puts entries in order by place, then by cell, where they stand. More rows
of a person in one cell than fit are two entries. This module imports numba.
"""

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Tree
from hazemap.engines.streaming.cell_counter import base_cells
from hazemap.engines.streaming.row_buffer import PIECE, RUN, SMALLEST, enlarged
from hazemap.machine_code.arrays import Ints, Words
from hazemap.vdaf.compiled_loops import compiled

PLACE = 32
"""Bits of a place, as in every row buffer."""

LEAST = 6
"""Bits that a number of rows needs: with fewer, rows that a person has in one cell would be too many entries."""

BUCKETS, DIGIT = 9, 11
"""Bits that put entries into buckets of nearby places, and bits by which a bucket is sorted at a time."""


class PackedRowBuffer:
    """Entries of 8 bytes for the base cells of a tree that has at most 2²⁶ − 1 of them."""

    def __init__(self, tree: Tree) -> None:
        first, self._cells = base_cells(tree)
        self._first, self._bits = np.uint64(first), np.uint64(64 - PLACE - self._cells.bit_length())
        self.size, self._entries = 0, np.empty(SMALLEST, dtype=np.uint64)

    @staticmethod
    def suits(tree: Tree) -> bool:
        """Whether the base cells of a tree leave bits for a number of rows."""
        return base_cells(tree)[1].bit_length() <= 64 - PLACE - LEAST

    @property
    def bytes_each(self) -> int:
        """Memory for one entry."""
        return 8

    @property
    def capacity(self) -> int:
        """How many entries there is room for."""
        return len(self._entries)

    def append(self, cells: Cells, rows: Ints, places: Ints) -> int:
        """Put rows on the buffer until it is full; how many there was room for."""
        taken = min(len(rows), self.capacity - self.size)
        _append(cells, rows[:taken], places, self._first, self._cells, self._bits, self._entries, self.size)
        self.size += taken
        return taken

    def arrange(self, people: int) -> None:
        """Put all entries in order by place, then by cell: first those of nearby places together, then each of these.

        Where they stand, with room for `PIECE` entries beside them.
        """
        ahead = PLACE + max(0, (people - 1).bit_length() - BUCKETS)
        ends = _gather(self._entries, self.size, np.uint64(ahead), 1 << BUCKETS)
        _sort(self._entries, ends, int(self._bits), ahead, np.empty(min(PIECE, self.size), dtype=np.uint64))
        for bucket in np.flatnonzero(np.diff(ends) > PIECE):
            self._entries[ends[bucket] : ends[bucket + 1]].sort()

    def fold(self) -> None:
        """Add up a person's rows in one cell, in a buffer in order."""
        self.size = _fold(self._entries, self.size, self._bits)

    def grow(self, capacity: int) -> None:
        """Make room for this many entries."""
        self._entries = enlarged(self._entries, self.size, capacity)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Drop what everybody else said; the places of the others move up, in order."""
        renumbered = np.cumsum(kept, dtype=np.uint32) - np.uint32(1)
        self.size = _keep(self._entries, self.size, kept, renumbered)

    def strike(self, rows: NDArray[np.uint32]) -> None:
        """Put 0 in the stead of the number of each place that has an entry. O(entries)."""
        _strike(self._entries, self.size, rows)

    def border(self, begin: int, most: int) -> int:
        """Where a run of at least `most` entries from `begin` ends, between two people or at the end of all."""
        return _border(self._entries, self.size, begin, most)

    def unpacked(self, begin: int, end: int) -> tuple[Ints, Cells, Words]:
        """The places, cells and numbers of rows of a run of entries."""
        entries, one = self._entries[begin:end], np.uint64(1)
        count = (entries & ((one << self._bits) - one)) + one
        cell = (entries >> self._bits) & ((one << np.uint64(64 - PLACE) - self._bits) - one)
        cells = np.where(cell == 0, NOWHERE, cell + (self._first - one))
        return (entries >> np.uint64(64 - PLACE)).view(np.int64), cells, count


@compiled
def _append(
    cells: Cells, rows: Ints, places: Ints, first: np.uint64, number: int, bits: np.uint64, entries: Words, size: int
) -> None:
    for i in range(rows.size):
        cell = cells[rows[i]]
        if cell != 0:
            if cell < first or cell - first >= np.uint64(number):
                raise ValueError("a tree gave a base cell outside the span of its root")
            cell = cell - first + np.uint64(1)
        entries[size + i] = np.uint64(places[i]) << np.uint64(64 - PLACE) | cell << bits


@compiled
def _gather(entries: Words, size: int, ahead: np.uint64, buckets: int) -> Ints:
    """Put entries together that are alike from this bit on: where each bucket begins, and where the last one ends.

    Each entry is put where it belongs, and what stood there is next (McIlroy, Bostic and McIlroy 1993).
    """
    ends = np.zeros(buckets + 1, dtype=np.int64)
    for i in range(size):
        ends[np.int64(entries[i] >> ahead) + 1] += 1
    for bucket in range(buckets):
        ends[bucket + 1] += ends[bucket]
    free = ends[:buckets].copy()
    for bucket in range(buckets):
        while free[bucket] < ends[bucket + 1]:
            entry = entries[free[bucket]]
            own = np.int64(entry >> ahead)
            while own != bucket:
                entry, entries[free[own]] = entries[free[own]], entry
                free[own] += 1
                own = np.int64(entry >> ahead)
            entries[free[bucket]] = entry
            free[bucket] += 1
    return ends


@compiled
def _sort(entries: Words, ends: Ints, low: int, high: int, beside: Words) -> None:
    """Sort each bucket that fits `beside` by its bits from `low` to `high`, by digits; few entries by insertion."""
    last = (np.uint64(1) << np.uint64(DIGIT)) - np.uint64(1)
    begins = np.empty((1 << DIGIT) + 1, dtype=np.int64)
    for bucket in range(ends.size - 1):
        begin, number = ends[bucket], ends[bucket + 1] - ends[bucket]
        if number > beside.size:
            continue
        if number <= 2 * RUN:
            for i in range(begin + 1, begin + number):
                entry, j = entries[i], i
                while j > begin and entries[j - 1] > entry:
                    entries[j] = entries[j - 1]
                    j -= 1
                entries[j] = entry
            continue
        here, there = entries[begin : begin + number], beside[:number]
        for bit in range(low, high, DIGIT):
            begins[:] = 0
            for i in range(number):
                begins[np.int64(here[i] >> np.uint64(bit) & last) + 1] += 1
            for digit in range(1 << DIGIT):
                begins[digit + 1] += begins[digit]
            for i in range(number):
                own = np.int64(here[i] >> np.uint64(bit) & last)
                there[begins[own]] = here[i]
                begins[own] += 1
            here, there = there, here
        if (high - low + DIGIT - 1) // DIGIT % 2:
            for i in range(number):
                entries[begin + i] = here[i]


@compiled
def _fold(entries: Words, size: int, bits: np.uint64) -> int:
    most, kept = (np.uint64(1) << bits) - np.uint64(1), 0  # the largest number of rows is one more
    for i in range(size):
        entry = entries[i]
        if kept > 0 and entries[kept - 1] >> bits == entry >> bits:
            room = most - (entries[kept - 1] & most)
            more = (entry & most) + np.uint64(1)
            if more <= room:
                entries[kept - 1] += more
                continue
            entries[kept - 1] += room
            entry -= room
        entries[kept] = entry
        kept += 1
    return kept


@compiled
def _keep(entries: Words, size: int, kept: NDArray[np.bool_], renumbered: NDArray[np.uint32]) -> int:
    left, half = 0, np.uint64(64 - PLACE)
    for i in range(size):
        place = np.int64(entries[i] >> half)
        if kept[place]:
            entries[left] = np.uint64(renumbered[place]) << half | entries[i] & ((np.uint64(1) << half) - np.uint64(1))
            left += 1
    return left


@compiled
def _strike(entries: Words, size: int, rows: NDArray[np.uint32]) -> None:
    for i in range(size):
        place = np.int64(entries[i] >> np.uint64(64 - PLACE))
        if place < rows.size:
            rows[place] = 0


@compiled
def _border(entries: Words, size: int, begin: int, most: int) -> int:
    end = min(begin + most, size)
    while end < size and entries[end] >> np.uint64(64 - PLACE) == entries[end - 1] >> np.uint64(64 - PLACE):
        end += 1
    return end
