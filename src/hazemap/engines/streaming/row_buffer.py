"""Rows of a group of people until they are counted, put in order when the buffer is full.

Appending costs only the write; putting entries in order, by place (whose they are), then by word within each place,
lets a rule fold away what it no longer needs. This module imports numba.

`RowBuffer` holds columns of (place, word, value) or (place, word), 20 or 28 bytes an entry, ordered by a counting sort.
Where a tree has few base cells and rows have no weights, `PackedRowBuffer` needs 8: the place in the upper 32 bits, the
base cell below it, and in what is left one less than the number of rows. So sorting words in place puts entries in
order. More rows of a person in one cell than fit are two entries.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Tree
from hazemap.engines.streaming.cell_counter import base_cells
from hazemap.machine_code.arrays import Ints, Words
from hazemap.vdaf.compiled_loops import compiled

SMALLEST = 1 << 12
PIECE = 1 << 18
RUN = 32
"""Up to this many entries an insertion sort is fastest."""


Kind = TypeVar("Kind", bound=np.generic)


def enlarged(array: NDArray[Kind], used: int, capacity: int) -> NDArray[Kind]:
    """A copy of the rows in use, with this capacity."""
    larger = np.empty((capacity, *array.shape[1:]), dtype=array.dtype)
    larger[:used] = array[:used]
    return larger


def filled(array: NDArray[Kind], count: int, rest: Any) -> NDArray[Kind]:
    """An array of at least `count` rows: the same one, or a copy half as large again whose new rows are `rest`."""
    if count <= len(array):
        return array
    larger = enlarged(array, len(array), max(count, count // 2 * 3))
    larger[len(array) :] = rest
    return larger


def grown(array: NDArray[Kind], used: int, more: int) -> NDArray[Kind]:
    """An array with room for `more` rows after those in use: the same one, or a copy half as large again."""
    if used + more <= len(array):
        return array
    return enlarged(array, used, max(used + more, used + used // 2))


class BufferColumns(NamedTuple):
    """The columns of a row buffer: whose each entry is (a place), a word to order by, and perhaps a value."""

    place: NDArray[np.uint32]
    word: NDArray[np.uint64]
    value: NDArray[np.uint64]


class RowBuffer:
    """Entries in arrays: whose (a place), a word to order by, and, in a `valued` row buffer, a value."""

    def __init__(self, valued: bool = True) -> None:
        self.size = 0
        self.place = np.empty(SMALLEST, dtype=np.uint32)
        self.word = np.empty(SMALLEST, dtype=np.uint64)
        self.value = np.empty(SMALLEST if valued else 0, dtype=np.uint64)
        self._valued = valued

    @property
    def bytes_each(self) -> int:
        """Memory for one entry: its columns, and 8 more for one of them at a time while they are put in order."""
        return 28 if self._valued else 20

    @property
    def entries(self) -> BufferColumns:
        """The columns, for compiled loops."""
        return BufferColumns(self.place, self.word, self.value)

    @property
    def capacity(self) -> int:
        """How many entries there is room for."""
        return len(self.place)

    def pieces(self) -> Iterator[slice]:
        """The entries in pieces that are worth copying."""
        for begin in range(0, self.size, PIECE):
            yield slice(begin, min(begin + PIECE, self.size))

    def arrange(self, people: int) -> None:
        """Put all entries in order by place, then by word; equal ones stay in the order they came."""
        ends = _aim(self.place, self.size, people)
        self.word = _moved(self.word, self.place, self.size)
        if self._valued:
            self.value = _moved(self.value, self.place, self.size)
        _order(self.place, self.word, self.value, ends)

    def grow(self, capacity: int) -> None:
        """Make room for this many entries."""
        self.place, self.word = enlarged(self.place, self.size, capacity), enlarged(self.word, self.size, capacity)
        if self._valued:
            self.value = enlarged(self.value, self.size, capacity)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Drop what everybody else said; the places of the others move up, in order."""
        renumbered = np.cumsum(kept, dtype=np.uint32) - np.uint32(1)
        chosen = kept[self.place[: self.size]]
        size = int(chosen.sum())
        self.place[:size] = renumbered[self.place[: self.size][chosen]]
        self.word[:size] = self.word[: self.size][chosen]
        if self._valued:
            self.value[:size] = self.value[: self.size][chosen]
        self.size = size

    def strike(self, rows: NDArray[np.uint32]) -> None:
        """Put 0 in the stead of the number of each place that has an entry. O(entries)."""
        _strike(self.place, self.size, rows)


@compiled
def _strike(place: NDArray[np.uint32], size: int, rows: NDArray[np.uint32]) -> None:
    for i in range(size):
        if place[i] < rows.size:
            rows[place[i]] = 0


@compiled
def _aim(place: NDArray[np.uint32], size: int, people: int) -> NDArray[np.int64]:
    """Put in the stead of each entry's place where the entry belongs; returns where each place then ends."""
    ends = np.zeros(people + 1, dtype=np.int64)
    for i in range(size):
        ends[place[i] + 1] += 1
    for p in range(people):
        ends[p + 1] += ends[p]
    for i in range(size):
        to = ends[place[i]]
        ends[place[i]] = to + 1
        place[i] = to
    return ends[:people]


@compiled
def _moved(column: NDArray[np.uint64], to: NDArray[np.uint32], size: int) -> NDArray[np.uint64]:
    moved = np.empty_like(column)
    for i in range(size):
        moved[to[i]] = column[i]
    return moved


