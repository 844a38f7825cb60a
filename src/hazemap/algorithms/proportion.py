"""The share of people in each cell who carry a mark, where enough people are to tell; in a map and in slots."""

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
from hazemap.estimate.marked_counts import MarkedCounts, MarkedShares, MarkedSlots, of_all_slots
from hazemap.machine_code.arrays import Bools, Floats, Ints
from hazemap.queries.algorithm_disclosure import Disclosure, Learned, counted
from hazemap.queries.noisy_queries import Prices, Query, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding
from hazemap.temporal.time_slots import Slots
from hazemap.values.boolean_attribute import YES_OR_NO, AttributeCells
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.marks import Marks
from hazemap.values.sides_in_slots import SidesInSlots
from hazemap.values.timed_tree import TimedTree


class Goal(Protocol):
    """What every cell should still offer once it has been cut."""

    def met(self, found: MarkedShares) -> NDArray[np.bool_]:
        """Whether cells with these numbers, known with this noise, are good enough."""


@dataclass(frozen=True)
class Significant:
    """Both sides of a cell stand out of the noise: at least `times` standard deviations (density-driven).

    >>> Significant().met(MarkedShares(np.array([40.0]), np.array([20.0]), (10.0, 10.0)))
    array([False])
    """

    times: Fraction = Fraction(4)

    def __post_init__(self) -> None:
        if not 0 <= self.times <= LOUDEST:
            raise InputError(f"a side must stand out by 0 to {LOUDEST} standard deviations, not {float(self.times):g}")

    def met(self, found: MarkedShares) -> NDArray[np.bool_]:
        """Whether each side is large enough."""
        loud, quiet = (float(self.times) * noise for noise in found.noise)
        enough: NDArray[np.bool_] = (found.marked >= loud) & (found.without >= quiet)
        return enough


@dataclass(frozen=True)
class Narrow:
    """The interval of the share is at most so wide (interval-driven); see `MarkedShares.interval`.

    >>> Narrow(Fraction(1, 10)).met(MarkedShares(np.array([40.0, 4000.0]), np.array([60.0, 6000.0]), (10.0, 10.0)))
    array([False,  True])
    """

    width: Fraction = Fraction(1, 5)
    confidence: Fraction = Fraction(19, 20)

    def __post_init__(self) -> None:
        if not 0 < self.width <= 1 or not 0 < self.confidence < 1:
            raise InputError("an interval of a share is wider than 0 and at most 1, its confidence between 0 and 1")

    def met(self, found: MarkedShares) -> NDArray[np.bool_]:
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
            cut &= goal.met(MarkedShares(parts[some].sum(axis=0), parts[~some].sum(axis=0), spread))
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


MOST_SHARES = 1 << 23
"""Cells times slots times sides that a map has at most: then cells are cut no further."""


@dataclass(frozen=True)
class ProportionInSlots:
    """First decide on the cells, over all slots together; then count all sides of each in every slot with the rest.

    As `Proportion`, but a cell is cut as often as its parts would still meet the `goal` for every mark in one slot, if
    the parts were all alike and every slot had as many people. So a map of 24 hours has cells of 24 times the people,
    of which each hour is known as well as a cell of a map without slots.

    What is returned comes from the last query alone: one noisy number of each side of each cell in each slot. Slots add
    up to the total, whose standard error is √slots times that of a slot. One bounding rule covers all slots and all
    sides: a person's votes lie in places, slots and sides (`SidesInSlots`), so every answer has the rule's sensitivity.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.temporal.time_slots import Clock
    >>> ProportionInSlots(Quadtree.world(depth=10), Clock.hours("UTC")).most_cells
    174762
    """

    tree: Tree
    slots: Slots
    bounding: Bounding = AtMostRows(1)
    goal: Goal = USUAL_GOAL
    first_cells: int = 16
    deciding: tuple[Fraction, ...] = (Fraction(5, 100), Fraction(15, 100))
    marks: tuple[str, ...] = ("mark",)

    def __post_init__(self) -> None:
        check_proportion(self.deciding, self.bounding)
        if not self.slots.timed:
            raise InputError("shares in slots need slots, such as hour-of-day")
        first = max(self.first_cells, coarsest(self.tree, self.first_cells).size)  # the box may be yet to be found
        if first > self.most_cells:
            raise InputError(
                f"{first:,} cells, the fewest of this map, in {len(self.slots.names):,} slots with {self.known.sides} "
                f"sides are more than {MOST_SHARES:,} numbers: choose fewer slots, fewer marks or coarser cells"
            )

    @property
    def known(self) -> Marks:
        """The marks, understood."""
        return Marks.of(*self.marks)

    @property
    def most_cells(self) -> int:
        """How many cells the map may have."""
        return MOST_SHARES // (len(self.slots.names) * self.known.sides)

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return Disclosure((Learned.FINENESS, Learned.SIDES))

    def rounds(self, prices: Prices) -> Rounds[MarkedSlots]:
        """One query of all slots together for each deciding share, then one for the cells in every slot."""
        timed, marks, most = TimedTree(self.tree, self.slots), self.known, self.most_cells
        cells = coarsest(self.tree, self.first_cells)
        shares = (*self.deciding, 1 - sum(self.deciding, Fraction(0)))
        for share, following in pairwise(shares):
            query = self._about(AllSlots(timed, cells), share)
            found = of_all_slots(query, (yield query), marks)
            noise = max(prices.stddev(query.encoder, following) / self.bounding.unit, LEAST_NOISE)
            cells = cut_for(self.goal, found, noise, timed.many, most)
        query = self._about(EachSlot(timed, cells), shares[-1])
        return MarkedSlots.of(query, (yield query), marks)

    def _about(self, places: AllSlots | EachSlot, share: Fraction) -> Query:
        sides = self.known.sides
        return Query(Counts(SidesInSlots(places, None if sides == YES_OR_NO else sides), self.bounding), share)


MARKS_OR_SLOTS = (
    "devices are asked for marks, or for slots, and not yet for marks in slots: leave the marks or the slots out"
)
"""What is said of it among devices."""
