"""One vote a person, divided over their cells by weight, or evenly over their rows. This module imports numba."""

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells, Tree
from hazemap.engines.streaming.cell_counter import CellCounter
from hazemap.engines.streaming.keyed_hash import high_product, number
from hazemap.engines.streaming.person_index import RowBatch
from hazemap.engines.streaming.row_buffer import BufferColumns, PackedRowBuffer, RowBuffer
from hazemap.machine_code.arrays import Ints
from hazemap.tables import contribution_bounding as bounding
from hazemap.vdaf.compiled_loops import compiled

LARGEST_TOTAL = np.uint64(bounding.LARGEST_TOTAL)
PLAIN = np.uint64(1 << 46)  # 2¹⁶ micro-votes times a total below this, plus a total, fits 64 bits


class OneVotePerPerson:
    """The weight of each person in each cell; in the end `scale` micro-votes for each person."""

    def __init__(self, scale: int) -> None:
        self._scale = scale

    def row_buffer(self) -> RowBuffer:
        """An empty one."""
        return RowBuffer()

    def append(
        self,
        batch: RowBatch,
        rows: NDArray[np.int64],
        places: NDArray[np.int64],
        count: int,  # noqa: ARG002 - nothing is remembered of a person
        row_buffer: RowBuffer,
    ) -> int:
        """Put rows on the row buffer until it is full; how many were read."""
        taken = min(len(rows), row_buffer.capacity - row_buffer.size)
        _append(batch.cells, batch.weights, rows[:taken], places, row_buffer.entries, row_buffer.size)
        row_buffer.size += taken
        return taken

    def fold(self, row_buffer: RowBuffer) -> None:
        """Add up what a person says of the same cell, in a row buffer in order."""
        row_buffer.size = _fold(row_buffer.entries, row_buffer.size)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Nothing but the row buffer remembers people."""

    def elsewhere(self, rows: NDArray[np.uint32]) -> int:
        """The votes of people all of whose rows lie in `NOWHERE`: `rows` of each, 1 or more."""
        return self._scale * len(rows)

    def count(self, row_buffer: RowBuffer, seeds: NDArray[np.uint64], tally: CellCounter) -> None:
        """Divide each person's vote over a folded row buffer and count it."""
        divide(row_buffer.place, row_buffer.value, row_buffer.size, seeds, self._scale)
        for piece in row_buffer.pieces():
            some = row_buffer.value[piece] > 0
            tally.add(row_buffer.word[piece][some], row_buffer.value[piece][some].view(np.int64))


@compiled
def _append(
    cells: Cells,
    weights: NDArray[np.int64],
    rows: NDArray[np.int64],
    places: NDArray[np.int64],
    entries: BufferColumns,
    size: int,
) -> None:
    place, word, value = entries
    for i in range(rows.size):
        place[size + i], word[size + i], value[size + i] = places[i], cells[rows[i]], weights[rows[i]]


@compiled
def _fold(entries: BufferColumns, size: int) -> int:
    place, word, value = entries
    kept = 0
    for i in range(size):
        if kept > 0 and place[kept - 1] == place[i] and word[kept - 1] == word[i]:
            value[kept - 1] = min(value[kept - 1] + value[i], LARGEST_TOTAL)
        else:
            place[kept], word[kept], value[kept] = place[i], word[i], value[i]
            kept += 1
    return kept


@compiled
def divide(
    place: NDArray[np.uint32] | Ints,
    weight: NDArray[np.uint64],
    size: int,
    seeds: NDArray[np.uint64],
    scale: int,
) -> None:
    """Put in the stead of each weight its part of the vote, person by person: the twin of `memory.divided`."""
    begin = 0
    while begin < size:
        end, total = begin, np.uint64(0)
        while end < size and place[end] == place[begin]:
            total = min(total + weight[end], LARGEST_TOTAL)
            end += 1
        start = high_product(number(seeds[place[begin]], np.uint64(0)), total)
        until, before = np.uint64(0), 0
        for i in range(begin, end):
            until = min(until + weight[i], LARGEST_TOTAL)
            mark = _mark(scale, until, total, start)
            weight[i] = mark - before
            before = mark
        begin = end


@compiled
def _mark(scale: int, until: np.uint64, total: np.uint64, start: np.uint64) -> int:
    """⌊(scale·until + start) / total⌋, where until <= total < 2⁶² and start < total: never overflows."""
    if total < PLAIN:
        return int((np.uint64(scale) * until + start) // total)
    quotient, rest = 0, np.uint64(0)
    for bit in range(16, -1, -1):  # Horner's rule: rest < 3·2⁶²
        quotient, rest = 2 * quotient, rest + rest
        if scale >> bit & 1:
            rest += until
        while rest >= total:
            rest -= total
            quotient += 1
    return quotient + 1 if rest + start >= total else quotient


PIECE = 1 << 16
"""Entries that are unpacked at a time: a megabyte or two."""


class EvenVotePerPerson:
    """How many rows each person has in each cell; in the end `scale` micro-votes for each person.

    What `OneVotePerPerson` makes of rows whose weights are all 1, bit for bit, in less than a third of its memory.
    """

    def __init__(self, scale: int, tree: Tree) -> None:
        self._scale, self._tree = scale, tree

    def row_buffer(self) -> PackedRowBuffer:
        """An empty one."""
        return PackedRowBuffer(self._tree)

    def append(
        self,
        batch: RowBatch,
        rows: Ints,
        places: Ints,
        count: int,  # noqa: ARG002 - nothing is remembered of a person
        row_buffer: PackedRowBuffer,
    ) -> int:
        """Put rows on the row buffer until it is full; how many were read."""
        return row_buffer.append(batch.cells, rows, places)

    def fold(self, row_buffer: PackedRowBuffer) -> None:
        """Add up what a person says of the same cell, in a row buffer in order."""
        row_buffer.fold()

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Nothing but the row buffer remembers people."""

    def elsewhere(self, rows: NDArray[np.uint32]) -> int:
        """The votes of people all of whose rows lie in `NOWHERE`: `rows` of each, 1 or more."""
        return self._scale * len(rows)

    def count(self, row_buffer: PackedRowBuffer, seeds: NDArray[np.uint64], tally: CellCounter) -> None:
        """Divide each person's vote over a folded row buffer and count it."""
        begin = 0
        while begin < row_buffer.size:
            end = row_buffer.border(begin, PIECE)
            places, cells, votes = row_buffer.unpacked(begin, end)
            divide(places, votes, len(votes), seeds, self._scale)
            some = votes > 0
            tally.add(cells[some], votes[some].view(np.int64))
            begin = end
