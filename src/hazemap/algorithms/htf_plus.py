"""HTF with a better use of its budget: every answer improves the estimate of every rectangle."""

from dataclasses import dataclass
from fractions import Fraction
from math import log2

from hazemap.algorithms.count_queries import laplace_epsilon, number_of_people, square_of
from hazemap.algorithms.published.homogeneous_tree import BudgetAllotment, TreeGrower, learned_of_lines
from hazemap.cellmap import CellMap, Reading
from hazemap.cells import MOST_CELLS, Leaves, Tree
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.queries.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.queries.noisy_queries import Prices, Rounds
from hazemap.spatial.rectangle_trees import BinaryPartition
from hazemap.tables.contribution_bounding import AtMostRows, Bounding


@dataclass(frozen=True)
class HTFPlus:
    """HTF+: the tree of `HTF`, decided on few levels, and every answer kept.

    What is other than published, and why (docs/how-to/methods.md has the figures):

    * All answers count: first and last counts are combined by their variances, and the tree made consistent, by exact
      least squares (`estimate.tree_least_squares`), for the best guess. Numbers with intervals come from the last
      counts.
    * Noise costs the square of what a budget is divided by, so a few levels are counted well, and not each a little:
      `deciding` says which, as (cuts beyond h, share), with h = log₂(N'ε/`people_a_cell`), the height of HTF. Between
      them a half is taken to have half of the people.
    * The tree may be `deeper` than h, so that the places where many people are can be cut down to pixels.
    * A cell is a leaf if it seems to hold no more than `fullness` standard errors of a leaf's count.
    * Cells are cut in the middle: `turns` is 0. On every map that we have the search for better lines cost more than it
      brought; even at no price at all it made long thin cells on dense maps. With more turns `share_of_cuts` is divided
      among the levels above the first count. Without, it asks only sums, so it runs under any trust model.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> HTFPlus(Quadtree.world(depth=10)).deciding[0]
    (-4, Fraction(7, 25))
    """

    tree: Tree
    bounding: Bounding = AtMostRows(1)
    share_of_number: Fraction = Fraction(1, 200)
    deciding: tuple[tuple[int, Fraction], ...] = ((-4, Fraction(7, 25)), (0, Fraction(3, 25)))
    fullness: int = 5
    deeper: int = 8
    turns: int | None = 0
    share_of_cuts: Fraction = Fraction(1, 20)
    least_pixels: int = 1
    people_a_cell: int = 10
    reading: Reading = Reading.SHRUNK

    def __post_init__(self) -> None:
        shares = (self.share_of_number, self.share_of_cuts, *(share for _, share in self.deciding))
        if min(shares) <= 0 or sum(shares, Fraction(0)) >= 1:
            raise InputError(
                "the total, the deciding counts and the cuts must leave a part of the budget for the final counts"
            )
        if self.people_a_cell < 1 or self.fullness < 0 or self.deeper < 0 or not self.deciding:
            raise InputError(
                "a homogeneous tree must count at least one level, and a cell must hold at least one person"
            )
        square_of(self.tree, "a tree of even density")
        self._grower()

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return counted(Learned.PEOPLE, Learned.FINENESS, *learned_of_lines(self.turns))

    def rounds(self, prices: Prices) -> Rounds[CellMap]:
        """The number of people, then the levels that decide, then the leaves."""
        tree = BinaryPartition.uncut(square_of(self.tree, "a tree of even density"))
        people, left, asked = yield from number_of_people(tree, self.bounding, self.share_of_number)
        epsilon = laplace_epsilon(prices, self.tree, self.bounding, Fraction(1), self.people_a_cell)
        left -= sum((share for _, share in self.deciding), Fraction(0))
        noise = prices.stddev(Counts(Leaves(tree, tree.root), self.bounding), left) / self.bounding.unit
        allotment = self.allotment(people, epsilon, noise)
        grown = yield from self._grower().grown(tree, tree.root, [allotment])
        return (yield from self._grower().mapped(grown, asked, self.reading))

    def allotment(self, people: float, epsilon: float, noise: float) -> BudgetAllotment:
        """What is spent on each level for this many people and a run's epsilon; `noise` is that of a leaf."""
        published = round(log2(max(people * epsilon / self.people_a_cell, 4.0)))
        most = min(2 * self.tree.depth, MOST_CELLS.bit_length() - 1)
        height = min(published + self.deeper, most)
        deciding = [Fraction(0)] * height
        for beyond, share in self.deciding:
            if height:
                deciding[min(max(published + beyond, 1), height - 1)] += share
        first = next((level for level, share in enumerate(deciding) if share), 0)
        searched = first if self.turns != 0 else 0
        cutting = [self.share_of_cuts / searched if level < searched else Fraction(0) for level in range(height)]
        full = (max(self.fullness * noise, 1.0),) * height  # one person is not cut
        return BudgetAllotment(1 - self.share_of_number, tuple(deciding), tuple(cutting), full)

    def _grower(self) -> TreeGrower:
        return TreeGrower(self.bounding, self.turns, self.least_pixels)
