"""Pairs of people and places, found and added up as rows stream by. This module imports numba."""

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.streaming.keyed_hash import mix, number
from hazemap.engines.streaming.person_index import NumberedPeople, RowBatch
from hazemap.engines.streaming.person_index import PersonIndex as Ids
from hazemap.engines.streaming.row_buffer import BufferColumns, RowBuffer, enlarged, grown
from hazemap.errors import TableError
from hazemap.machine_code.arrays import Ints
from hazemap.tables import keyed_hash as draws
from hazemap.tables.person_cell_values import PersonCellValues
from hazemap.tables.sample_grouping import PublicLocations
from hazemap.values.cell_slot_counters import ObservedCellSlots
from hazemap.values.value_encoding import KnownCountEncoding
from hazemap.vdaf.compiled_loops import compiled

SMALLEST = 1 << 12
LOAD = 0.8
"""How full the table of pairs may be."""
STEP = 1.25
"""By how much columns grow: each is copied alone, so that little more than one of them is there twice."""


class PersonCellSums:
    """A dictionary of pairs with the number and the sums of their records.

    For each pair 8 bytes for its name, 8 for its number of records, 8 for each sum (one for a mean), with a quarter of
    room to grow, and 5 to 10 for the dictionary: 35 to 40 for a mean. `TableError` beyond `limit` bytes. O(1) a row.
    """

    def __init__(self, places: ObservedCellSlots, ids: Ids, limit: int) -> None:
        self._where, self._ids, self._limit = places, ids, limit
        self._marks, self._slots = KnownCountEncoding(places.value_encoding).marks, len(places.slots.names)
        self._dictionary, self._cells = NumberedPeople(), np.empty(0, dtype=np.uint64)
        self._table = np.zeros(2 * SMALLEST, dtype=np.uint32)
        self._keys, self._records = np.empty(SMALLEST, dtype=np.uint64), np.empty(SMALLEST, dtype=np.int64)
        self._sums = np.empty((SMALLEST, self._marks.shape[1]), dtype=np.int64)
        self._count = 0

    def take(self, batch: RowBatch, slots: Ints, readings: Ints) -> None:
        """Add the rows of a batch that count."""
        rows = np.flatnonzero(batch.counts)
        who = self._ids.enter(batch, rows)
        cells = batch.cells[rows]
        spread = RowBatch(draws.mix(cells), cells, batch.weights[:0], batch.counts[:0], None, 0)
        which = self._dictionary.enter(spread, np.arange(len(rows)))
        self._cells = grown(self._cells, len(self._cells), max(0, self._dictionary.count - len(self._cells)))
        self._cells[which] = cells
        if self._dictionary.count * self._slots >= 1 << 32 or self._ids.count >= 1 << 32:
            raise TableError(
                "there are too many people, or cells and slots, to number them: choose coarser cells or fewer slots"
            )
        keys = (who.view(np.uint64) << np.uint64(32)) | (which * self._slots + slots[rows]).view(np.uint64)
        begin, read = 0, readings[rows]
        while begin < len(keys):
            begin, self._count = _add(
                keys,
                read,
                begin,
                self._marks,
                self._table,
                self._keys,
                self._records,
                self._sums,
                self._count,
                self._room,
            )
            if begin < len(keys):
                self._grow()

    @property
    def _room(self) -> int:
        return int(LOAD * len(self._table))

    def _grow(self) -> None:
        """Make room; `TableError` where the limit leaves none."""
        if self._count >= self._room:
            self._table = np.zeros(2 * len(self._table), dtype=np.uint32)
            _fill(self._table, self._keys, self._count)
        if self._count == len(self._keys):
            capacity = int(STEP * self._count)
            self._keys = enlarged(self._keys, self._count, capacity)
            self._records = enlarged(self._records, self._count, capacity)
            self._sums = enlarged(self._sums, self._count, capacity)
        arrays = (self._table, self._keys, self._records, self._sums)
        if sum(array.nbytes for array in arrays) + self._ids.used > self._limit:
            raise TableError(
                "under values-only, what each person measured in each place is kept, and that needs more memory than "
                "its limit: pass a larger one (--memory), or ask for coarser cells or fewer slots"
            )

    def finished(self) -> PersonCellValues:
        """All pairs, those of one person together, in the order that places draw; people by their seeds."""
        self._table = np.zeros(0, dtype=np.uint32)
        cells = self._cells[: self._dictionary.count]
        order = np.argsort(cells)
        tree, rank = self._where.occupied(cells[order]), np.empty(len(cells), dtype=np.int64)
        rank[order] = np.arange(len(cells))
        count, seeds = self._count, self._ids.seeds[: self._ids.count]
        people = np.empty(len(seeds), dtype=np.int64)
        people[np.argsort(seeds, kind="stable")] = np.arange(len(seeds))  # rows may be in an order that values made
        row_buffer, place = RowBuffer(), np.empty(count, dtype=np.int32)
        row_buffer.grow(count)
        row_buffer.size = count
        _draw(self._keys[:count], rank, self._slots, seeds, people, row_buffer.entries, place)
        self._keys = np.empty(0, dtype=np.uint64)  # each column goes when it has been read: they are large
        row_buffer.arrange(len(people))
        order, whose = row_buffer.value[:count].view(np.int64), row_buffer.place[:count]
        del row_buffer
        firsts = np.searchsorted(whose, np.arange(len(people) + 1, dtype=np.uint32))
        del whose
        public = PublicLocations(firsts, place[order], self._records[:count][order], tree.places)
        self._records = np.empty(0, dtype=np.int64)
        return PersonCellValues(tree, public, self._sums[:count][order])


