"""Statistics of a value over a box that is found first."""

from dataclasses import dataclass
from fractions import Fraction

from hazemap.algorithm_disclosure import Disclosure, Learned
from hazemap.algorithms.cell_statistics import CellStatistics
from hazemap.algorithms.private_bounding_box import MOST_HEXAGONS, BoxPart, LocateBox, fitting, hexagons_over, part_of
from hazemap.algorithms.two_stage_statistics import TwoStageStatistics
from hazemap.errors import InputError
from hazemap.estimate.value_estimates import Measurements
from hazemap.queries import Prices, Rounds
from hazemap.spatial.bounding_box import WORLD, Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.values.cell_time_slots import MOST_PLACES

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
            raise InputError("a box is found with shares above 0 that add up to less than 1")
        if not isinstance(self.method.tree, Hexagons):
            raise InputError("only for hexagons a box is found: squares are cut from a declared box")

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
        hexagons = self.method.tree
        if not isinstance(hexagons, Hexagons):
            raise InputError("only for hexagons a box is found")
        inner = self.over(box or WORLD, hexagons)
        return (yield from part_of(inner.rounds(BoxPart(prices, rest)), rest))

    def over(self, box: Box, hexagons: Hexagons) -> CellMethod:
        """The method over the hexagons of a box; where their values are all asked for, no more than can be told."""
        finest = hexagons.finest
        if not isinstance(self.method, TwoStageStatistics) or self.method.selection is None:
            method = self.method.method if isinstance(self.method, TwoStageStatistics) else self.method
            most = min(MOST_PLACES // (2 * len(method.slots.names) * method.value_encoding.size), MOST_HEXAGONS)
            finest = fitting(box, finest, most)
        tree = hexagons_over(box, Hexagons(hexagons.box, min(hexagons.coarsest, finest), finest))
        return self.method.over(tree, finest - tree.coarsest)
