"""One count for every cell of one level."""

from dataclasses import dataclass
from fractions import Fraction

from hazemap.algorithm_disclosure import Disclosure, counted
from hazemap.algorithms.count_queries import with_nowhere
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Leaves, Tree
from hazemap.encoders import Counts
from hazemap.estimate import read
from hazemap.queries import Prices, Query, Rounds
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

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return counted()

    def rounds(self, prices: Prices) -> Rounds[CellMap]:  # noqa: ARG002 - one query needs no price
        """One query."""
        cells = with_nowhere(Leaves.at_level(self.tree, self.level), self.bounding)
        query = Query(Counts(cells, self.bounding), Fraction(1))
        answer = yield query
        return read([(query, answer)], cells, self.reading)
