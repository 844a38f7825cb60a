"""The proportion of people in each cell who have an attribute, where there are enough people to tell."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.adaptive_tree import coarsest
from hazemap.algorithms.count_queries import LEAST_NOISE, positions
from hazemap.arrays import Floats
from hazemap.cells import Cells, Leaves, Tree
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate.confidence_margins import checked_confidence
from hazemap.noisy_queries import Answer, Prices, Query, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding
from hazemap.values.boolean_attribute import AttributeCells


@dataclass(frozen=True, eq=False)
class Proportions:
    """How many of those in each cell carry the mark: float64[cells.size] throughout.

    `marked` and `people` are unbiased; each of the two counts behind them (with the mark, without) has noise of
    standard deviation `stddev`, independent of the other's.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> one = Leaves(Quadtree.world(depth=0), np.array([1], dtype=np.uint64))
    >>> found = Proportions(one, np.array([200.0]), np.array([1000.0]), 10.0)
    >>> found.values, [end.round(3) for end in found.interval(0.95)]
    (array([0.2]), [array([0.184]), array([0.216])])
    """

    cells: Leaves
    marked: Floats
    people: Floats
    stddev: float

    @property
    def values(self) -> Floats:
        """marked/people within 0 … 1; NaN where there seem to be no people at all."""
        some = self.people > 0
        return np.where(some, np.clip(self.marked / np.where(some, self.people, 1), 0, 1), np.nan)

    def interval(self, confidence: float = 0.95, sampled: bool = False) -> tuple[Floats, Floats]:
        """Low and high ends. With `sampled`, the people asked stand for more people like them.

        Fieller (1954): p is in the interval iff (marked − p·people)² ≤ z² · Var(marked − p·people), a quadratic in p.
        The noise of marked − p·people has the variance σ²((1 − p)² + p²); a sample adds people·p(1 − p) (with σ = 0
        this is Wilson's interval). Where noise could explain that nobody is there, it is 0 … 1.
        """
        return bounds(self.marked, self.people, self.stddev, confidence, sampled)


def bounds(marked: Floats, people: Floats, stddev: float, confidence: float, sampled: bool) -> tuple[Floats, Floats]:
    """Fieller's interval for each cell, within 0 … 1: O(cells)."""
    checked_confidence(confidence)
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    noise, sample = stddev**2, np.maximum(people, 0.0) * sampled
    a = people**2 - z2 * (2 * noise - sample)
    b = -2 * marked * people - z2 * (sample - 2 * noise)
    c = marked**2 - z2 * noise
    root = b**2 - 4 * a * c
    some = (people > 0) & (a > 0) & (root >= 0)
    middle, half = -b / np.where(some, 2 * a, 1), np.sqrt(np.where(some, root, 0)) / np.where(some, 2 * a, 1)
    low = np.where(some, np.clip(middle - half, 0, 1), 0.0)
    high = np.where(some, np.clip(middle + half, 0, 1), 1.0)
    return low, high


class Goal(Protocol):
    """What every cell should still offer once it has been cut."""

    def met(self, marked: Floats, people: Floats, stddev: float) -> NDArray[np.bool_]:
        """Whether cells with these numbers, known with this noise, are good enough."""


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
            raise InputError("the shares that decide on proportions must be positive and add up to less than 1")
        if self.bounding.outside.asked:
            raise InputError("proportions count rows inside cells: drop the rows that lie outside the map")

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
            holder = positions(tree.parent(children), todo)
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
