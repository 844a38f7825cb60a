"""Scores of the lines that could cut cells in two halves with equally many votes."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Ints
from hazemap.cells import NOWHERE, Leaves
from hazemap.errors import InputError
from hazemap.field_types import EqualByFields, check_fields, own_array
from hazemap.jit import once_compiled
from hazemap.spatial.binary_partition import ACROSS, DOWN, BinaryPartition
from hazemap.spatial.pixel_rectangles import Rectangles
from hazemap.tables.contribution_bounding import AtMostRows, Bounding
from hazemap.tables.votes import VotesTable


class Candidates(NamedTuple):
    """The lines that each cell may be cut on: those of cell i are `starts[i]` until before `starts[i + 1]`."""

    lines: Ints
    starts: Ints


@dataclass(frozen=True, eq=False)
class MedianSplitScores(EqualByFields):
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
            raise InputError("lines are drawn through the cells of a tree of cuts with one frame")
        if self.axis.shape != (self.cells.size,) or not np.isin(self.axis, (ACROSS, DOWN)).all() or self.lines < 2:
            raise InputError("each cell is cut across (0) or down (1), into one of 2 parts of it or more and the rest")
        if not self.cells.size or NOWHERE in self.cells.cells or self.cells.nested or self._edges[1].min() < 2:
            raise InputError("cells that are cut lie beside each other, and have two pixels or more in that direction")

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
        parts = np.minimum(width, self.lines)
        starts = np.concatenate([[0], np.cumsum(parts - 1)])
        part = np.arange(starts[-1]) - np.repeat(starts[:-1] - 1, parts - 1)
        lines = np.repeat(first, parts - 1) + part * np.repeat(width, parts - 1) // np.repeat(parts, parts - 1)
        return Candidates(lines, starts)

    def scores(self, table: VotesTable) -> Ints:
        """The score of every candidate: O(candidates), or where most pixels are empty O(votes + candidates)."""
        tree, (lines, starts) = self._tree, self.candidates
        votes = table.votes(tree.base, self.bounding)
        summed = votes.summed(tree)
        if summed is not None:
            edges, each = self._rectangles, np.diff(starts)
            whole, (west, north, east, south) = summed.inside(edges), (np.repeat(line, each) for line in edges)
            down = np.repeat(self.axis == DOWN, each)
            before = summed.inside(Rectangles(west, north, np.where(down, east, lines), np.where(down, lines, south)))
            return np.asarray(-np.abs(2 * before - np.repeat(whole, each)))
        from hazemap.spatial.pixel_kernels import columns_and_rows

        x, y = columns_and_rows(votes.cells, tree.base.depth)
        first, width = self._edges
        scores: Ints = once_compiled(_scores_loop)(
            *(self.cells.locate(tree.leaves), votes.drawn(tree).positions, x, y, votes.weights),
            *(self.axis, first, width, np.minimum(width, self.lines), starts),
        )
        return scores

    @property
    def _tree(self) -> BinaryPartition:
        tree = self.cells.tree
        assert isinstance(tree, BinaryPartition)  # noqa: S101 - checked above
        return tree

    @cached_property
    def _rectangles(self) -> Rectangles:
        return self._tree.rectangles(self.cells.cells)

    @cached_property
    def _edges(self) -> tuple[Ints, Ints]:
        """Where each cell begins in this direction, and how many pixels it has."""
        west, north, east, south = self._rectangles
        down = self.axis == DOWN
        return np.where(down, north, west), np.where(down, south - north, east - west)


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
