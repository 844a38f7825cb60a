"""Scores of splits: of cells here or there, by how uneven the parts are or how votes divide, and of a row of cells.

Among them the scores of every line that a cell may be cut on, by how even its two sides would be.
"""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Leaves, Partition
from hazemap.errors import InputError
from hazemap.field_types import EqualByFields, check_fields, own_array
from hazemap.machine_code.arrays import Ints
from hazemap.spatial.rectangle_trees import ACROSS, DOWN, BinaryPartition, Cuttable, Rectangles
from hazemap.tables.contribution_bounding import AtMostRows, Bounding, Sensitivity
from hazemap.tables.votes import VotesTable
from hazemap.vdaf.compiled_loops import once_compiled

PARTS = 16
"""A cost is a whole number of sixteenths of a vote."""

_ROOM, _LARGEST = 1 << 60, 1 << 61


class CellSplits(EqualByFields):
    """Cells of a tree of rectangles, each to be cut west from east (`axis` 0) or north from south (1)."""

    cells: Leaves
    axis: NDArray[np.int8]

    @cached_property
    def rectangles(self) -> Rectangles:
        """The pixels of each cell."""
        return cast(Cuttable, self.cells.tree).rectangles(self.cells.cells)  # each class checks its tree

    @cached_property
    def along(self) -> tuple[Ints, Ints]:
        """Where each cell begins and ends in the direction in which it is cut."""
        west, north, east, south = self.rectangles
        return np.where(self.axis == ACROSS, west, north), np.where(self.axis == ACROSS, east, south)


@dataclass(frozen=True, eq=False)
class SplitCosts(CellSplits):
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

    >>> from hazemap.spatial.rectangle_trees import BinaryPartition
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
            raise InputError("split scores need a tree whose cells can be cut; found another tree")
        if not self.cells.size or NOWHERE in self.cells.cells or self.cells.nested:
            raise InputError("cells to cut must be places, none inside another")
        if axis.shape != (self.cells.size,) or not np.isin(axis, (0, 1)).all():
            raise InputError("each cell must be cut across (0) or down (1)")
        if lines.ndim != 2 or len(lines) != self.cells.size or not lines.size:
            raise InputError(f"each cell needs the same number of candidate lines; found {lines.shape}")
        low, high = self.along
        if (lines <= low[:, None]).any() or (lines >= high[:, None]).any():
            raise InputError("the candidate lines of a cell must lie inside it")

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
        tree = cast(Cuttable, self.cells.tree)
        groups = table.votes(tree.base, self.bounding).drawn(tree).groups
        first, last = self.cells.spans
        begin = groups.start[np.searchsorted(tree.leaves, first)]
        end = groups.start[np.searchsorted(tree.leaves, last, "right")]
        before, behind = self._pixels
        found = once_compiled(_sides)(
            begin, end, self.axis, self.lines, before, behind, groups.x, groups.y, groups.weights
        )
        return (cost_of_side(before, *found[:3]) + cost_of_side(behind, *found[3:])).ravel()

    @property
    def _pixels(self) -> tuple[Ints, Ints]:
        """How many pixels lie before and behind each line, int64[cells, candidates] each."""
        west, north, east, south = self.rectangles
        low, high = self.along
        width = np.where(self.axis == 0, south - north, east - west)[:, None]
        return (self.lines - low[:, None]) * width, (high[:, None] - self.lines) * width


def cost_of_side(pixels: Ints, votes: Ints, above: Ints, number: Ints) -> Ints:
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


class Candidates(NamedTuple):
    """The lines that each cell may be cut on: those of cell i are `starts[i]` until before `starts[i + 1]`."""

    lines: Ints
    starts: Ints

    @classmethod
    def between(cls, first: Ints, width: Ints, most: int) -> "Candidates":
        """All lines between the pixels of each cell; of a wider one than `most`, those before so many equal parts."""
        parts = np.minimum(width, most)
        starts = np.concatenate([[0], np.cumsum(parts - 1)])
        part = np.arange(starts[-1]) - np.repeat(starts[:-1] - 1, parts - 1)
        lines = np.repeat(first, parts - 1) + part * np.repeat(width, parts - 1) // np.repeat(parts, parts - 1)
        return cls(lines, starts)


