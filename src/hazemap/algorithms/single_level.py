"""One count for every cell of one level."""

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from hazemap.algorithms.count_queries import laplace_epsilon, mapped, number_of_people
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves, Tree
from hazemap.errors import InputError
from hazemap.queries.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.queries.noisy_queries import Prices, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding


@dataclass(frozen=True)
class Flat:
    """A regular grid (or all hexagons of a resolution), asked once with the whole budget.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> Flat(Quadtree.world(depth=8), level=4).level
    4
    """

    tree: Tree
    level: int
    bounding: Bounding = AtMostRows(1)
    reading: Reading = Reading.NONNEGATIVE
    disclosure: ClassVar[Disclosure] = counted()

    def rounds(self, prices: Prices) -> Rounds[CellMap]:  # noqa: ARG002 - one query needs no price
        """One query."""
        return (yield from mapped(Leaves.at_level(self.tree, self.level), self.bounding, self.reading))


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
    disclosure: ClassVar[Disclosure] = counted(Learned.PEOPLE, Learned.FINENESS)

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """Two queries: the number of people, then the grid."""
        people, left, asked = yield from number_of_people(self.tree, self.bounding, self.share_of_number)
        epsilon = laplace_epsilon(prices, self.tree, self.bounding, left, self.people_a_cell)
        cells = self._grid(people * epsilon / self.people_a_cell)
        return (yield from mapped(cells, self.bounding, self.reading, left, asked))

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
