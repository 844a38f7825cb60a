"""Statistics of a value in every cell and slot, from one question about counters that share people out."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from hazemap.cells import Cells, Leaves, Tree
from hazemap.disclosure import Disclosure, Learned
from hazemap.domains import WORLD, Gauge, Hexagons, Measured, Slots
from hazemap.encoders import Values
from hazemap.estimate.gauged import Measurements
from hazemap.rounds import Prices, Query, Rounds
from hazemap.tables.bounding import OwnMeans


@dataclass(frozen=True)
class CellValues:
    """All cells of a level (or `only` those with these names) times all slots, asked once with the whole budget.

    Adding or removing a person with all their records is what is protected; nothing is read from the data but noisy
    counters. One vector answers for numbers of people, means, variances and distributions: a gauge divides every
    person over its counters, so that each gets the noise of the whole budget. (To ask for a count of people and a sum
    of centred values instead, with half the budget each, would double the variance of both in pure ε.)

    >>> from hazemap.domains import Always, Quadtree
    >>> gauge = Gauge(0, 65)
    >>> CellValues(Quadtree.world(depth=3), 3, Always(), gauge, OwnMeans(4, scale=gauge.scale)).measured.places
    64
    """

    tree: Tree
    level: int
    slots: Slots
    gauge: Gauge
    bounding: OwnMeans
    only: tuple[str, ...] = ()

    @cached_property
    def measured(self) -> Measured:
        """The public list of cells and slots."""
        return Measured(Leaves(self.tree, self.listed), self.slots, self.gauge)

    @cached_property
    def listed(self) -> Cells:
        """The public list of cells: those named in `only`, or all of the level; of hexagons those the box touches."""
        if self.only:
            return np.sort(self.tree.named(list(self.only)))
        return touched(self.tree, Leaves.at_level(self.tree, self.level).cells)

    def over(self, tree: Tree, level: int) -> "CellValues":
        """The same over the cells of another tree."""
        return replace(self, tree=tree, level=level)

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return Disclosure((Learned.VALUES,))

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
