"""Statistics of a value after a first stage that finds its bounds, the box, or the cells worth asking about."""

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

from hazemap.algorithms.cell_statistics import CellStatistics
from hazemap.algorithms.partition_selection import PartitionSelection
from hazemap.algorithms.private_bounding_box import MOST_HEXAGONS, BoxPart, LocateBox, fitting, hexagons_over, part_of
from hazemap.algorithms.private_value_bounds import PrivateValueBounds
from hazemap.cells import Tree
from hazemap.encoders import Values
from hazemap.errors import InputError
from hazemap.estimate.value_estimates import Measurements
from hazemap.queries.algorithm_disclosure import Disclosure, Learned
from hazemap.queries.noisy_queries import Prices, Query, Rounds
from hazemap.spatial.bounding_box import WORLD, Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.values.cell_slot_counters import MOST_PLACES, CellTimeSlots
from hazemap.values.value_encoding import ValueEncoding


@dataclass(frozen=True)
class TwoStageStatistics:
    """First the bounds of the value, then the cells to ask, then the values, each with a share of the budget.

    The value encoding of `method` stands for one with the bounds that are found. Where cells are selected, the values
    are asked in these alone: rows elsewhere are dropped before a person's cap is applied, so that nobody spends it
    elsewhere.

    >>> from hazemap.temporal.time_slots import Always
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> code = ValueEncoding(0, 65)
    >>> inner = CellStatistics(Quadtree.world(depth=3), 3, Always(), code, OwnMeans(4, scale=code.scale))
    >>> TwoStageStatistics(inner, None, PartitionSelection()).value_encoding.high
    65
    """

    method: CellStatistics
    bounds: PrivateValueBounds | None = None
    selection: PartitionSelection | None = None

    def __post_init__(self) -> None:
        if self.bounds is None and self.selection is None:
            raise InputError("there is nothing to find in a first stage: use CellStatistics")

    @property
    def tree(self) -> Tree:
        """The tree of the cells."""
        return self.method.tree

    @property
    def value_encoding(self) -> ValueEncoding:
        """How the value is shared out; its bounds are those that are declared."""
        return self.method.value_encoding

    @property
    def bounding(self) -> OwnMeans:
        """What one person may contribute to the values."""
        return self.method.bounding

    def over(self, tree: Tree, level: int) -> "TwoStageStatistics":
        """The same over the cells of another tree: bounds are found from the rows in the box that was found."""
        bounds = self.bounds
        if bounds is not None and isinstance(tree, Hexagons):
            bounds = replace(bounds, line=replace(bounds.line, box=tree.box))
        return replace(self, method=self.method.over(tree, level), bounds=bounds)

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        found = ((Learned.BOUNDS, self.bounds), (Learned.SELECTION, self.selection))
        return self.method.disclosure.after(*(learned for learned, asked in found if asked is not None))

    def rounds(self, prices: Prices) -> Rounds[Measurements]:
        """Those of the bounds, those of the selection, and one query with what is left."""
        method, left = self.method, Fraction(1)
        if self.bounds is not None:
            found = yield from self.bounds.rounds(prices)
            method = replace(method, value_encoding=replace(method.value_encoding, low=found.low, high=found.high))
            left -= found.spent
        if self.selection is None:
            measured = method.measured
        else:
            left -= self.selection.share
            cells = yield from self.selection.rounds(method, left, prices)
            measured = CellTimeSlots(cells, method.slots, method.value_encoding)
        asked = Values(measured, method.bounding)
        answer = yield Query(asked, left)
        return Measurements.of(asked, answer)


CellMethod = CellStatistics | TwoStageStatistics
"""What asks for the values of a tree's cells."""


@dataclass(frozen=True)
class PrivateBoxStatistics:
    """Find a box with a share of the budget, then ask for the values in its hexagons with the rest.

    If no place stands out for the first share, which is enough for many people, the next one is tried, for few. If none
    does then either, the box is the world. Hexagons are coarser than asked for where a box would hold too many.

    >>> from hazemap.temporal.time_slots import Always
    >>> from hazemap.spatial.bounding_box import Box
    >>> from hazemap.values.value_encoding import ValueEncoding
    >>> from hazemap.tables.contribution_bounding import OwnMeans
    >>> code = ValueEncoding(0, 65)
    >>> inner = CellStatistics(Hexagons(Box(0, 0, 1, 1), 5, 5), 0, Always(), code, OwnMeans(4, scale=code.scale))
    >>> PrivateBoxStatistics(inner).shares
    (Fraction(1, 25), Fraction(1, 5))
    """

    method: CellMethod
    shares: tuple[Fraction, ...] = (Fraction(1, 25), Fraction(1, 5))

    def __post_init__(self) -> None:
        if not self.shares or min(self.shares) <= 0 or sum(self.shares) >= 1:
            raise InputError("the shares that find a box must be positive and add up to less than 1")
        if not isinstance(self.method.tree, Hexagons):
            raise InputError("a box can be found for hexagons only: squares are cut from a declared box")

    @property
    def disclosure(self) -> Disclosure:
        """What it learns at a price."""
        return self.method.disclosure.after(Learned.BOX)

    def rounds(self, prices: Prices) -> Rounds[Measurements]:
        """The rounds of `LocateBox`, then that of the method."""
        rest, box = Fraction(1), None
        for share in self.shares:
            rest -= share
            box = yield from part_of(LocateBox().search(BoxPart(prices, share)), share)
            if box is not None:
                break
        inner = self.over(box or WORLD, cast(Hexagons, self.method.tree))  # checked above
        return (yield from part_of(inner.rounds(BoxPart(prices, rest)), rest))

    def over(self, box: Box, hexagons: Hexagons) -> CellMethod:
        """The method over the hexagons of a box; of no more than can be published, where all are asked for."""
        finest = hexagons.finest
        if not isinstance(self.method, TwoStageStatistics) or self.method.selection is None:
            method = self.method.method if isinstance(self.method, TwoStageStatistics) else self.method
            most = min(MOST_PLACES // (2 * len(method.slots.names) * method.value_encoding.size), MOST_HEXAGONS)
            finest = fitting(box, finest, most)
        tree = hexagons_over(box, Hexagons(hexagons.box, min(hexagons.coarsest, finest), finest))
        return self.method.over(tree, finest - tree.coarsest)