@compiled
def _order(
    place: NDArray[np.uint32], word: NDArray[np.uint64], value: NDArray[np.uint64], ends: NDArray[np.int64]
) -> None:
    begin = 0
    for p in range(ends.size):
        end = ends[p]
        for i in range(begin, end):
            place[i] = p
        if end - begin > 1:
            _sort(word[begin:end], value[begin:end])
        begin = end


@compiled
def _sort(word: NDArray[np.uint64], value: NDArray[np.uint64]) -> None:  # noqa: PLR0912 - one loop
    """Sort both by word, or words alone: runs by insertion, then merged two by two; equal words stay as they came.

    Written out, because numba takes seconds to compile NumPy's sorts.
    """
    valued = value.size > 0
    for start in range(0, word.size, RUN):
        for i in range(start + 1, min(start + RUN, word.size)):
            w, v = word[i], value[i] if valued else word[i]
            j = i
            while j > start and word[j - 1] > w:
                word[j] = word[j - 1]
                if valued:
                    value[j] = value[j - 1]
                j -= 1
            word[j] = w
            if valued:
                value[j] = v
    run = RUN
    first, first_value = np.empty(word.size, np.uint64), np.empty(value.size, np.uint64)
    while run < word.size:
        for start in range(0, word.size - run, 2 * run):
            for i in range(start, start + run):
                first[i] = word[i]
                if valued:
                    first_value[i] = value[i]
            i, j, to = start, start + run, start
            end = min(j + run, word.size)
            while i < start + run:
                if j < end and word[j] < first[i]:
                    word[to] = word[j]
                    if valued:
                        value[to] = value[j]
                    j += 1
                else:
                    word[to] = first[i]
                    if valued:
                        value[to] = first_value[i]
                    i += 1
                to += 1
        run *= 2


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
        _append_packed(cells, rows[:taken], places, self._first, self._cells, self._bits, self._entries, self.size)
        self.size += taken
        return taken

    def arrange(self, people: int) -> None:
        """Put all entries in order by place, then by cell: first those of nearby places together, then each of these.

        Where they stand, with room for `PIECE` entries beside them.
        """
        ahead = PLACE + max(0, (people - 1).bit_length() - BUCKETS)
        ends = _gather_packed(self._entries, self.size, np.uint64(ahead), 1 << BUCKETS)
        _sort_packed(self._entries, ends, int(self._bits), ahead, np.empty(min(PIECE, self.size), dtype=np.uint64))
        for bucket in np.flatnonzero(np.diff(ends) > PIECE):
            self._entries[ends[bucket] : ends[bucket + 1]].sort()

    def fold(self) -> None:
        """Add up a person's rows in one cell, in a buffer in order."""
        self.size = _fold_packed(self._entries, self.size, self._bits)

    def grow(self, capacity: int) -> None:
        """Make room for this many entries."""
        self._entries = enlarged(self._entries, self.size, capacity)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Drop what everybody else said; the places of the others move up, in order."""
        renumbered = np.cumsum(kept, dtype=np.uint32) - np.uint32(1)
        self.size = _keep_packed(self._entries, self.size, kept, renumbered)

    def strike(self, rows: NDArray[np.uint32]) -> None:
        """Put 0 in the stead of the number of each place that has an entry. O(entries)."""
        _strike_packed(self._entries, self.size, rows)

    def border(self, begin: int, most: int) -> int:
        """Where a run of at least `most` entries from `begin` ends, between two people or at the end of all."""
        return _border_packed(self._entries, self.size, begin, most)

    def unpacked(self, begin: int, end: int) -> tuple[Ints, Cells, Words]:
        """The places, cells and numbers of rows of a run of entries."""
        entries, one = self._entries[begin:end], np.uint64(1)
        count = (entries & ((one << self._bits) - one)) + one
        cell = (entries >> self._bits) & ((one << np.uint64(64 - PLACE) - self._bits) - one)
        cells = np.where(cell == 0, NOWHERE, cell + (self._first - one))
        return (entries >> np.uint64(64 - PLACE)).view(np.int64), cells, count


@compiled
def _append_packed(
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
def _gather_packed(entries: Words, size: int, ahead: np.uint64, buckets: int) -> Ints:
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
def _sort_packed(entries: Words, ends: Ints, low: int, high: int, beside: Words) -> None:
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
def _fold_packed(entries: Words, size: int, bits: np.uint64) -> int:
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
def _keep_packed(entries: Words, size: int, kept: NDArray[np.bool_], renumbered: NDArray[np.uint32]) -> int:
    left, half = 0, np.uint64(64 - PLACE)
    for i in range(size):
        place = np.int64(entries[i] >> half)
        if kept[place]:
            entries[left] = np.uint64(renumbered[place]) << half | entries[i] & ((np.uint64(1) << half) - np.uint64(1))
            left += 1
    return left


@compiled
def _strike_packed(entries: Words, size: int, rows: NDArray[np.uint32]) -> None:
    for i in range(size):
        place = np.int64(entries[i] >> np.uint64(64 - PLACE))
        if place < rows.size:
            rows[place] = 0


@compiled
def _border_packed(entries: Words, size: int, begin: int, most: int) -> int:
    end = min(begin + most, size)
    while end < size and entries[end] >> np.uint64(64 - PLACE) == entries[end - 1] >> np.uint64(64 - PLACE):
        end += 1
    return end
