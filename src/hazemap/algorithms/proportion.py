"""The part of the people in each cell who carry a mark, where there are enough of them to tell."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.adaptive_tree import coarsest
from hazemap.algorithms.count_queries import LEAST_NOISE
from hazemap.arrays import Floats
from hazemap.cells import Cells, Leaves, Tree
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate.proportion_intervals import Proportions, bounds
from hazemap.queries import Answer, Prices, Query, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding
from hazemap.values.binary_attribute import AttributeCells


class Goal(Protocol):
    """What every cell should still offer once it has been cut."""

    def met(self, marked: Floats, people: Floats, stddev: float) -> NDArray[np.bool_]:
        """Whether cells with these numbers, known with this noise, are good enough."""
        ...


@dataclass(frozen=True)
class Significant:
    """Both sides of a cell stand out of the noise: at least `times` standard deviations (density-driven).

    >>> Significant().met(np.array([40.0]), np.array([60.0]), 10.0)
    array([False])
    """

    times: Fraction = Fraction(4)

    def met(self, marked: Floats, people: Floats, stddev: float) -> NDArray[np.bool_]:
        """Whether the smaller side is large enough."""
        enough: NDArray[np.bool_] = np.minimum(marked, people - marked) >= float(self.times) * stddev
        return enough


@dataclass(frozen=True)
class Narrow:
    """The interval of the proportion is at most so wide (interval-driven); see `Proportions.interval`.

    >>> Narrow(Fraction(1, 10)).met(np.array([40.0, 4000.0]), np.array([100.0, 10000.0]), 10.0)
    array([False,  True])
    """

    width: Fraction = Fraction(1, 5)
    confidence: Fraction = Fraction(19, 20)

    def met(self, marked: Floats, people: Floats, stddev: float) -> NDArray[np.bool_]:
        """Whether the interval is narrow enough, noise and sampling taken together."""
        low, high = bounds(marked, people, stddev, float(self.confidence), sampled=True)
        narrow: NDArray[np.bool_] = (people > 0) & (high - low <= float(self.width))
        return narrow


@dataclass(frozen=True)
class Proportion:
    """First decide on the cells with a small part of the budget, then count both sides of each with the rest.

    The auxiliary bit of Bagdasaryan et al. (2022, appendix B): two counts a cell, marked and not, of a
    `BinaryAttribute` tree. A cell is cut as often as its parts, if they were all alike, would still meet the `goal`:
    known by the noise that the next round will have. (The paper can be read as "cut where the interval is wider than
    asked"; cutting makes it wider still, so here a cell is cut while its parts stay narrower.) What is returned comes
    from the last query alone, whose noise is fresh: unbiased, whatever noise has chosen the cells.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> Proportion(Quadtree.world(depth=10)).goal
    Significant(times=Fraction(4, 1))
    """

    tree: Tree
    bounding: Bounding = AtMostRows(1)
    goal: Goal = Significant()
    first_cells: int = 16
    deciding: tuple[Fraction, ...] = (Fraction(5, 100), Fraction(15, 100))

    def __post_init__(self) -> None:
        if not self.deciding or min(self.deciding) <= 0 or sum(self.deciding) >= 1:
            raise InputError("proportions are decided on with shares above 0 that add up to less than 1")
        if self.bounding.outside.asked:
            raise InputError("proportions are of rows in cells: drop the rows that lie nowhere")

    def rounds(self, prices: Prices) -> Rounds[Proportions]:
        """One query for each deciding share, then one for the cells."""
        cells = coarsest(self.tree, self.first_cells)
        shares = (*self.deciding, 1 - sum(self.deciding, Fraction(0)))
        for share, following in pairwise(shares):
            query = Query(Counts(AttributeCells(cells), self.bounding), share)
            marked, people = self._numbers((yield query))
            noise = max(prices.stddev(query.encoder, following) / self.bounding.unit, LEAST_NOISE)
            cells = self._cut(cells, marked, people, noise)
        query = Query(Counts(AttributeCells(cells), self.bounding), shares[-1])
        answer = yield query
        return Proportions(cells, *self._numbers(answer), float(answer.stddev.max()) / self.bounding.unit)

    def _cut(self, cells: Leaves, marked: Floats, people: Floats, noise: float) -> Leaves:
        """Replace cells by their children for as long as these, alike, would meet the goal."""
        tree, done, todo = self.tree, list[Cells](), cells.cells
        while len(todo):
            children = tree.children(todo[tree.level(todo) < tree.depth])
            order = np.argsort(todo)
            holder = order[np.searchsorted(todo[order], tree.parent(children))]
            number = np.bincount(holder, minlength=len(todo))
            parts = np.maximum(number, 1)
            cut = (number > 0) & self.goal.met(marked / parts, people / parts, noise)
            done.append(todo[~cut])
            stay = cut[holder]
            todo, holder = children[stay], holder[stay]
            marked, people = (marked / parts)[holder], (people / parts)[holder]
        return Leaves(tree, np.concatenate(done))

    def _numbers(self, answer: Answer) -> tuple[Floats, Floats]:
        """Those with the mark in each cell, and all."""
        without, marked = np.split(answer.sums / self.bounding.unit, 2)
        return marked, without + marked
