"""One vote a person, divided evenly over their rows. This module imports numba."""

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Ints
from hazemap.cells import Tree
from hazemap.engines.streaming.cell_counter import CellCounter
from hazemap.engines.streaming.one_vote_per_person import divide
from hazemap.engines.streaming.packed_row_buffer import PackedRowBuffer
from hazemap.engines.streaming.person_index import RowBatch

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