@compiled
def _add(
    keys: NDArray[np.uint64],
    readings: Ints,
    begin: int,
    marks: Ints,
    table: NDArray[np.uint32],
    names: NDArray[np.uint64],
    records: Ints,
    sums: Ints,
    count: int,
    room: int,
) -> tuple[int, int]:
    """Add rows from `begin` on until there is no room for a new pair; where it stopped, and how many there are."""
    last = np.uint64(table.size - 1)
    most = min(names.size, room)
    for row in range(begin, keys.size):
        at = np.int64(mix(keys[row]) & last)
        while table[at] != 0 and names[table[at] - 1] != keys[row]:
            at = (at + 1) & np.int64(last)
        if table[at] == 0:
            if count >= most:
                return row, count
            names[count] = keys[row]
            records[count] = 0
            sums[count] = 0
            count += 1
            table[at] = count
        pair = np.int64(table[at]) - 1
        records[pair] += 1
        for mark in range(marks.shape[1]):
            sums[pair, mark] += marks[readings[row], mark]
    return keys.size, count


@compiled
def _fill(table: NDArray[np.uint32], names: NDArray[np.uint64], count: int) -> None:
    last = np.uint64(table.size - 1)
    for pair in range(count):
        at = np.int64(mix(names[pair]) & last)
        while table[at] != 0:
            at = (at + 1) & np.int64(last)
        table[at] = pair + 1


@compiled
def _draw(
    keys: NDArray[np.uint64],
    rank: Ints,
    slots: int,
    seeds: NDArray[np.uint64],
    people: Ints,
    entries: BufferColumns,
    places: NDArray[np.int32],
) -> None:
    """The person of each pair, the number that its place draws, the pair itself; and its place."""
    for i in range(keys.size):
        who, where = keys[i] >> np.uint64(32), np.int64(keys[i] & np.uint64(0xFFFFFFFF))
        place = rank[where // slots] * slots + where % slots
        entries.place[i], entries.value[i] = people[np.int64(who)], i
        entries.word[i] = number(seeds[np.int64(who)], np.uint64(place))
        places[i] = place
