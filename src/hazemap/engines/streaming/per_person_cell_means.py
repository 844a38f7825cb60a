"""Of each person at most `cells` cells and slots, and in each the mean of their records. This module imports numba."""

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells
from hazemap.engines.streaming.cell_counter import CellCounter
from hazemap.engines.streaming.keyed_hash import number
from hazemap.engines.streaming.per_person_bottom_k import BottomKSample
from hazemap.engines.streaming.row_buffer import Entries, RowBuffer
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.values.cell_slot_counters import RUN
from hazemap.vdaf.compiled_loops import compiled

SEED, LIMIT = 0, 1
ANY = np.uint64(2**64 - 1)
AT_ONCE = 1 << 20
"""Counters into which entries are divided before they are added up."""

BITS = np.uint64(27)
ONE, MANY = np.uint64(1), np.uint64((1 << 27) - 1)
"""The lower bits of an entry count records; where there are more, there are more entries."""


@compiled
def _append(
    seeds: NDArray[np.uint64],
    cells: Cells,
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
    people: NDArray[np.uint64],
    most: int,  # noqa: ARG001 - as of all samples
    entries: Entries,
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
    loop = staticmethod(_append)

    def __init__(self, rule: OwnMeans, parts: NDArray[np.int64]) -> None:
        super().__init__(rule.cells)
        self._rule = rule
        self._until = np.cumsum(parts, axis=1)

    def row_buffer(self) -> RowBuffer:
        """An empty one, of words alone."""
        return RowBuffer(valued=False)

    def fold(self, row_buffer: RowBuffer) -> None:
        """Count equal readings together, and drop the places that are too many."""
        row_buffer.size = _fold(row_buffer.entries, row_buffer.size, self._people, self._most)

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
def _fold(entries: Entries, size: int, people: NDArray[np.uint64], most: int) -> int:
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
    entries: Entries, size: int, begin: int, until: NDArray[np.int64], records: int
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
