"""A uniform grid as fine as its people allow, and one inside each of its blocks (Qardaji, Yang and Li, ICDE 2013)."""

from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, isqrt, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.count_queries import laplace_epsilon, mapped, number_of_people, square_of, with_nowhere
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import MOST_CELLS, Leaves, Tree
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate import consistent, measurements, read
from hazemap.queries.algorithm_disclosure import DisclosesPeople, Disclosure, Learned, counted
from hazemap.queries.noisy_queries import Answer, Prices, Query, Question, Rounds
from hazemap.spatial.rectangle_trees import TwoLevelGrid
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, Bounding


@dataclass(frozen=True)
class AdaptiveGrid(DisclosesPeople):
    """AG: m₁ × m₁ blocks, m₁ = max(10, √(Nε/10)/4); then each in m₂ × m₂ parts, m₂ = √(n'ε₂/5), n' its noisy count.

    Blocks cost the part `blocks` of the budget (α, one half), their parts the rest (ε₂). For any noise an ε is read as
    √2/σ, what it is for Laplace noise of standard deviation σ. N is `people` where it is public, as it is among
    devices; otherwise `share_of_number` of the budget buys it. Grids are real ones, not levels of a quadtree; `tree`
    says which square is cut, and no cell is finer than its base cells.

    The published estimate is the weighted average of a block and its parts, with what is missing shared out evenly:
    exact least squares for two levels. It is the best guess with `Reading.UNBIASED`; other readings go by
    groups of cells (`estimate.grid_groups`). As the noise of a block decides how it is cut, numbers with intervals come
    from the parts alone.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> AdaptiveGrid(Quadtree.world(depth=10)).blocks
    Fraction(1, 2)
    """

    tree: Tree
    bounding: Bounding = AtMostRows(1)
    people: int | None = None
    share_of_number: Fraction = Fraction(1, 50)
    blocks: Fraction = Fraction(1, 2)
    people_a_cell: int = 10
    reading: Reading = Reading.LIKELY

    def __post_init__(self) -> None:
        if not 0 < self.blocks < 1 or self.people_a_cell < 1:
            raise InputError(
                "the part of the budget for an adaptive grid's blocks must be between 0 and 1, "
                "and a cell must hold at least one person"
            )
        square_of(self.tree, "an adaptive grid")
        if isinstance(self.bounding, AtMostCells) and self.bounding.most > 1:
            raise InputError(
                "a person's distinct cells cannot be chosen before the cells of an adaptive grid are known: bound rows "
                "(rows:K) or give each person one vote"
            )

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """The number of people if it is not public, then the blocks, then their parts."""
        people, left, _ = yield from number_of_people(self.tree, self.bounding, self.share_of_number, self.people)
        grid = self._grid(people * laplace_epsilon(prices, self.tree, self.bounding, left, self.people_a_cell))
        counts = yield Query(Counts(Leaves.at_level(grid, 1), self.bounding), self.blocks * left)
        rest = (1 - self.blocks) * left
        epsilon = laplace_epsilon(prices, self.tree, self.bounding, rest, self.people_a_cell)
        grid = self._cut(grid, counts.sums / self.bounding.unit * epsilon)
        cells = with_nowhere(Leaves.at_level(grid, 2), self.bounding)
        second = Query(Counts(cells, self.bounding), rest)
        # The same blocks, as cells of the tree that has their parts.
        first = Query(Counts(Leaves.at_level(grid, 1), self.bounding), self.blocks * left)
        return self._read([(first, counts), (second, (yield second))], cells)

    def _grid(self, signal: float) -> TwoLevelGrid:
        """The blocks, given Nε."""
        wanted = max(10, ceil(sqrt(max(signal, 0.0) / self.people_a_cell) / 4))
        return TwoLevelGrid.regular(square_of(self.tree, "an adaptive grid"), min(wanted, 1 << self.tree.depth))

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


@dataclass(frozen=True)
class UniformGrid:
    """UG: m × m equal cells, m = √(N'ε/10), N' a noisy number of people that `share_of_number` of the budget buys.

    For any noise, ε is read as √2/σ, what it is for Laplace noise of standard deviation σ. The grid is a real one, not
    a level of the quadtree (`FittedLevel` is): `tree` says which square is cut, and no cell is finer than its base
    cells. The published estimate is the noisy grid, `Reading.UNBIASED`; other readings go by groups of its cells
    (`estimate.grid_groups`).

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> UniformGrid(Quadtree.world(depth=8)).people_a_cell
    10
    """

    tree: Tree
    bounding: Bounding = AtMostRows(1)
    share_of_number: Fraction = Fraction(1, 50)
    people_a_cell: int = 10
    reading: Reading = Reading.LIKELY
    disclosure: ClassVar[Disclosure] = counted(Learned.PEOPLE, Learned.FINENESS)

    def __post_init__(self) -> None:
        square_of(self.tree, "a uniform grid")

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """Two queries: the number of people, then the grid."""
        people, left, _ = yield from number_of_people(self.tree, self.bounding, self.share_of_number)
        epsilon = laplace_epsilon(prices, self.tree, self.bounding, left, self.people_a_cell)
        side = ceil(sqrt(max(people, 0.0) * epsilon / self.people_a_cell))
        side = min(max(1, side), 1 << self.tree.depth, isqrt(MOST_CELLS))
        square = square_of(self.tree, "a uniform grid")
        cells = Leaves.at_level(TwoLevelGrid.regular(square, side), 2)
        return (yield from mapped(cells, self.bounding, self.reading, left))
