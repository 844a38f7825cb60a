"""Votes, which bounding leaves of a table: sorted base cells with integer weights, and their sums in other cells."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Redrawn, Tree
from hazemap.machine_code.arrays import Ints
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import BinaryPartition, PixelTree, Rectangles, TwoLevelGrid
from hazemap.tables.contribution_bounding import Bounding
from hazemap.vdaf.compiled_loops import once_compiled

PICTURED = 16
"""Sums are made where the square has at most this many pixels for each one with votes."""

LARGEST = 1 << 24
"""The most pixels: 128 MB."""


@dataclass(frozen=True, eq=False)
class Votes:
    """Base cells in ascending order, none twice, uint64; and the weight in each, int64."""

    cells: Cells
    weights: NDArray[np.int64]

    @classmethod
    def gathered(cls, cells: Cells, weights: NDArray[np.int64]) -> "Votes":
        """From cells in any order, some perhaps several times: O(n log n)."""
        unique, at = np.unique(cells, return_inverse=True)
        sums = np.zeros(len(unique), dtype=np.int64)
        np.add.at(sums, at, weights)
        return cls(unique, sums)

    def drawn(self, tree: Redrawn) -> "CellVotesIndex":
        """The same votes under a tree that is drawn over their cells; the last such tree is remembered."""
        known: CellVotesIndex | None = self.__dict__.get("_drawn")
        if known is None or (known.tree is not tree and known.tree != tree):
            known = CellVotesIndex(self, tree)
            object.__setattr__(self, "_drawn", known)
        return known

    def redrawn(self, tree: Redrawn) -> "Votes":
        """The same votes in the base cells of a tree that is drawn over theirs: O(cells); the last is remembered."""
        known: tuple[Redrawn, Votes] | None = self.__dict__.get("_redrawn")
        if known is None or (known[0] is not tree and known[0] != tree):
            known = tree, self._redrawn_anew(tree)
            object.__setattr__(self, "_redrawn", known)
        return known[1]

    def _redrawn_anew(self, tree: Redrawn) -> "Votes":
        leaves, summed = tree.leaves, self.summed(tree)
        if summed is not None and isinstance(tree, PixelTree):
            inside = summed.inside(tree.rectangles(leaves))
            sums = np.append(inside, self.weights.sum() - inside.sum())
        else:
            sums = np.zeros(len(leaves) + 1, dtype=np.int64)
            np.add.at(sums, self.drawn(tree).positions, self.weights)  # the last place, −1, is `NOWHERE`
        kept = np.flatnonzero(sums[:-1])
        nowhere = sums[-1:] > 0
        cells = np.concatenate([np.full(1, NOWHERE)[nowhere], leaves[kept]])
        return Votes(cells, np.concatenate([sums[-1:][nowhere], sums[kept]]))

    def summed(self, tree: Redrawn) -> "SummedAreaTable | None":
        """Their cumulative sums, if the tree's cells are rectangles and these are worth making; once for all trees."""
        square = square_of(tree, len(self.cells))
        if square is None:
            return None
        known: SummedAreaTable | None = self.__dict__.get("_summed")
        if known is None:
            known = SummedAreaTable.of(self.cells, self.weights, square)
            object.__setattr__(self, "_summed", known)
        return known


class VotesTable(Protocol):
    """Rows of people. Only a trust model may hold one."""

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """The exact votes of everyone in the base cells of `tree`: memory is O(cells + people), never O(rows)."""


class Groups(NamedTuple):
    """Votes in the order of the leaves that hold them: those in leaf i stand at start[i] … start[i + 1]."""

    start: Ints
    x: NDArray[np.int32]
    y: NDArray[np.int32]
    weights: Ints


@dataclass(frozen=True, eq=False)
class CellVotesIndex:
    """Positions of votes in a tree that is drawn over their base cells. Each answer is computed once.

    >>> from hazemap.spatial.rectangle_trees import BinaryPartition
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> square = Quadtree.world(depth=1)
    >>> halves = BinaryPartition.uncut(square).cut(np.array([1], dtype=np.uint64), np.array([0]), np.array([1]))
    >>> drawn = CellVotesIndex(Votes(square.children(square.root), np.array([5, 6, 7, 8])), halves)
    >>> drawn.positions, drawn.groups.weights
    (array([0, 1, 0, 1]), array([5, 7, 6, 8]))
    """

    votes: "Votes"
    tree: Redrawn

    @cached_property
    def positions(self) -> Ints:
        """The tree's leaf that holds each vote; -1 for none."""
        return self.tree.positions(self.votes.cells)

    @cached_property
    def groups(self) -> Groups:
        """The votes that lie in a leaf, with column and row of their pixels: O(votes + leaves)."""
        base = self.tree.base
        x, y = base.pixels(self.votes.cells)  # type: ignore[attr-defined]  # only trees over pixels are asked for groups
        return Groups(*once_compiled(_group_loop)(self.positions, len(self.tree.leaves), x, y, self.votes.weights))


def _group_loop(leaf, leaves, x, y, weights):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """A counting sort: stable, O(votes + leaves)."""
    start = np.zeros(leaves + 1, dtype=np.int64)
    for i in range(len(leaf)):
        if leaf[i] >= 0:
            start[leaf[i] + 1] += 1
    start = np.cumsum(start)
    size = start[leaves]
    free = start.copy()
    columns, rows, sums = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int64)
    for i in range(len(leaf)):
        if leaf[i] >= 0:
            at = free[leaf[i]]
            free[leaf[i]] += 1
            columns[at], rows[at], sums[at] = x[i], y[i], weights[i]
    return start, columns, rows, sums


@dataclass(frozen=True, eq=False)
class SummedAreaTable:
    """The votes north and west of every crossing of lines between pixels, int64[rows + 1, columns + 1] (Crow 1984).

    >>> table = SummedAreaTable(np.array([[0, 0, 0], [0, 1, 3], [0, 4, 10]]))
    >>> table.inside(Rectangles(*np.array([[1], [0], [2], [2]])))
    array([6])
    """

    cumulative: Ints

    @classmethod
    def of(cls, cells: Cells, weights: Ints, square: Quadtree) -> "SummedAreaTable":
        """From votes in base cells of a quadtree; those in `NOWHERE` are left out. O(pixels)."""
        from hazemap.spatial.pixel_kernels import columns_and_rows

        x, y = columns_and_rows(cells, square.depth)
        side = 1 << square.depth
        sums = np.zeros((side + 1, side + 1), dtype=np.int64)
        sums[y + 1, x + 1] = weights  # NOWHERE is pixel −1, −1: it falls on the corner
        sums[0, 0] = 0
        np.cumsum(sums, axis=0, out=sums)
        np.cumsum(sums, axis=1, out=sums)
        return cls(sums)

    def inside(self, asked: Rectangles) -> Ints:
        """The votes in each rectangle."""
        west, north, east, south = asked
        sums = self.cumulative
        found: Ints = sums[south, east] - sums[north, east] - sums[south, west] + sums[north, west]
        return found


def square_of(tree: Redrawn, votes: int) -> Quadtree | None:
    """The square whose pixels a tree of rectangles is made of, if sums over it are worth making for this many votes."""
    if not isinstance(tree, TwoLevelGrid) and not (isinstance(tree, BinaryPartition) and len(tree.frames) == 1):
        return None
    return tree.base if 4**tree.base.depth <= min(LARGEST, PICTURED * votes) else None
