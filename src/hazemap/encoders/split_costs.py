"""How uneven cells would be if they were cut here or there: what trees of even density choose their cuts by."""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Ints
from hazemap.cells import NOWHERE, Leaves
from hazemap.errors import InputError
from hazemap.field_types import EqualByFields, check_fields, own_array
from hazemap.jit import once_compiled
from hazemap.spatial.pixel_rectangles import Cuttable, Rectangles
from hazemap.tables.contribution_bounding import AtMostRows, Bounding, Sensitivity
from hazemap.tables.votes import VotesTable

PARTS = 16
"""A cost is a whole number of sixteenths of a vote."""

_ROOM, _LARGEST = 1 << 60, 1 << 61


@dataclass(frozen=True, eq=False)
class SplitCosts(EqualByFields):
    """The cost of cutting each cell on each of some lines: Σ |c − mean| over either side (Shaham et al. 2022, eq. 5).

    c are the votes in a pixel, empty pixels included. The cells are uncut or coarser ones of a tree of rectangles of
    pixels (`Cuttable`), none inside another; `axis` says in which direction each would be cut, int8[cells], and `lines`
    where, int64[cells, candidates], counted from the west or the north. The vector has one number a candidate, cell by
    cell, int64[cells · candidates]: sixteenths, each side rounded down.

    Sensitivity: of a side with n pixels, one vote moves Σ |c − mean| by 2(n − 1)/n at most (their Theorem 1): its own
    pixel by 1 − 1/n, and each other one by 1/n through the mean. So it moves 16 · Σ |c − mean| by less than 32; rounded
    down, by 32 at most, since |⌊a⌋ − ⌊b⌋| ≤ D for every whole D ≥ |a − b|. It lies on one side of every line of its
    own cell and in no other: 32 · candidates per vote in all. That scales with the votes a person has in the cells, as
    `privacy.parallel_composition` needs of a question about some cells alone: v_i votes in cell i move the vector by no
    more than 32 · candidates · Σ v_i in L1, and by 32² · candidates · Σ v_i² in L2².

    >>> from hazemap.spatial.binary_partition import BinaryPartition
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> tree = BinaryPartition.uncut(Quadtree.world(depth=3))
    >>> costs = SplitCosts(Leaves(tree, tree.root), np.zeros(1, dtype=np.int8), np.array([[2, 4, 6]]))
    >>> costs.size, costs.sensitivity
    (3, Sensitivity(l1=96, l2_squared=3072))
    """

    cells: Leaves
    axis: NDArray[np.int8]
    lines: Ints
    bounding: Bounding = AtMostRows(1)

    def __post_init__(self) -> None:
        check_fields(self)
        own_array(self, "axis", np.int8)
        own_array(self, "lines", np.int64)
        axis, lines = self.axis, self.lines
        if not isinstance(self.cells.tree, Cuttable):
            raise InputError("lines are drawn through the cells of a tree that can be cut; found another tree")
        if not self.cells.size or NOWHERE in self.cells.cells or self.cells.nested:
            raise InputError("cells that are to be cut are places, none inside another")
        if axis.shape != (self.cells.size,) or not np.isin(axis, (0, 1)).all():
            raise InputError("each cell is cut across (0) or down (1)")
        if lines.ndim != 2 or len(lines) != self.cells.size or not lines.size:
            raise InputError(f"each cell has equally many lines to be cut on; found {lines.shape}")
        low, high = self._along
        if (lines <= low[:, None]).any() or (lines >= high[:, None]).any():
            raise InputError("the lines that a cell may be cut on lie inside it")

    @property
    def size(self) -> int:
        """One number a candidate."""
        return self.lines.size

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person can move the vector."""
        most, candidates = 2 * PARTS * self.bounding.sensitivity.l1, self.lines.shape[1]
        return Sensitivity(candidates * most, candidates * most**2)

    def total(self, table: VotesTable) -> Ints:
        """The exact costs, from the table's votes. Only a trust model may ask, to add noise to them.

        Σ |c − mean| = 2 Σ (c − mean) over the c above the mean, so only pixels with votes are looked at:
        O(votes in the cells · candidates), after the votes were sorted into the tree's leaves (`Votes.drawn`).
        """
        tree = self._tree
        groups = table.votes(tree.base, self.bounding).drawn(tree).groups
        first, last = self.cells.spans
        begin = groups.start[np.searchsorted(tree.leaves, first)]
        end = groups.start[np.searchsorted(tree.leaves, last, "right")]
        before, behind = self._pixels
        found = once_compiled(_sides)(
            begin, end, self.axis, self.lines, before, behind, groups.x, groups.y, groups.weights
        )
        return (_cost(before, *found[:3]) + _cost(behind, *found[3:])).ravel()

    @property
    def _tree(self) -> Cuttable:
        return cast(Cuttable, self.cells.tree)  # checked above

    @cached_property
    def _rectangles(self) -> Rectangles:
        return self._tree.rectangles(self.cells.cells)

    @cached_property
    def _along(self) -> tuple[Ints, Ints]:
        """Where each cell begins and ends in the direction it is cut."""
        west, north, east, south = self._rectangles
        return np.where(self.axis == 0, west, north), np.where(self.axis == 0, east, south)

    @property
    def _pixels(self) -> tuple[Ints, Ints]:
        """How many pixels lie before and behind each line, int64[cells, candidates] each."""
        west, north, east, south = self._rectangles
        low, high = self._along
        width = np.where(self.axis == 0, south - north, east - west)[:, None]
        return (self.lines - low[:, None]) * width, (high[:, None] - self.lines) * width


def _cost(pixels: Ints, votes: Ints, above: Ints, number: Ints) -> Ints:
    """⌊32 · (above − number · votes/pixels)⌋, exactly: of the pixels with more than the mean, their votes and number.

    votes = q · pixels + r, so it is 32(above − number · q) − ⌈32 · number · r/pixels⌉. Python's integers do what 64
    bits may not hold. Costs end at 2⁶¹, so that two of them and noise fit 64 bits; that moves none further.
    """
    times = 2 * PARTS
    largest = int(pixels.max()) * int(number.max(initial=0)) * times
    if max(largest, int(votes.max(initial=0)) * times) >= _ROOM:
        pixels, votes, above, number = (array.astype(object) for array in (pixels, votes, above, number))
    whole, rest = votes // pixels, votes % pixels
    cost = times * (above - number * whole) + (-(times * number * rest) // pixels)
    return np.asarray(np.minimum(cost, _LARGEST), dtype=np.int64)


def _sides(
    begin: Ints,
    end: Ints,
    axis: NDArray[np.int8],
    lines: Ints,
    before: Ints,
    behind: Ints,
    x: NDArray[np.int32],
    y: NDArray[np.int32],
    weights: Ints,
) -> Ints:
    """Votes on a side, the votes of its pixels with more than the mean, and how many those are; then the other side.

    Cell i has the votes begin[i] … end[i]; a whole number is above the mean of `before` (or `behind`) pixels if it is
    above the mean rounded down. int64[6, cells, candidates], O(votes · candidates). The inner loops have no branch and
    begin at 0, so that the compiler takes several votes at once.
    """
    cells, candidates = lines.shape
    found = np.zeros((6, cells, candidates), np.int64)
    for i in range(cells):
        place = x[begin[i] : end[i]] if axis[i] == 0 else y[begin[i] : end[i]]
        votes = weights[begin[i] : end[i]]
        every = 0
        for k in range(votes.size):
            every += votes[k]
        for j in range(candidates):
            line = np.int32(lines[i, j])
            first = 0
            for k in range(votes.size):
                first += votes[k] if place[k] < line else 0
            mean, mean_2 = first // before[i, j], (every - first) // behind[i, j]
            sum_1, times_1, sum_2, times_2 = 0, 0, 0, 0
            for k in range(votes.size):
                here, more, more_2 = place[k] < line, votes[k] > mean, votes[k] > mean_2
                sum_1 += votes[k] if here & more else 0
                times_1 += 1 if here & more else 0
                sum_2 += votes[k] if more_2 & (not here) else 0
                times_2 += 1 if more_2 & (not here) else 0
            found[0, i, j], found[1, i, j], found[2, i, j] = first, sum_1, times_1
            found[3, i, j], found[4, i, j], found[5, i, j] = every - first, sum_2, times_2
    return found
