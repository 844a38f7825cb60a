"""At most `most` rows or cells of a person: those that draw the smallest numbers (a bottom-k sketch).

The k smallest of all numbers are the k smallest of the k smallest so far and the rest, so a row buffer can be
folded at any time. This module imports numba.
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
from hazemap.engines.streaming.row_buffer import Entries, RowBuffer, filled
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
    entries: Entries,
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
def _fold(entries: Entries, size: int, people: NDArray[np.uint64], most: int) -> int:
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
