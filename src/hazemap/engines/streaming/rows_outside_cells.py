"""Rows in `NOWHERE`, kept apart: they count only for people none of whose rows lies in a cell.

A rule never sees them, so what it keeps of people with rows in cells is what it would keep without them. This
module imports numba.
"""

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.streaming.row_buffer import RowBuffer
from hazemap.jit import compiled

MOST = np.uint32(2**32 - 1)


class RowsOutsideCells:
    """How many rows in `NOWHERE` each person has, up to 2³² − 1: 4 bytes a person, with room to grow 6."""

    def __init__(self) -> None:
        self._rows = np.zeros(0, dtype=np.uint32)

    def take(self, places: NDArray[np.int64], count: int) -> None:
        """A row more for the people at these of `count` places. O(rows)."""
        if count > len(self._rows):
            more = max(count, count // 2 * 3) - len(self._rows)
            self._rows = np.concatenate([self._rows, np.zeros(more, dtype=np.uint32)])
        _take(places, self._rows)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forget everybody else."""
        self._rows = self._rows[: len(kept)]
        self._rows = self._rows[kept[: len(self._rows)]]

    def alone(self, row_buffer: RowBuffer) -> NDArray[np.uint32]:
        """Of all who have rows in `NOWHERE` and nothing on a folded row buffer, how many. O(people + row buffer)."""
        rows = self._rows.copy()
        _forget(row_buffer.place, row_buffer.size, rows)
        return rows[rows > 0]


@compiled
def _take(places: NDArray[np.int64], rows: NDArray[np.uint32]) -> None:
    for i in range(places.size):
        if rows[places[i]] < MOST:
            rows[places[i]] += np.uint32(1)


@compiled
def _forget(place: NDArray[np.uint32], size: int, rows: NDArray[np.uint32]) -> None:
    for i in range(size):
        if place[i] < rows.size:
            rows[place[i]] = 0
