"""Which place each person has: 0, 1, 2 … in the order they are met. Exact for every kind of id.

Ids that are whole numbers have seeds of their own, so `NumberedPeople` compares seeds. Two texts may have one seed,
so `NamedPeople` compares the texts themselves: a hash never makes one person of two, which would break the bound
on what one person contributes. This module imports numba.
"""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells
from hazemap.engines.streaming.row_buffer import grown
from hazemap.machine_code.arrays import Ints, Words
from hazemap.vdaf.compiled_loops import compiled

BYTES_EACH = 70
"""Memory for one person at most, with room to grow: seed 12, table 4 × 8, what a rule remembers 20, rows outside 6."""


class Texts(NamedTuple):
    """The ids of the rows of a batch as one run of bytes; the id of row i is data[offsets[i]:offsets[i + 1]]."""

    data: NDArray[np.uint8]
    offsets: NDArray[np.int32]


class RowBatch(NamedTuple):
    """Rows on their way to be counted: the seed of the person, the base cell, the weight; and which count.

    Only rules that weigh rows get weights; for the others there are none. `outside` are rows in `NOWHERE` that count
    for a person none of whose rows does; None where a rule has no such rows.
    """

    seeds: NDArray[np.uint64]
    cells: Cells
    weights: NDArray[np.int64]
    counts: NDArray[np.bool_]
    texts: Texts | None
    strangers: int  # rows without a person
    outside: NDArray[np.bool_] | None = None


class PersonIndex(ABC):
    """The people of one group."""

    def __init__(self) -> None:
        self.seeds = np.empty(0, dtype=np.uint64)
        self.count = 0
        self._table = np.zeros(2, dtype=np.uint64)

    @property
    def used(self) -> int:
        """Bytes that these people need."""
        return self.count * BYTES_EACH

    @abstractmethod
    def enter(self, batch: RowBatch, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The place of the person of each of these rows; a new person gets the next place."""

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forget everybody else; the others move up, in order."""
        self.seeds = self.seeds[: self.count][kept]
        self.count = len(self.seeds)
        self._table = roomy(np.zeros(2, dtype=np.uint64), self.seeds, self.count, 0)

    def take_seeds(self) -> Words:
        """The seeds by place, when nobody comes any more: who has which is forgotten."""
        self._table = np.zeros(2, dtype=np.uint64)
        return self.seeds


class NumberedPeople(PersonIndex):
    """People whose ids are whole numbers."""

    def enter(self, batch: RowBatch, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The place of the person of each of these rows; a new person gets the next place."""
        self.seeds = grown(self.seeds, self.count, len(rows))
        self._table = roomy(self._table, self.seeds, self.count, len(rows))
        places = np.empty(len(rows), dtype=np.int64)
        self.count = _enter_numbers(batch.seeds, rows, places, self._table, self.seeds, self.count)
        return places


class NamedPeople(PersonIndex):
    """People whose ids are texts: an exact dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self._letters = np.empty(0, dtype=np.uint8)
        self._ends = np.empty(0, dtype=np.int64)  # where the id of each place ends in `_letters`

    @property
    def used(self) -> int:
        """Bytes that these people need."""
        return super().used + self.count * 8 + self._written

    @property
    def _written(self) -> int:
        return int(self._ends[self.count - 1]) if self.count else 0

    def enter(self, batch: RowBatch, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The place of the person of each of these rows; a new person gets the next place."""
        if batch.texts is None:
            raise TypeError("text ids need their texts")
        data, offsets = batch.texts
        self.seeds = grown(self.seeds, self.count, len(rows))
        self._ends = grown(self._ends, self.count, len(rows))
        self._letters = grown(self._letters, self._written, int((offsets[rows + 1] - offsets[rows]).sum()))
        self._table = roomy(self._table, self.seeds, self.count, len(rows))
        places = np.empty(len(rows), dtype=np.int64)
        self.count = _enter_texts(
            batch.seeds, rows, data, offsets, places, self._table, self.seeds, self._ends, self._letters, self.count
        )
        return places

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forget everybody else; the others move up, in order."""
        ends = self._ends[: self.count]
        lengths = np.diff(ends, prepend=0)
        self._letters = self._letters[: self._written][np.repeat(kept, lengths)]
        self._ends = np.cumsum(lengths[kept])
        super().keep(kept)


def roomy(table: Words, seeds: Words, count: int, more: int) -> Words:
    """A table at most half full with `more` people added: the same one, or one filled anew."""
    size = 1 << (2 * (count + more)).bit_length()
    if size <= len(table):
        return table
    larger = np.zeros(size, dtype=np.uint64)
    _fill(larger, seeds, count)
    return larger


# A word of the table is the upper half of a seed above its place + 1, or 0; a seed stands at its lower bits or after
# them. Whoever has another upper half is another person; of those who share it the seeds are compared.
_PLACE = np.uint64(0xFFFFFFFF)
_UPPER = np.uint64(0xFFFFFFFF00000000)


@compiled
def _fill(table: Words, seeds: Words, count: int) -> None:
    last = np.uint64(len(table) - 1)
    for place in range(count):
        at = np.int64(seeds[place] & last)
        while table[at] != 0:
            at = (at + 1) & np.int64(last)
        table[at] = (seeds[place] & _UPPER) | np.uint64(place + 1)


@compiled
def _enter_numbers(batch: Words, rows: Ints, places: Ints, table: Words, seeds: Words, count: int) -> int:
    last = np.uint64(len(table) - 1)
    for i in range(rows.size):
        seed = batch[rows[i]]
        at = np.int64(seed & last)
        place = np.int64(table[at] & _PLACE) - 1
        while place >= 0 and (((table[at] ^ seed) & _UPPER) != 0 or seeds[place] != seed):
            at = (at + 1) & np.int64(last)
            place = np.int64(table[at] & _PLACE) - 1
        if place < 0:
            place = np.int64(count)
            seeds[place] = seed
            count += 1
            table[at] = (seed & _UPPER) | np.uint64(count)
        places[i] = place
    return count


@compiled
def _enter_texts(
    batch: Words,
    rows: Ints,
    data: NDArray[np.uint8],
    offsets: NDArray[np.int32],
    places: Ints,
    table: Words,
    seeds: Words,
    ends: Ints,
    letters: NDArray[np.uint8],
    count: int,
) -> int:
    last = np.uint64(len(table) - 1)
    for i in range(rows.size):
        seed, start = batch[rows[i]], np.int64(offsets[rows[i]])
        length = np.int64(offsets[rows[i] + 1]) - start
        at = np.int64(seed & last)
        place = np.int64(table[at] & _PLACE) - 1
        while place >= 0:
            same, j = ((table[at] ^ seed) & _UPPER) == 0 and seeds[place] == seed, 0
            if same:
                begin = ends[place - 1] if place > 0 else 0
                same = ends[place] - begin == length
                while same and j < length:
                    same = letters[begin + j] == data[start + j]
                    j += 1
            if same:
                break
            at = (at + 1) & np.int64(last)
            place = np.int64(table[at] & _PLACE) - 1
        if place < 0:
            place = np.int64(count)
            begin = ends[place - 1] if place > 0 else 0
            for j in range(length):
                letters[begin + j] = data[start + j]
            seeds[place], ends[place] = seed, begin + length
            count += 1
            table[at] = (seed & _UPPER) | np.uint64(count)
        places[i] = place
    return count
