"""The share of people in each cell who carry a mark, where there are enough people to tell."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.algorithms.cell_cutting import coarsest
from hazemap.algorithms.count_queries import LEAST_NOISE, positions
from hazemap.cells import Cells, Leaves, Tree
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate.marked_counts import MarkedCounts
from hazemap.estimate.share_intervals import Shares
from hazemap.machine_code.arrays import Bools, Floats, Ints
from hazemap.queries.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.queries.noisy_queries import Prices, Query, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding
from hazemap.values.boolean_attribute import YES_OR_NO, AttributeCells
from hazemap.values.marks import Marks


class Goal(Protocol):
    """What every cell should still offer once it has been cut."""

    def met(self, found: Shares) -> NDArray[np.bool_]:
        """Whether cells with these numbers, known with this noise, are good enough."""


@dataclass(frozen=True)
class Significant:
    """Both sides of a cell stand out of the noise: at least `times` standard deviations (density-driven).

    >>> Significant().met(Shares(np.array([40.0]), np.array([20.0]), (10.0, 10.0)))
    array([False])
    """

    times: Fraction = Fraction(4)

    def __post_init__(self) -> None:
        if not 0 <= self.times <= LOUDEST:
            raise InputError(f"a side must stand out by 0 to {LOUDEST} standard deviations, not {float(self.times):g}")

    def met(self, found: Shares) -> NDArray[np.bool_]:
        """Whether each side is large enough."""
        loud, quiet = (float(self.times) * noise for noise in found.noise)
        enough: NDArray[np.bool_] = (found.marked >= loud) & (found.without >= quiet)
        return enough


@dataclass(frozen=True)
class Narrow:
    """The interval of the share is at most so wide (interval-driven); see `Shares.interval`.

    >>> Narrow(Fraction(1, 10)).met(Shares(np.array([40.0, 4000.0]), np.array([60.0, 6000.0]), (10.0, 10.0)))
    array([False,  True])
    """

    width: Fraction = Fraction(1, 5)
    confidence: Fraction = Fraction(19, 20)

    def __post_init__(self) -> None:
        if not 0 < self.width <= 1 or not 0 < self.confidence < 1:
            raise InputError("an interval of a share is wider than 0 and at most 1, its confidence between 0 and 1")

    def met(self, found: Shares) -> NDArray[np.bool_]:
        """Whether the interval is narrow enough, noise and sampling taken together."""
        low, high = found.interval(float(self.confidence), sampled=True)
        narrow: NDArray[np.bool_] = (found.people > 0) & (high - low <= float(self.width))
        return narrow


MOST_NUMBERS = 1 << 22
"""Cells times sides that a map has at most, whatever the goal: then cells are cut no further."""

LOUDEST = 1000
"""Standard deviations that a side may have to stand out by."""

USUAL_GOAL = Significant()
"""What cells are cut for, unless somebody says otherwise."""


def check_proportion(deciding: tuple[Fraction, ...], bounding: Bounding) -> None:
    """Refuse with `InputError` shares of the budget that leave nothing, and rows outside the map."""
    if not deciding or min(deciding) <= 0 or sum(deciding) >= 1:
        raise InputError("the shares that decide on proportions must be positive and add up to less than 1")
    if bounding.outside.asked:
        raise InputError("proportions count rows inside cells: drop the rows that lie outside the map")


@dataclass(frozen=True)
class Proportion:
    """First decide on the cells with a small part of the budget, then count all sides of each with the rest.

    The auxiliary bit of Bagdasaryan et al. (2022, appendix B): two counts a cell, marked and not, of a
    `BinaryAttribute` tree; of several `marks` as many as rows have sides (`values.marks.Marks`). A cell is cut as often
    as its parts, if they were all alike, would still meet the `goal` for every mark: known by the noise that the next
    round will have. (The paper can be read as "cut where the interval is wider than asked"; cutting makes it wider
    still, so here a cell is cut while its parts stay narrower.) What is returned comes from the last query alone, whose
    noise is fresh: unbiased, whatever noise has chosen the cells.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> Proportion(Quadtree.world(depth=10)).goal
    Significant(times=Fraction(4, 1))
    """

    tree: Tree
    bounding: Bounding = AtMostRows(1)
    goal: Goal = USUAL_GOAL
    first_cells: int = 16
    deciding: tuple[Fraction, ...] = (Fraction(5, 100), Fraction(15, 100))
    marks: tuple[str, ...] = ("mark",)

    def __post_init__(self) -> None:
        check_proportion(self.deciding, self.bounding)
        _ = self.known

    @property
    def known(self) -> Marks:
        """The marks, understood."""
        return Marks.of(*self.marks)

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return counted(Learned.FINENESS)

    def rounds(self, prices: Prices) -> Rounds[MarkedCounts]:
        """One query for each deciding share, then one for the cells."""
        cells = coarsest(self.tree, self.first_cells)
        shares = (*self.deciding, 1 - sum(self.deciding, Fraction(0)))
        for share, following in pairwise(shares):
            query = self._about(cells, share)
            found = MarkedCounts.of(query, (yield query), self.known)
            noise = max(prices.stddev(query.encoder, following) / self.bounding.unit, LEAST_NOISE)
            cells = cut_for(self.goal, found, noise, most=MOST_NUMBERS // self.known.sides)
        query = self._about(cells, shares[-1])
        return MarkedCounts.of(query, (yield query), self.known)

    def _about(self, cells: Leaves, share: Fraction) -> Query:
        sides = self.known.sides
        return Query(Counts(AttributeCells(cells, None if sides == YES_OR_NO else sides), self.bounding), share)


def cut_for(goal: Goal, found: MarkedCounts, noise: float, slots: int = 1, most: int | None = None) -> Leaves:
    """Replace cells by their children for as long as these, alike, would meet the goal for every mark.

    Of several `slots` each is taken to have the same part of a cell's people, and `noise` is that of a count in one of
    them. There are no more than `most` cells, where that is said: of each level the fullest are cut first.
    """
    tree, done, todo, sides = found.cells.tree, list[Cells](), found.cells.cells, found.sides / slots
    having = [found.marks.having(mark) for mark in found.marks.texts]
    while len(todo):
        children = tree.children(todo[tree.level(todo) < tree.depth])
        holder = positions(tree.parent(children), todo)
        number = np.bincount(holder, minlength=len(todo))
        parts = sides / np.maximum(number, 1)
        cut = number > 0
        for some in having:
            spread = (noise * float(some.sum()) ** 0.5, noise * float((~some).sum()) ** 0.5)
            cut &= goal.met(Shares(parts[some].sum(axis=0), parts[~some].sum(axis=0), spread))
        if most is not None:
            cut &= _within(most - sum(map(len, done)) - len(todo), np.where(cut, number - 1, 0), sides.sum(axis=0))
        done.append(todo[~cut])
        stay = cut[holder]
        todo, holder = children[stay], holder[stay]
        sides = parts[:, holder]
    return Leaves(tree, np.concatenate(done))


def _within(room: int, more: Ints, people: Floats) -> Bools:
    """Which cells may be cut, the fullest first, where there is room for so many more: each makes `more`."""
    order = np.argsort(-people, kind="stable")
    allowed = np.zeros(len(more), dtype=np.bool_)
    allowed[order[np.cumsum(more[order]) <= room]] = True
    return allowed
