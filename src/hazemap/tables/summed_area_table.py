"""A table of cumulative sums over all pixels of a square: the votes of any rectangle in four look-ups."""

from dataclasses import dataclass

import numpy as np

from hazemap.arrays import Ints
from hazemap.cells import Cells, Redrawn
from hazemap.errors import InputError
from hazemap.spatial.binary_partition import BinaryPartition
from hazemap.spatial.pixel_rectangles import Rectangles
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.two_level_grid import TwoLevelGrid

PICTURED = 16
"""Sums are made where the square has at most so many times as many pixels as have votes."""

LARGEST = 1 << 24
"""The most pixels: 128 MB."""


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
    """The square whose pixels a tree of rectangles is made of, if sums over it are worth making for so many votes."""
    if not isinstance(tree, TwoLevelGrid) and not (isinstance(tree, BinaryPartition) and len(tree.frames) == 1):
        return None
    return tree.base if 4**tree.base.depth <= min(LARGEST, PICTURED * votes) else None


def rectangles_of(tree: Redrawn, cells: Cells) -> Rectangles:
    """The pixels of some cells of a tree of rectangles."""
    if not isinstance(tree, TwoLevelGrid | BinaryPartition):
        raise InputError("only grids and cuts are made of rectangles")
    return tree.rectangles(cells)
