"""Every level counted with an equal part of the budget, all of them at once."""

from dataclasses import dataclass
from fractions import Fraction

from hazemap.algorithm_disclosure import Disclosure, counted
from hazemap.algorithms.count_queries import grids_up, together
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Tree
from hazemap.estimate import read
from hazemap.queries import Prices, Query, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding


@dataclass(frozen=True)
class Hierarchical:
    """Hierarchical one-hot: levels 1 to `level` in one vector, combined by exact least squares (Hay et al. 2010).

    A person adds one to their cell of each level, so the noise is `level` times that of one grid. Least squares make
    the levels consistent: a cell, and still more a union of cells, is then known better than its own number tells.
    Bagdasaryan et al. (2022, section 5.1) keep one level of the answer and discard the others: see `BestLevel`.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> Hierarchical(Quadtree.world(depth=8), level=8).level
    8
    """

    tree: Tree
    level: int
    bounding: Bounding = AtMostRows(1)
    reading: Reading = Reading.SHRUNK

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return counted()

    def rounds(self, prices: Prices) -> Rounds[CellMap]:  # noqa: ARG002 - one query needs no price
        """One query."""
        levels = grids_up(self.tree, self.level, self.level, self.bounding)
        query = Query(together(levels, (1,) * self.level, self.bounding), Fraction(1))
        answer = yield query
        return read([(query, answer)], levels[0], self.reading)
