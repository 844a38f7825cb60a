"""The share of people in each cell who carry a mark, in every slot of time."""

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from hazemap.algorithms.cell_cutting import coarsest
from hazemap.algorithms.count_queries import LEAST_NOISE
from hazemap.algorithms.proportion import USUAL_GOAL, Goal, check_proportion, cut_for
from hazemap.cells import Tree
from hazemap.encoders import Counts
from hazemap.errors import InputError
from hazemap.estimate.marked_slots import MarkedSlots, of_all_slots
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.queries.noisy_queries import Prices, Query, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding
from hazemap.temporal.time_slots import Slots
from hazemap.values.boolean_attribute import YES_OR_NO
from hazemap.values.cells_in_slots import AllSlots, EachSlot
from hazemap.values.marks import Marks
from hazemap.values.sides_in_slots import SidesInSlots
from hazemap.values.timed_tree import TimedTree

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
