"""Scores of every line that a cell may be cut on, by how even its two sides would be."""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Ints
from hazemap.cells import NOWHERE, Leaves
from hazemap.encoders.split_scores import PARTS, Candidates, CellSplits, cost_of_side
from hazemap.errors import InputError
from hazemap.field_types import check_fields, own_array
from hazemap.jit import once_compiled
from hazemap.spatial.rectangle_tree import Cuttable
from hazemap.tables.contribution_bounding import AtMostRows, Bounding
from hazemap.tables.votes import VotesTable


@dataclass(frozen=True, eq=False)
class EvenSplitScores(CellSplits):
    """For each cell, one of all the lines that cut it, by the cost of cutting there (Shaham et al. 2022, 4.1.1).

    The cells are uncut or coarser ones of a tree of rectangles of pixels (`Cuttable`), none inside another, at least
    two pixels wide along `axis`, which is 0 for a cell to be cut west from east and 1 for north from south,
    int8[cells]. Candidates are all lines between its pixels; of a cell wider than `lines` pixels, those nearest before
    equal parts of it, `lines` − 1 of them. A score is −cost in sixteenths, the cost that `SplitCosts` measures: Σ |c −
    mean| over either side, each rounded down.

    Privacy: a vote moves each score of its cell by 32 at most (see `SplitCosts`), down or up, and no score of any
    other cell. The paper adds noise to all U costs and divides the budget by U; a choice needs not: it tells one line,
    and costs ε whatever their number, if coins are of scale 2 · 32 k/ε where a person has k votes. One with x of their
    k votes in a cell moves its scores by 32 x, so they lose ε x/k there, in ρ = ε²/2 no more than ρ (x/k)². Cells are
    disjoint, so all of them together cost ε (or ρ), and it is a question about its cells alone in the sense of
    `privacy.parallel_composition`.

    >>> from hazemap.spatial.binary_partition import BinaryPartition
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> tree = BinaryPartition.uncut(Quadtree.world(depth=3))
    >>> scores = EvenSplitScores(Leaves(tree, tree.root), axis=np.array([0]))
    >>> scores.candidates.lines, scores.sensitivity
    (array([1, 2, 3, 4, 5, 6, 7]), 32)
    """

    cells: Leaves
    axis: NDArray[np.int8]
    bounding: Bounding = AtMostRows(1)
    lines: int = 1 << 16

    def __post_init__(self) -> None:
        check_fields(self)
        own_array(self, "axis", np.int8)
        if not isinstance(self.cells.tree, Cuttable):
            raise InputError("split scores need a tree whose cells can be cut; found another tree")
        if not self.cells.size or NOWHERE in self.cells.cells or self.cells.nested:
            raise InputError("cells to cut must be places, none inside another")
        if self.axis.shape != (self.cells.size,) or not np.isin(self.axis, (0, 1)).all() or self.lines < 2:
            raise InputError("each cell must be cut across (0) or down (1), on one of several lines")
        if self._width.min() < 2:
            raise InputError("cells to cut must be at least two pixels wide in that direction")

    @property
    def choices(self) -> int:
        """One line a cell."""
        return self.cells.size

    @property
    def sensitivity(self) -> int:
        """How far one person can move the scores of a cell: all their votes may lie in it."""
        return 2 * PARTS * self.bounding.sensitivity.l1

    @cached_property
    def candidates(self) -> Candidates:
        """The lines of each cell, public: counted from the west or the north of the square."""
        return Candidates.between(self.along[0], self._width, self.lines)

    def scores(self, table: VotesTable) -> Ints:
        """The score of every candidate, from the table's votes. Only a trust model may ask, to choose by them.

        O((votes + candidates) · log(distinct votes)), after the votes were sorted into the tree's leaves.
        """
        tree, (lines, starts) = cast(Cuttable, self.cells.tree), self.candidates
        groups = table.votes(tree.base, self.bounding).drawn(tree).groups
        first, last = self.cells.spans
        begin = groups.start[np.searchsorted(tree.leaves, first)]
        end = groups.start[np.searchsorted(tree.leaves, last, "right")]
        west, north, east, south = self.rectangles
        across = np.where(self.axis == 0, south - north, east - west)
        each, (low, high) = np.diff(starts), self.along
        before = (lines - np.repeat(low, each)) * np.repeat(across, each)
        behind = (np.repeat(high, each) - lines) * np.repeat(across, each)
        found = once_compiled(_all_sides)(
            begin, end, self.axis, lines, starts, before, behind, groups.x, groups.y, groups.weights
        )
        return -(cost_of_side(before, *found[:3]) + cost_of_side(behind, *found[3:]))

    @property
    def _width(self) -> Ints:
        low, high = self.along
        return high - low


def _all_sides(  # type: ignore[no-untyped-def]
    begin, end, axis, lines, starts, before, behind, x, y, weights
):  # pragma: no cover - compiled
    """Votes on a side, the votes of its pixels with more than the mean, and how many those are; then the other side.

    int64[6, candidates]. Line after line the pixels before it go over from one side to the other. Two sums and two
    numbers are kept by the rank of a pixel's votes among the distinct ones of its cell, as trees of partial sums
    (Fenwick 1994), so that those above any mean are found in logarithmic time.
    """
    found = np.zeros((6, len(lines)), np.int64)
    for i in range(len(begin)):
        place = x[begin[i] : end[i]] if axis[i] == 0 else y[begin[i] : end[i]]
        votes = weights[begin[i] : end[i]]
        low, high = starts[i], starts[i + 1]
        order = np.argsort(place, kind="mergesort")
        ordered = np.sort(votes)
        levels = 0
        for k in range(votes.size):
            if k == 0 or ordered[k] != ordered[k - 1]:
                ordered[levels] = ordered[k]
                levels += 1
        distinct = ordered[:levels]
        rank = np.searchsorted(distinct, votes)
        sums, numbers = np.zeros((2, levels + 1), np.int64), np.zeros((2, levels + 1), np.int64)
        every, first, gone = 0, 0, 0
        for k in range(votes.size):
            every += votes[k]
            at = levels - rank[k]  # the largest votes first, so that those above a mean are a beginning
            while at <= levels:
                sums[1, at] += votes[k]
                numbers[1, at] += 1
                at += at & -at
        for j in range(low, high):
            while gone < votes.size and place[order[gone]] < lines[j]:
                k = order[gone]
                first += votes[k]
                at = levels - rank[k]
                while at <= levels:
                    sums[0, at] += votes[k]
                    numbers[0, at] += 1
                    sums[1, at] -= votes[k]
                    numbers[1, at] -= 1
                    at += at & -at
                gone += 1
            for side in range(2):
                total = first if side == 0 else every - first
                mean = total // (before[j] if side == 0 else behind[j])
                at = levels - np.searchsorted(distinct, mean, "right")
                above, number = 0, 0
                while at > 0:
                    above += sums[side, at]
                    number += numbers[side, at]
                    at -= at & -at
                found[3 * side, j], found[3 * side + 1, j], found[3 * side + 2, j] = total, above, number
    return found
