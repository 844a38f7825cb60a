"""Statistics of a value in every cell and slot, from one question about counters of each."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from hazemap.cells import Cells, Leaves, Tree
from hazemap.encoders import Values
from hazemap.encoders.cell_values import KnownCountValues
from hazemap.estimate.value_estimates import KnownPeople, Measurements
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.queries.noisy_queries import Prices, Query, Rounds
from hazemap.spatial.bounding_box import WORLD
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.temporal.time_slots import Slots
from hazemap.values.cell_slot_counters import CellTimeSlots
from hazemap.values.value_encoding import ValueEncoding


@dataclass(frozen=True)
class CellStatistics:
    """All cells of a level (or `only` those with these names) times all slots, asked once with the whole budget.

    Adding or removing a person with all their records is what is protected; nothing is read from the data but noisy
    counters. One vector answers for numbers of people, means, variances and distributions: a value encoding divides
    every person over its counters, so that each gets the noise of the whole budget. (To ask for a count of people and a
    sum of centred values instead, with half the budget each, would double the variance of both in pure ε.)

    >>> from hazemap.temporal.time_slots import Always
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> code = ValueEncoding(0, 65)
    >>> CellStatistics(Quadtree.world(depth=3), 3, Always(), code, OwnMeans(4, scale=code.scale)).measured.places
    64
    """

    tree: Tree
    level: int
    slots: Slots
    value_encoding: ValueEncoding
    bounding: OwnMeans
    only: tuple[str, ...] = ()
    disclosure: ClassVar[Disclosure] = Disclosure((Learned.VALUES,))

    @cached_property
    def measured(self) -> CellTimeSlots:
        """The public list of cells and slots."""
        return CellTimeSlots(Leaves(self.tree, self.listed), self.slots, self.value_encoding)

    @cached_property
    def listed(self) -> Cells:
        """The public list of cells: those named in `only`, or all of the level; of hexagons those the box touches."""
        if self.only:
            return np.sort(self.tree.named(list(self.only)))
        return touched(self.tree, Leaves.at_level(self.tree, self.level).cells)

    def over(self, tree: Tree, level: int) -> "CellStatistics":
        """The same over the cells of another tree."""
        return replace(self, tree=tree, level=level)

    def rounds(self, prices: Prices) -> Rounds[Measurements]:  # noqa: ARG002 - one query needs no price
        """One query."""
        asked = Values(self.measured, self.bounding)
        answer = yield Query(asked, Fraction(1))
        return Measurements.of(asked, answer)


def touched(tree: Tree, cells: Cells) -> Cells:
    """Of hexagons those that the tree's box touches; of other cells all."""
    if not isinstance(tree, Hexagons) or not len(cells):
        return cells
    import shapely

    if tree.box == WORLD:
        return cells
    box, shapes = tree.box, tree.outlines(cells)
    west, south, east, north = shapely.bounds(shapes).T
    margin = 0.05 * float(np.median(north - south))  # edges are bent a little
    frame = shapely.box(box.west, box.south, box.east, box.north).buffer(margin)
    found: Cells = cells[shapely.intersects(frame, shapes) | (east - west > 180)]
    return found


@dataclass(frozen=True)
class PublicLocationStatistics:
    """All places that are published, asked once with the whole budget; `route` says how those who count were chosen.

    VALUES ONLY: who is where with how many records is public, and everything in here follows from that
    (`algorithms.contribution_selection.best_selection`). Numbers of people are exact and cost nothing.
    """

    asked: KnownCountValues
    route: str
    disclosure: ClassVar[Disclosure] = Disclosure((Learned.ONLY_VALUES,))

    def rounds(self, prices: Prices) -> Rounds[KnownPeople]:  # noqa: ARG002 - one query needs no price
        """One query."""
        answer = yield Query(self.asked, Fraction(1))
        return KnownPeople.of(self.asked, answer)
