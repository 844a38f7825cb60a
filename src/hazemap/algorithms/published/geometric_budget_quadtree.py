"""A whole quadtree asked at once, with more of the budget for finer cells (Cormode et al. 2012)."""

from dataclasses import dataclass
from fractions import Fraction

from hazemap.algorithm_disclosure import Disclosure, counted
from hazemap.algorithms.count_queries import grids_up, together
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import Tree
from hazemap.errors import InputError
from hazemap.estimate import read
from hazemap.queries import Prices, Query, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding


@dataclass(frozen=True)
class Geometric:
    """A spatial decomposition with geometric budgets: level i of 0 to `level` gets ε_i ∝ 2^(i/3), then least squares.

    A rectangle is made of about 2^i cells of level i, so these budgets make its variance least (Cormode, Procopiuc,
    Srivastava, Shen and Yu 2012, lemma 3). They are whole weights in one vector, `grain` for the root: with 4 each is
    within 6 % of its power. Least squares are exact (ibid., section 5).

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> Geometric(Quadtree.world(depth=8), level=6).weights
    (16, 13, 10, 8, 6, 5, 4)
    """

    tree: Tree
    level: int
    bounding: Bounding = AtMostRows(1)
    grain: int = 4
    reading: Reading = Reading.SHRUNK

    def __post_init__(self) -> None:
        if not 1 <= self.grain <= 1 << 10:
            raise InputError(f"the weight of the root is 1 to 1024, not {self.grain}")

    @property
    def weights(self) -> tuple[int, ...]:
        """The weight of each level, the finest first."""
        return tuple(round(self.grain * 2 ** (level / 3)) for level in range(self.level, -1, -1))

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return counted()

    def rounds(self, prices: Prices) -> Rounds[CellMap]:  # noqa: ARG002 - one query needs no price
        """One query."""
        levels = grids_up(self.tree, self.level, self.level + 1, self.bounding)
        query = Query(together(levels, self.weights, self.bounding), Fraction(1))
        answer = yield query
        return read([(query, answer)], levels[0], self.reading)
