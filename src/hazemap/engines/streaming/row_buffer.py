"""What a group of people has said so far: a row buffer of (place, word, value), or of (place, word), put in order when
full.

Appending costs nothing but the write; putting in order (a counting sort by place, then by word within each
place) lets a rule fold away what it no longer needs. This module imports numba.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

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


class Entries(NamedTuple):
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
    def entries(self) -> Entries:
        """The columns, for compiled loops."""
        return Entries(self.place, self.word, self.value)

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
