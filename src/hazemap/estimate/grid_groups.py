"""What lies between the cells of a grid and everything: squares of four cells, squares of four of these, and so on.

What shares people out from the top down keeps sums over coarser cells, which a quadtree has at every level. A grid of
any number of parts has none: it would deal everybody out to a hundred thousand cells at once, and what its empty cells
gain would be taken from full ones far away. Here the blocks of a grid of grids stand in a quadtree that is not full,
and so do the parts of each block. Cells have their numbers: bits of column and row, as in `Quadtree`.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from hazemap.cells import NOWHERE, Cells, Leaves, Tree, WholeDomain
from hazemap.estimate.tree_least_squares import Measurement
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import TwoLevelGrid
from hazemap.spatial.web_mercator import spread

_NUMBERS = Quadtree.world(0)  # for what follows from numbers alone, however deep


class GroupedCells(NamedTuple):
    """Cells of a grid as cells of the tree above them, along its Z-order, and where each stood in the grid."""

    cells: Leaves
    order: Ints

    def back(self, values: Floats) -> Floats:
        """Numbers of these cells in the order of the grid."""
        found = np.empty_like(values)
        found[self.order] = values
        return found


@dataclass(frozen=True, eq=False)
class GridGroups:
    """The tree above the cells of a grid of grids: what estimation asks of a tree.

    Parts of blocks that are cut more finely lie deeper, and nothing lies in parts.

    >>> tree = GridGroups(TwoLevelGrid.regular(Quadtree.world(depth=4), 3))
    >>> cells = tree.grouped(Leaves.at_level(tree.grid, 2)).cells
    >>> tree.depth, cells.size, cells.above(1).size
    (2, 9, 4)
    """

    grid: TwoLevelGrid

    @property
    def depth(self) -> int:
        """The level of the deepest parts: at most 26, as a grid has at most 2²⁵ blocks and parts."""
        return self._block_level + int(self._deeper(self.grid.second.max()))

    @property
    def root(self) -> Cells:
        """Everything: cell 1."""
        return np.ones(1, dtype=np.uint64)

    def parent(self, cells: Cells) -> Cells:
        """The square of four that each cell is one of, or fewer at the borders."""
        return _NUMBERS.parent(cells)

    def level(self, cells: Cells) -> Ints:
        """How many squares are around each cell."""
        return _NUMBERS.level(cells)

    def span(self, cells: Cells) -> tuple[Cells, Cells]:
        """First and last number in each cell, up to where the next part begins; of one inside a part, that part's."""
        begin, end = self._within(cells)
        ends = np.append(self._first[1:], np.uint64(2 << 2 * self.depth)) - np.uint64(1)
        return self._first[begin], ends[end - 1]

    def area(self, cells: Cells) -> Floats:
        """Square metres of the parts in each cell."""
        begin, end = self._within(cells)
        return np.asarray(self._areas_so_far[end] - self._areas_so_far[begin])

    def neighbours(self, cells: Cells) -> Cells:
        """The cells of the same level that touch each, uint64[cells, 4]; `NOWHERE` where no part of the grid lies.

        Beside a block, parts of it are not where its own parts would go on, unless both are cut alike: then those that
        stand beside each other by number are nearly beside each other on the ground.
        """
        around = _NUMBERS.neighbours(cells)
        beside = np.flatnonzero(around.ravel() != NOWHERE)
        first, last = self._range(around.ravel()[beside])
        holds = first <= self._first[np.searchsorted(self._first, last, side="right") - 1]
        inside = last <= self._last[np.searchsorted(self._first, first, side="right") - 1]
        around.ravel()[beside[~(holds | inside)]] = NOWHERE
        return around

    def grouped(self, cells: Leaves) -> GroupedCells:
        """These cells of the grid in this tree: O(cells · log cells)."""
        found = self._numbers[cells.cells.astype(np.int64)]
        real = found != NOWHERE
        begins = np.zeros(len(found), dtype=np.uint64)
        begins[real] = self._range(found[real])[0]
        order = np.argsort(begins, kind="stable")
        return GroupedCells(Leaves(cast(Tree, self), found[order]), order)

    def measured(self, part: Measurement) -> Measurement:
        """What was measured of the grid, as measured of this tree."""
        if isinstance(part.cells, WholeDomain):
            return part._replace(cells=WholeDomain(cast(Tree, self)))
        cells, order = self.grouped(part.cells)
        return part._replace(cells=cells, numbers=part.numbers[order], variances=part.variances[order])

    def _within(self, cells: Cells) -> tuple[Ints, Ints]:
        """From which of the parts, and up to which, the parts in each cell are."""
        first, last = self._range(cells)
        begin = np.searchsorted(self._first, first)
        end = np.searchsorted(self._last, last, side="right")
        holder = np.searchsorted(self._first, first, side="right") - 1
        inside = end <= begin
        return np.where(inside, holder, begin), np.where(inside, holder + 1, end)

    def _range(self, cells: Cells) -> tuple[Cells, Cells]:
        """First and last number of the deepest level in each cell."""
        rise = (2 * (self.depth - self.level(cells))).astype(np.uint64)
        return cells << rise, ((cells + np.uint64(1)) << rise) - np.uint64(1)

    @property
    def _block_level(self) -> int:
        return (self.grid.first - 1).bit_length()

    @staticmethod
    def _deeper(parts: Ints) -> Ints:
        """How many levels below its block so many parts in a row are."""
        return np.ceil(np.log2(np.maximum(parts, 1))).astype(np.int64)

    @cached_property
    def _numbers(self) -> Cells:
        """The cell here of each cell of the grid, by number: of `NOWHERE`, the root, the blocks, the parts."""
        first, second = self.grid.first, self.grid.second
        row, column = np.divmod(np.arange(first * first), first)
        blocks = _number(np.full(len(row), self._block_level), row, column)
        block = np.repeat(np.arange(len(row)), second**2)
        inner = np.arange(len(block)) - (np.cumsum(second**2) - second**2)[block]
        below, (y, x) = self._deeper(second)[block], np.divmod(inner, second[block])
        parts = _number(self._block_level + below, (row[block] << below) + y, (column[block] << below) + x)
        return np.concatenate([[NOWHERE], self.root, blocks, parts])

    @cached_property
    def _parts(self) -> tuple[Cells, Ints]:
        """The parts in Z-order, and which of the grid's parts each is."""
        parts = self._numbers[len(self._numbers) - len(self.grid.leaves) :]
        order = np.argsort(self._range(parts)[0], kind="stable")
        return parts[order], order

    @cached_property
    def _first(self) -> Cells:
        return self._range(self._parts[0])[0]

    @cached_property
    def _last(self) -> Cells:
        return self._range(self._parts[0])[1]

    @cached_property
    def _areas_so_far(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.grid.area(self.grid.leaves)[self._parts[1]])])


def _number(level: Ints, row: Ints, column: Ints) -> Cells:
    """The cell of a level in a row and a column."""
    at = spread(column.astype(np.uint64)) | spread(row.astype(np.uint64)) << np.uint64(1)
    return np.asarray(np.uint64(1) << (2 * level).astype(np.uint64) | at)


def groups(cells: Leaves) -> GridGroups | None:
    """The tree above the cells of a grid; None where their own tree will do."""
    return GridGroups(cells.tree) if isinstance(cells.tree, TwoLevelGrid) and not cells.nested else None
