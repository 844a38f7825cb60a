"""At most so many rows or cells of a person: those that draw the smallest numbers (a bottom-k sketch).

The k smallest of all numbers are the k smallest of the k smallest so far and the rest, so a row buffer can be folded at
any time. `PersonCellMeans` takes in each cell the mean of a person's records. This module imports numba.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells
from hazemap.engines.streaming.cell_counter import CellCounter
from hazemap.engines.streaming.keyed_hash import number
from hazemap.engines.streaming.person_index import RowBatch
from hazemap.engines.streaming.row_buffer import BufferColumns, RowBuffer, filled
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.values.cell_slot_counters import RUN
from hazemap.vdaf.compiled_loops import compiled

SEEN, LIMIT = 0, 1
ANY = np.uint64(2**64 - 1)
UNSEEN = np.array([0, ANY], dtype=np.uint64)


@compiled
def _append(
    ranked: bool,
    seeds: NDArray[np.uint64],
    cells: Cells,
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
    people: NDArray[np.uint64],
    most: int,
    entries: BufferColumns,
    size: int,
) -> tuple[int, int]:
    """A row draws for its rank among its person's rows, if they are `ranked`, or else for its cell."""
    place, word, value = entries
    for i in range(rows.size):
        if size == place.size:
            return i, size
        who, cell = places[i], cells[rows[i]]
        drawn = number(seeds[rows[i]], people[who, SEEN] if ranked else cell)
        if ranked:
            people[who, SEEN] += np.uint64(1)
        if drawn <= people[who, LIMIT]:
            place[size], word[size], value[size] = who, drawn, cell
            size += 1
            if most == 1:
                people[who, LIMIT] = drawn
    return rows.size, size


class BottomKSample(ABC):
    """What every sample has in common: of each person, how much was seen and which numbers can still win."""

    unseen: Any = UNSEEN
    """What is remembered of a person before their first row."""
    loop: Callable[..., tuple[int, int]]
    """Puts rows on a row buffer until it is full: how many were read, and the new size."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._people = np.empty((0, 2), dtype=np.uint64)

    def row_buffer(self) -> RowBuffer:
        """An empty one."""
        return RowBuffer()

    def append(
        self, batch: RowBatch, rows: NDArray[np.int64], places: NDArray[np.int64], count: int, row_buffer: RowBuffer
    ) -> int:
        """Put rows on the row buffer until it is full; how many were read."""
        self._people = filled(self._people, count, self.unseen)
        read, row_buffer.size = self.loop(
            batch.seeds, batch.cells, rows, places, self._people, self._most, row_buffer.entries, row_buffer.size
        )
        return int(read)

    def fold(self, row_buffer: RowBuffer) -> None:
        """Leave of a row buffer in order what may still be kept."""
        row_buffer.size = _fold(row_buffer.entries, row_buffer.size, self._people, self._most)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forget everybody else."""
        self._people = filled(self._people, len(kept), self.unseen)[: len(kept)][kept]

    @abstractmethod
    def elsewhere(self, rows: NDArray[np.uint32]) -> int:
        """The votes of people all of whose rows lie in `NOWHERE`: `rows` of each, 1 or more."""

    def count(self, row_buffer: RowBuffer, seeds: NDArray[np.uint64], tally: CellCounter) -> None:  # noqa: ARG002 - nothing is left to draw
        """Count one vote for everything kept."""
        for piece in row_buffer.pieces():
            tally.count(row_buffer.value[piece])


@final
class RowSample(BottomKSample):
    """At most `most` rows a person. A row draws for its rank among the rows of its person, in their order."""

    loop = staticmethod(partial(_append, True))

    def elsewhere(self, rows: NDArray[np.uint32]) -> int:
        """The votes of people all of whose rows lie in `NOWHERE`: `rows` of each, 1 or more."""
        return int(np.minimum(rows.astype(np.int64), self._most).sum())


@final
class CellSample(BottomKSample):
    """At most `most` distinct cells a person. A cell draws for itself, so a second row in it changes nothing."""

    loop = staticmethod(partial(_append, False))

    def elsewhere(self, rows: NDArray[np.uint32]) -> int:
        """The votes of people all of whose rows lie in `NOWHERE`: `rows` of each, 1 or more. They are one cell."""
        return len(rows)


@compiled
def _fold(entries: BufferColumns, size: int, people: NDArray[np.uint64], most: int) -> int:
    """Keep the `most` smallest distinct words of each place, in a row buffer in order; its new size."""
    place, word, value = entries
    kept, held = 0, 0
    for i in range(size):
        same = kept > 0 and place[kept - 1] == place[i]
        if same and word[kept - 1] == word[i]:
            continue
        held = held + 1 if same else 1
        if held <= most:
            place[kept], word[kept], value[kept] = place[i], word[i], value[i]
            kept += 1
            if held == most:
                people[place[i], LIMIT] = word[i]
    return kept


SEED = 0
"""Where a person's seed stands, in place of `SEEN`."""

AT_ONCE = 1 << 20
"""Counters into which entries are divided before they are added up."""

BITS = np.uint64(27)
ONE, MANY = np.uint64(1), np.uint64((1 << 27) - 1)
"""The lower bits of an entry count records; where there are more, there are more entries."""


