"""A grid as fine as the number of people bears (Qardaji, Yang and Li 2013)."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, isqrt, sqrt

from hazemap.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.algorithms.count_queries import laplace_epsilon, with_nowhere
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import MOST_CELLS, Leaves, Tree
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate import read
from hazemap.queries import Prices, Query, Rounds
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.two_level_grid import TwoLevelGrid
from hazemap.tables.contribution_bounding import AtMostRows, Bounding

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
