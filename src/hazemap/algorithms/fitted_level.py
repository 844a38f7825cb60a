"""The level of a tree that is as fine as the number of people bears."""

from dataclasses import dataclass
from fractions import Fraction

from hazemap.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.algorithms.count_queries import laplace_epsilon, with_nowhere
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves, Tree
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate import read
from hazemap.queries import Prices, Query, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding


@dataclass(frozen=True)
class FittedLevel:
    """About N'ε/10 cells, N' a noisy number of people that is paid for: the rule of `UniformGrid` for any tree.

    For any noise, ε is read as √2/σ, what it is for Laplace noise of standard deviation σ. The grid is the level
    of the tree whose number of cells is nearest (in ratio) to the rule's.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> FittedLevel(Quadtree.world(depth=8)).people_a_cell
    10
    """

    tree: Tree
    bounding: Bounding = AtMostRows(1)
    share_of_number: Fraction = Fraction(1, 50)
    people_a_cell: int = 10
    reading: Reading = Reading.NONNEGATIVE

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return counted(Learned.PEOPLE, Learned.FINENESS)

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """Two queries: the number of people, then the grid."""
        number = Query(Counts(Leaves(self.tree, self.tree.root), self.bounding), self.share_of_number)
        first = yield number
        people = float(first.sums.sum()) / self.bounding.unit
        share = 1 - self.share_of_number
        # No more cells than people, however large the budget is.
        epsilon = min(laplace_epsilon(prices, self.tree, self.bounding, share), self.people_a_cell)
        cells = with_nowhere(self._grid(people * epsilon / self.people_a_cell), self.bounding)
        grid = Query(Counts(cells, self.bounding), share)
        second = yield grid
        return read([(number, first), (grid, second)], cells, self.reading)

    def _grid(self, wanted: float) -> Leaves:
        """The level whose number of cells is nearest to the one wanted."""
        finer = coarser = Leaves.at_level(self.tree, 0)
        for level in range(1, self.tree.depth + 1):
            if finer.size >= wanted:
                break
            try:
                coarser, finer = finer, Leaves.at_level(self.tree, level)
            except InputError:  # more cells than one query may have: the finest grid that it may
                break
        return finer if finer.size * coarser.size <= wanted**2 else coarser
