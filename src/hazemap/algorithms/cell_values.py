"""Statistics of a value in every cell and slot, from one question about counters that share people out."""

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Union

import numpy as np

from hazemap.algorithms.found_box import Locate, Part, hexagons_over, part_of
from hazemap.cells import Cells, Leaves, Tree
from hazemap.domains import Gauge, Hexagons, Measured, Slots
from hazemap.encoders import Values
from hazemap.errors import InputError, NoPlaceFound
from hazemap.estimate.gauged import Measurements
from hazemap.rounds import Prices, Query, Rounds
from hazemap.tables.bounding import OwnMeans

if TYPE_CHECKING:
    from hazemap.algorithms.prepared_values import PreparedValues

Asked = Union["CellValues", "PreparedValues"]
"""What asks for the values of a tree's cells."""


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

    box, shapes = tree.box, tree.outlines(cells)
    west, south, east, north = shapely.bounds(shapes).T
    margin = 0.05 * float(np.median(north - south))  # edges are bent a little
    frame = shapely.box(box.west, box.south, box.east, box.north).buffer(margin)
    found: Cells = cells[shapely.intersects(frame, shapes) | (east - west > 180)]
    return found


@dataclass(frozen=True)
class FoundValues:
    """Find a box with a share of the budget, then ask for the values in its hexagons with the rest.

    If no place stands out for the first share, which is enough for many people, the next one is tried, for few.

    >>> from hazemap.domains import Always, Box
    >>> gauge = Gauge(0, 65)
    >>> inner = CellValues(Hexagons(Box(0, 0, 1, 1), 5, 5), 0, Always(), gauge, OwnMeans(4, scale=gauge.scale))
    >>> FoundValues(inner).shares
    (Fraction(1, 25), Fraction(1, 5))
    """

    method: "Asked"
    shares: tuple[Fraction, ...] = (Fraction(1, 25), Fraction(1, 5))

    def __post_init__(self) -> None:
        if not self.shares or min(self.shares) <= 0 or sum(self.shares) >= 1:
            raise InputError("a box is found with shares above 0 that add up to less than 1")
        if not isinstance(self.method.tree, Hexagons):
            raise InputError("only for hexagons a box is found: squares are cut from a declared box")

    def rounds(self, prices: Prices) -> Rounds[Measurements]:
        """The rounds of `Locate`, then that of the method."""
        rest = Fraction(1)
        for number, share in enumerate(self.shares, 1):
            rest -= share
            try:
                box = yield from part_of(Locate().rounds(Part(prices, share)), share)
                break
            except NoPlaceFound:
                if number == len(self.shares):
                    raise
        hexagons = self.method.tree
        if not isinstance(hexagons, Hexagons):
            raise InputError("only for hexagons a box is found")
        tree = hexagons_over(box, hexagons)
        inner = self.method.over(tree, hexagons.finest - tree.coarsest)
        return (yield from part_of(inner.rounds(Part(prices, rest)), rest))