@compiled
def _append_records(
    seeds: NDArray[np.uint64],
    cells: Cells,
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
    people: NDArray[np.uint64],
    most: int,  # noqa: ARG001 - as of all samples
    entries: BufferColumns,
    size: int,
) -> tuple[int, int]:
    place, word, _ = entries
    for i in range(rows.size):
        if size == place.size:
            return i, size
        who, cell, seed = places[i], cells[rows[i]], seeds[rows[i]]
        people[who, SEED] = seed
        if people[who, LIMIT] == ANY or number(seed, (cell - np.uint64(1)) // np.uint64(RUN)) <= people[who, LIMIT]:
            place[size], word[size] = who, cell << BITS | ONE
            size += 1
    return rows.size, size


class PersonCellMeans(BottomKSample):
    """A bottom-k sample of each person's places, with how many records of each reading they have there.

    An entry's word is 1 + 1025 · place + reading, at most 2³⁷, and in its lower 27 bits how many records that are: so
    what belongs together stands together in a row buffer in order.
    """

    unseen = ANY
    loop = staticmethod(_append_records)

    def __init__(self, rule: OwnMeans, parts: NDArray[np.int64]) -> None:
        super().__init__(rule.cells)
        self._rule = rule
        self._until = np.cumsum(parts, axis=1)

    def row_buffer(self) -> RowBuffer:
        """An empty one, of words alone."""
        return RowBuffer(valued=False)

    def fold(self, row_buffer: RowBuffer) -> None:
        """Count equal readings together, and drop the places that are too many."""
        row_buffer.size = _fold_places(row_buffer.entries, row_buffer.size, self._people, self._most)

    def elsewhere(self, rows: NDArray[np.uint32]) -> int:
        """Nothing: values are measured in cells, so rows in `NOWHERE` are dropped."""
        raise TypeError(f"{self._rule} has no votes outside its cells for {len(rows)} people")

    def count(self, row_buffer: RowBuffer, seeds: NDArray[np.uint64], tally: CellCounter) -> None:  # noqa: ARG002 - nothing is left to draw
        """Divide each person's weight in each place over the counters, and add it up."""
        begin = 0
        while begin < row_buffer.size:
            end, cells, weights = _divide(row_buffer.entries, row_buffer.size, begin, self._until, self._rule.records)
            some = weights > 0
            tally.add(cells[some], weights[some])
            begin = end


@compiled
def _fold_places(entries: BufferColumns, size: int, people: NDArray[np.uint64], most: int) -> int:
    """Keep the `most` places that draw the smallest numbers, of each person in a row buffer in order; its new size."""
    place, word, _ = entries
    kept, begin = 0, 0
    drawn = np.empty(16, dtype=np.uint64)
    run = np.uint64(RUN)
    while begin < size:
        who, end, several = place[begin], begin, 0
        last = np.uint64(ANY)
        while end < size and place[end] == who:
            where = ((word[end] >> BITS) - ONE) // run
            if where != last:
                if several == drawn.size:
                    drawn = np.concatenate((drawn, np.empty_like(drawn)))
                drawn[several] = number(people[who, SEED], where)
                several += 1
                last = where
            end += 1
        if several > most:
            people[who, LIMIT] = np.partition(drawn[:several], most - 1)[most - 1]
        limit = people[who, LIMIT]
        several, last = -1, np.uint64(ANY)
        first = kept
        for i in range(begin, end):
            where = ((word[i] >> BITS) - ONE) // run
            if where != last:
                several += 1
                last = where
            if drawn[several] <= limit:
                many = word[i] & MANY
                if (
                    kept > first
                    and word[kept - 1] >> BITS == word[i] >> BITS
                    and (word[kept - 1] & MANY) + many <= MANY
                ):
                    word[kept - 1] += many
                else:
                    place[kept], word[kept] = who, word[i]
                    kept += 1
        begin = end
    return kept


@compiled
def _divide(
    entries: BufferColumns, size: int, begin: int, until: NDArray[np.int64], records: int
) -> tuple[int, NDArray[np.uint64], NDArray[np.int64]]:
    """Counters and weights of the entries from `begin` on, some tens of thousands of them: the twin of `_own_means`."""
    place, word, _ = entries
    counters = until.shape[1]
    room = min(size - begin, max(1, AT_ONCE // counters))
    cells, weights = np.empty(room * counters, dtype=np.uint64), np.empty(room * counters, dtype=np.int64)
    sums = np.empty(counters, dtype=np.int64)
    filled, run = 0, np.uint64(RUN)
    while begin < size and filled + counters <= cells.size:
        where, many, end = ((word[begin] >> BITS) - ONE) // run, np.int64(0), begin
        sums[:] = 0
        while end < size and place[end] == place[begin] and ((word[end] >> BITS) - ONE) // run == where:
            reading, equal = ((word[end] >> BITS) - ONE) % run, np.int64(word[end] & MANY)
            for counter in range(counters):
                sums[counter] += equal * until[reading, counter]
            many += equal
            end += 1
        much, before = min(many, records), np.int64(0)
        for counter in range(counters):
            # round(much · sums / many), halves up: the quotient and the rest apart never overflow
            whole, rest = much * (sums[counter] // many), much * (sums[counter] % many)
            mark = whole + (2 * rest + many) // (2 * many)
            cells[filled] = ONE + where * np.uint64(counters) + np.uint64(counter)
            weights[filled] = mark - before
            before = mark
            filled += 1
        begin = end
    return begin, cells[:filled], weights[:filled]
