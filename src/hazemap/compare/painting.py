"""A cell map as a picture: every cell spread evenly over the pixels that it owns."""

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import CellMap
from hazemap.cells import Leaves, Tree
from hazemap.compare.maps import middles, places, square
from hazemap.domains import Quadtree

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]


def painted(made: CellMap, tree: Quadtree) -> tuple[Floats, Floats]:
    """People in each pixel, float64[side, side]: as the map shows them, and as the unbiased numbers have them.

    Exact: a cell's number is divided by its pixels, so a picture sums to what the cells with a pixel sum to. Pixels in
    no cell are 0. O(pixels + cells · log cells).
    """
    owner = owners(made.cells, tree)
    pixels = np.bincount(owner.ravel() + 1, minlength=made.cells.size + 1)[1:]
    each = np.maximum(pixels, 1)
    shown, unbiased = (np.append(numbers / each, 0.0)[owner] for numbers in (made.values, made.unbiased))
    return shown, unbiased


def owners(cells: Leaves, tree: Quadtree) -> Whole:
    """The position of the deepest cell that holds each pixel, int64[side, side]; −1 for none.

    Cells of the same quadtree own runs of pixels in Z-order, so only where runs begin is looked up; cells of a tree
    that is drawn over this one are found by what it makes of the pixels; those of any other by the pixels' middles.
    """
    of = cells.tree
    if isinstance(of, Quadtree) and square(of) == square(tree) and of.depth <= tree.depth:
        return _in_order(cells, tree)[places(tree.depth)]
    grid = tree.grid(tree.depth)
    base = _drawn_over(of, tree)
    if base is None:
        base = of.cell_at(middles(tree, grid.ravel()), of.depth)
    return cells.locate(base).reshape(grid.shape)


def _drawn_over(of: Tree, tree: Quadtree) -> NDArray[np.uint64] | None:
    """The base cell of a redrawn tree for each pixel, row by row; nothing if it is not drawn over this tree."""
    redrawn = getattr(of, "of_base", None)
    base = getattr(of, "base", None)
    if redrawn is None or not isinstance(base, Quadtree) or square(base) != square(tree):
        return None
    if base.depth > tree.depth:  # several base cells in a pixel: the one in its middle, as for any other tree
        return None
    pixels = tree.grid(tree.depth).ravel()
    found: NDArray[np.uint64] = redrawn(pixels >> np.uint64(2 * (tree.depth - base.depth)))
    return found


def _in_order(cells: Leaves, tree: Quadtree) -> Whole:
    """The owner of each pixel in Z-order, int64[4^depth]; the cells' tree is of the same square, and no deeper."""
    size, shift = 4**tree.depth, 2 * (tree.depth - cells.tree.depth)
    first, last = cells.spans
    here = np.flatnonzero(first > 0)
    start = 4**cells.tree.depth  # the first base cell
    begin = (first[here].astype(np.int64) - start) << shift
    end = (last[here].astype(np.int64) - start + 1) << shift
    if (begin[1:] >= end[:-1]).all():  # one after the other: the usual case
        bounds = np.stack([begin, end], axis=1).ravel()
        whose = np.stack([np.full(len(here), -1), here], axis=1).ravel()
        return np.repeat(np.append(whose, -1), np.diff(bounds, prepend=0, append=size))
    starts = np.unique(np.concatenate([[0], begin, end]))
    starts = starts[starts < size]
    whose = cells.locate((starts >> shift).astype(np.uint64) + np.uint64(start))
    return np.repeat(whose, np.diff(starts, append=size))
