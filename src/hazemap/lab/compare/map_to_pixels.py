"""Rasterises a cell map: every cell is spread evenly over the pixels that it owns."""

from collections.abc import Sequence

import numpy as np

from hazemap.cellmap import CellMap
from hazemap.cells import Leaves, Redrawn
from hazemap.estimate import shown
from hazemap.lab.compare.ground_truth_maps import middles, places, square
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.spatial.quadtree import Quadtree


def painted(made: CellMap, tree: Quadtree) -> tuple[Floats, Floats]:
    """People in each pixel, float64[side, side]: as the map shows them, and as the unbiased numbers have them.

    What a cell shows is spread evenly over its pixels, or (in the most plausible map) along the densities around it.

    Exact: a cell's number is divided by its pixels, so a picture sums to what the cells with a pixel sum to. Pixels in
    no cell are 0. O(pixels + cells · log cells).
    """
    fine = shown(made)
    if fine is made:
        best, unbiased = _spread(made.cells, [made.values, made.unbiased], tree)
        return best, unbiased
    return _spread(fine.cells, [fine.values], tree)[0], _spread(made.cells, [made.unbiased], tree)[0]


def _spread(cells: Leaves, numbers: Sequence[Floats], tree: Quadtree) -> list[Floats]:
    """Numbers of cells as pictures, each spread evenly over its pixels."""
    owner = owners(cells, tree)
    each = np.maximum(np.bincount(owner.ravel() + 1, minlength=cells.size + 1)[1:], 1)
    return [np.append(number / each, 0.0)[owner] for number in numbers]


def owners(cells: Leaves, tree: Quadtree) -> Ints:
    """The position of the deepest cell that holds each pixel, int64[side, side]; −1 for none.

    Cells of the same quadtree own runs of pixels in Z-order, so only where runs begin is looked up; cells of a tree
    that is drawn over this one are found by what it makes of the pixels; those of any other by the pixels' middles.
    """
    of = cells.tree
    if isinstance(of, Quadtree) and _as_fine(of, tree):
        return _in_order(cells, tree)[places(tree.depth)]
    pixels = tree.grid(tree.depth)
    if isinstance(of, Redrawn) and isinstance(of.base, Quadtree) and _as_fine(of.base, tree):
        rise = np.uint64(2 * (tree.depth - of.base.depth))
        leaf = of.positions(pixels.ravel() >> rise)
        return np.append(cells.locate(of.leaves), -1)[leaf].reshape(pixels.shape)
    return cells.locate(of.cell_at(middles(tree, pixels.ravel()), of.depth)).reshape(pixels.shape)


def _as_fine(of: Quadtree, tree: Quadtree) -> bool:
    """Whether each pixel lies in one base cell of another quadtree."""
    return square(of) == square(tree) and of.depth <= tree.depth


def _in_order(cells: Leaves, tree: Quadtree) -> Ints:
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
