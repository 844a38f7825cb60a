"""A grid, and in each of its blocks a grid as fine as the people there bear (Qardaji, Yang and Li 2013)."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, isqrt, sqrt

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.algorithms.count_queries import laplace_epsilon, with_nowhere
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import MOST_CELLS, Leaves, Tree
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate import consistent, measurements, read
from hazemap.queries import Answer, Prices, Query, Question, Rounds
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.two_level_grid import TwoLevelGrid
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, Bounding


@dataclass(frozen=True)
class AdaptiveGrid:
    """AG: m₁ × m₁ blocks, m₁ = max(10, √(Nε/10)/4); then each in m₂ × m₂ parts, m₂ = √(n'ε₂/5), n' its noisy count.

    Blocks cost the part `blocks` of the budget (α, one half), their parts the rest (ε₂). For any noise an ε is read as
    √2/σ, what it is for Laplace noise of standard deviation σ. N is `people` where it is public, as it is among
    devices; otherwise `share_of_number` of the budget buys it. Grids are real ones, not levels of a quadtree; `tree`
    says which square is cut, and no cell is finer than its base cells.

    The published estimate is the weighted average of a block and its parts, with what is missing shared out evenly:
    exact least squares for two levels. It is the best guess with `Reading.UNBIASED`. As the noise of a block decides
    how it is cut, numbers with intervals come from the parts alone.

    >>> AdaptiveGrid(Quadtree.world(depth=10)).blocks
    Fraction(1, 2)
    """

    tree: Tree
    bounding: Bounding = AtMostRows(1)
    people: int | None = None
    share_of_number: Fraction = Fraction(1, 50)
    blocks: Fraction = Fraction(1, 2)
    people_a_cell: int = 10
    reading: Reading = Reading.NONNEGATIVE

    def __post_init__(self) -> None:
        if not 0 < self.blocks < 1 or self.people_a_cell < 1:
            raise InputError("an adaptive grid gives blocks a part of the budget between 0 and 1, and people to a cell")
        self._square()
        if isinstance(self.bounding, AtMostCells) and self.bounding.most > 1:
            raise InputError(
                "a person's distinct cells cannot be chosen before the cells of an adaptive grid are known: bound rows "
                "(rows:K) or give each person one vote"
            )

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        asked = (Learned.PEOPLE,) if self.people is None else ()
        return counted(*asked, Learned.FINENESS, people=self.people)

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """The number of people if it is not public, then the blocks, then their parts."""
        left, people = Fraction(1), float(self.people or 0)
        root = Counts(Leaves(self.tree, self.tree.root), self.bounding)
        if self.people is None:
            number = yield Query(root, self.share_of_number)
            people, left = float(number.sums.sum()) / self.bounding.unit, 1 - self.share_of_number
        grid = self._grid(people * self._epsilon(prices, left))
        counts = yield Query(Counts(Leaves.at_level(grid, 1), self.bounding), self.blocks * left)
        rest = (1 - self.blocks) * left
        grid = self._cut(grid, counts.sums / self.bounding.unit * self._epsilon(prices, rest))
        cells = with_nowhere(Leaves.at_level(grid, 2), self.bounding)
        second = Query(Counts(cells, self.bounding), rest)
        # The same blocks, as cells of the tree that has their parts.
        first = Query(Counts(Leaves.at_level(grid, 1), self.bounding), self.blocks * left)
        return self._read([(first, counts), (second, (yield second))], cells)

    def _square(self) -> Quadtree:
        if not isinstance(self.tree, Quadtree):
            raise InputError("an adaptive grid cuts a square into rectangles of its own: choose quadtree cells")
        return self.tree

    def _epsilon(self, prices: Prices, share: Fraction) -> float:
        """What a share is in Laplace noise; no more than makes two cells for every person."""
        return min(laplace_epsilon(prices, self.tree, self.bounding, share), self.people_a_cell)

    def _grid(self, signal: float) -> TwoLevelGrid:
        """The blocks, given Nε."""
        wanted = max(10, ceil(sqrt(max(signal, 0.0) / self.people_a_cell) / 4))
        return TwoLevelGrid.regular(self._square(), min(wanted, 1 << self.tree.depth))

    def _cut(self, grid: TwoLevelGrid, signals: NDArray[np.float64]) -> TwoLevelGrid:
        """The parts, given n'ε₂ of each block: c₂ = c/2 people a cell."""
        most = (1 << self.tree.depth) // grid.first
        second = np.ceil(np.sqrt(np.maximum(signals, 0) / (self.people_a_cell / 2))).astype(np.int64)
        second = np.clip(second, 1, most)
        while (second**2).sum() > MOST_CELLS:
            second = np.maximum(second * 3 // 4, 1)
        return grid.cut(second)

    def _read(self, transcript: list[tuple[Question, Answer]], cells: Leaves) -> CellMap:
        """The published estimate beside the unbiased numbers, or one without minus signs."""
        made = read(transcript, cells, self.reading)
        if self.reading is not Reading.UNBIASED:
            return made
        return replace(made, values=consistent(measurements(transcript, cells), cells).numbers)


MOST_SIDE = isqrt(MOST_CELLS)


@dataclass(frozen=True)
class UniformGrid:
    """UG: m × m equal cells, m = √(N'ε/10), N' a noisy number of people that `share_of_number` of the budget buys.

    For any noise, ε is read as √2/σ, what it is for Laplace noise of standard deviation σ. The grid is a real one, not
    a level of the quadtree (`FittedLevel` is): `tree` says which square is cut, and no cell is finer than its base
    cells.

    >>> UniformGrid(Quadtree.world(depth=8)).people_a_cell
    10
    """

    tree: Tree
    bounding: Bounding = AtMostRows(1)
    share_of_number: Fraction = Fraction(1, 50)
    people_a_cell: int = 10
    reading: Reading = Reading.NONNEGATIVE

    def __post_init__(self) -> None:
        self._square()

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return counted(Learned.PEOPLE, Learned.FINENESS)

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """Two queries: the number of people, then the grid."""
        number = Query(Counts(Leaves(self.tree, self.tree.root), self.bounding), self.share_of_number)
        first = yield number
        people = max(float(first.sums.sum()) / self.bounding.unit, 0.0)
        share = 1 - self.share_of_number
        # No more cells than people, however large the budget is.
        epsilon = min(laplace_epsilon(prices, self.tree, self.bounding, share), self.people_a_cell)
        side = min(max(1, ceil(sqrt(people * epsilon / self.people_a_cell))), 1 << self.tree.depth, MOST_SIDE)
        cells = with_nowhere(Leaves.at_level(TwoLevelGrid.regular(self._square(), side), 2), self.bounding)
        grid = Query(Counts(cells, self.bounding), share)
        return read([(grid, (yield grid))], cells, self.reading)

    def _square(self) -> Quadtree:
        if not isinstance(self.tree, Quadtree):
            raise InputError("a uniform grid cuts a square into equal parts: choose quadtree cells, or a level (flat)")
        return self.tree
