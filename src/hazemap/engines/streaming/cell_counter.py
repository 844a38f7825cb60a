"""Counting cells as they come: memory is bounded by the cells, never by what is counted.

This module imports numba.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Tree
from hazemap.tables.votes import Votes
from hazemap.values.boolean_attribute import BinaryAttribute
from hazemap.values.histogram_bins import OneLevelTree
from hazemap.vdaf.compiled_loops import compiled

DENSE = 1 << 25
"""So many counters, of all threads together, may stand for every base cell that a tree can have: 256 MiB."""

FEW = 1 << 20
"""So many cells may wait before they are added up."""


class CellCounter(Protocol):
    """Counters of base cells; `NOWHERE` has one too."""

    def count(self, cells: Cells) -> None:
        """One more for each of these cells."""

    def add(self, cells: Cells, weights: NDArray[np.int64]) -> None:
        """So much more for each of these cells."""

    def votes(self) -> Votes:
        """All that was counted, without zeros."""


def base_cells(tree: Tree) -> tuple[int, int]:
    """The first number that may stand for a base cell of a tree, and how many there are from there to the last.

    O(cells of the root), which are listed; of trees whose base cells are numbered from 1 none is.
    """
    if isinstance(tree, OneLevelTree):
        return 1, tree.size
    if isinstance(tree, BinaryAttribute):
        inner, size = base_cells(tree.tree)
        return inner << int(tree.shift), size << int(tree.shift)
    first, last = tree.span(tree.root)
    return int(first.min()), int(last.max()) - int(first.min()) + 1


def counters_for(tree: Tree, threads: int) -> list[CellCounter]:
    """Counters for each thread, that suit the number of base cells that the tree can have."""
    first, size = base_cells(tree)
    dense = size * threads <= DENSE
    return [DenseCellCounter(first, size) if dense else SparseCellCounter() for _ in range(threads)]


def gathered(tallies: list[CellCounter]) -> Votes:
    """The votes of several tallies together."""
    each = [tally.votes() for tally in tallies]
    return Votes.gathered(np.concatenate([v.cells for v in each]), np.concatenate([v.weights for v in each]))


class DenseCellCounter:
    """A counter for every number from the first to the last base cell."""

    def __init__(self, first: int, size: int) -> None:
        self._first = np.uint64(first)
        self._counters = np.zeros(size + 1, dtype=np.int64)  # the first counter is that of NOWHERE

    def count(self, cells: Cells) -> None:
        """One more for each of these cells."""
        _count(cells, self._first, self._counters)

    def add(self, cells: Cells, weights: NDArray[np.int64]) -> None:
        """So much more for each of these cells."""
        _add(cells, weights, self._first, self._counters)

    def votes(self) -> Votes:
        """All that was counted, without zeros."""
        at = np.flatnonzero(self._counters)
        cells = np.where(at == 0, NOWHERE, at.astype(np.uint64) + (self._first - np.uint64(1)))
        return Votes(cells, self._counters[at])


class SparseCellCounter:
    """Sorted cells with their counts, merged whenever as many are waiting."""

    def __init__(self) -> None:
        self._waiting: list[Votes] = []
        self._many = 0
        self._merged = Votes(np.empty(0, np.uint64), np.empty(0, np.int64))

    def count(self, cells: Cells) -> None:
        """One more for each of these cells."""
        self._wait(Votes(*np.unique(cells, return_counts=True)))

    def add(self, cells: Cells, weights: NDArray[np.int64]) -> None:
        """So much more for each of these cells."""
        self._wait(Votes.gathered(cells, weights))

    def votes(self) -> Votes:
        """All that was counted, without zeros."""
        self._merge()
        return self._merged

    def _wait(self, votes: Votes) -> None:
        self._waiting.append(votes)
        self._many += len(votes.cells)
        if self._many > max(FEW, len(self._merged.cells)):
            self._merge()

    def _merge(self) -> None:
        each = [self._merged, *self._waiting]
        self._waiting, self._many = [], 0
        self._merged = Votes.gathered(
            np.concatenate([v.cells for v in each]), np.concatenate([v.weights for v in each])
        )


@compiled
def _count(cells: Cells, first: np.uint64, counters: NDArray[np.int64]) -> None:
    for i in range(cells.size):
        counters[_at(cells[i], first, counters.size)] += 1


@compiled
def _add(cells: Cells, weights: NDArray[np.int64], first: np.uint64, counters: NDArray[np.int64]) -> None:
    for i in range(cells.size):
        counters[_at(cells[i], first, counters.size)] += weights[i]


@compiled
def _at(cell: np.uint64, first: np.uint64, size: int) -> int:
    if cell == 0:
        return 0
    if cell < first or cell - first >= np.uint64(size - 1):
        raise ValueError("a tree gave a base cell outside the span of its root")
    return int(cell - first) + 1