@dataclass(frozen=True, eq=False)
class MedianSplitScores(CellSplits):
    """For every cell of a tree of cuts, one line between its pixels with half of its votes on either side.

    `axis` is 0 for each cell to be cut west from east, 1 for north from south; int8[cells]. Candidates are all lines
    between pixels inside the cell; of a cell wider than `lines` pixels, those nearest before equal parts of it,
    `lines` − 1 of them. The score of a line is −|2 · before − all|: −|votes before it − votes behind it|, an integer.

    Privacy: a vote in a cell moves each score of that cell by one at most, and no score of any other. So a person with
    x of their k votes in a cell sees its choice, made with ε and sensitivity k, as made with ε x/k and sensitivity x,
    which is the same choice: they lose ε x/k there, in ρ = ε²/2 no more than ρ (x/k)². Cells are disjoint, so all
    cells together cost ε (or ρ), and each is chosen in with all of it; and it is a question about its cells alone in
    the sense of `privacy.parallel_composition`.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> tree = BinaryPartition.uncut(Quadtree.world(depth=3))
    >>> MedianSplitScores(Leaves(tree, tree.root), axis=np.array([0])).candidates
    Candidates(lines=array([1, 2, 3, 4, 5, 6, 7]), starts=array([0, 7]))
    """

    cells: Leaves
    axis: NDArray[np.int8]
    bounding: Bounding = AtMostRows(1)
    lines: int = 1 << 10

    def __post_init__(self) -> None:
        check_fields(self)
        own_array(self, "axis", np.int8)
        if not isinstance(self.cells.tree, BinaryPartition) or len(self.cells.tree.frames) != 1:
            raise InputError("split scores need a tree of cuts with one frame")
        if self.axis.shape != (self.cells.size,) or not np.isin(self.axis, (ACROSS, DOWN)).all() or self.lines < 2:
            raise InputError(
                "each cell must be cut across (0) or down (1), into one of 2 parts of it or more and the rest"
            )
        if not self.cells.size or NOWHERE in self.cells.cells or self.cells.nested or self._edges[1].min() < 2:
            raise InputError("cells to cut must be adjacent, and at least two pixels wide in that direction")

    @property
    def choices(self) -> int:
        """One line a cell."""
        return self.cells.size

    @property
    def sensitivity(self) -> int:
        """How far one person can move the scores of a cell: all their votes may lie in it."""
        return self.bounding.sensitivity.l1

    @cached_property
    def candidates(self) -> Candidates:
        """The lines of each cell, public: counted from the west or the north of the square."""
        first, width = self._edges
        return Candidates.between(first, width, self.lines)

    def scores(self, table: VotesTable) -> Ints:
        """The score of every candidate: O(candidates), or where most pixels are empty O(votes + candidates)."""
        tree, (lines, starts) = cast(BinaryPartition, self.cells.tree), self.candidates
        votes = table.votes(tree.base, self.bounding)
        summed = votes.summed(tree)
        if summed is not None:
            edges, each = self.rectangles, np.diff(starts)
            whole, (west, north, east, south) = summed.inside(edges), (np.repeat(line, each) for line in edges)
            down = np.repeat(self.axis == DOWN, each)
            before = summed.inside(Rectangles(west, north, np.where(down, east, lines), np.where(down, lines, south)))
            return np.asarray(-np.abs(2 * before - np.repeat(whole, each)))
        from hazemap.spatial.pixel_kernels import columns_and_rows

        x, y = columns_and_rows(votes.cells, tree.base.depth)
        first, width = self._edges
        scores: Ints = once_compiled(_scores_loop)(
            self.cells.locate(tree.leaves),
            votes.drawn(tree).positions,
            x,
            y,
            votes.weights,
            self.axis,
            first,
            width,
            np.minimum(width, self.lines),
            starts,
        )
        return scores

    @property
    def _edges(self) -> tuple[Ints, Ints]:
        """Where each cell begins in this direction, and how many pixels it has."""
        low, high = self.along
        return low, high - low


def _scores_loop(  # type: ignore[no-untyped-def]
    cell_of_leaf, leaf, x, y, weight, axis, first, width, parts, starts
):  # pragma: no cover - compiled
    """Part j of a cell begins at ⌊j · width/parts⌋, so pixel v is in part ⌊((v + 1) · parts − 1)/width⌋."""
    n = len(first)
    scores, all_votes = np.zeros(starts[n], dtype=np.int64), np.zeros(n, dtype=np.int64)
    for i in range(len(leaf)):
        cell = cell_of_leaf[leaf[i]] if leaf[i] >= 0 else -1
        if cell < 0:
            continue
        all_votes[cell] += weight[i]
        place = y[i] if axis[cell] else x[i]
        part = ((place - first[cell] + 1) * parts[cell] - 1) // width[cell]
        if part < parts[cell] - 1:
            scores[starts[cell] + part] += weight[i]
    for cell in range(n):
        before = 0
        for j in range(starts[cell], starts[cell + 1]):
            before += scores[j]
            scores[j] = -abs(2 * before - all_votes[cell])
    return scores


@dataclass(frozen=True)
class QuantileScores:
    """For each rank, a cut between the cells of a partition with that part of all votes before it.

    Candidates are the `size + 1` cuts 0 … size in the order of the partition (medians of a kd-tree, the
    quantiles of a value). The score of a cut is −|before − rank · all|, times the denominator of the rank
    so that it is an integer.

    >>> QuantileScores.__name__
    'QuantileScores'
    """

    cells: Partition
    ranks: tuple[Fraction, ...]
    bounding: Bounding = AtMostRows(1)

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.ranks or not all(0 <= rank <= 1 for rank in self.ranks):
            raise InputError("ranks must be between 0 and 1, such as 1/2 for the median")

    @property
    def choices(self) -> int:
        """One cut a rank."""
        return len(self.ranks)

    def sensitivity(self, rank: Fraction) -> int:
        """How far one person can move a score: a vote before the cut moves it by 1 − rank, one behind by rank."""
        return int(self.bounding.sensitivity.l1 * max(rank, 1 - rank) * rank.denominator)

    def scores(self, table: VotesTable, rank: Fraction) -> NDArray[np.int64]:
        """The score of every cut, int64[size + 1]."""
        votes = table.votes(self.cells.tree, self.bounding)
        before = np.concatenate([[0], np.cumsum(self.cells.total(votes.cells, votes.weights))])
        scores: NDArray[np.int64] = -np.abs(rank.denominator * before - rank.numerator * before[-1])
        return scores


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

    >>> from hazemap.spatial.rectangle_trees import BinaryPartition
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
