"""Statistics of a value for which something is found out first: its bounds, or which cells are worth asking."""

from dataclasses import dataclass, replace
from fractions import Fraction

from hazemap.algorithm_disclosure import Disclosure, Learned
from hazemap.algorithms.cell_statistics import CellStatistics
from hazemap.algorithms.partition_selection import PartitionSelection
from hazemap.algorithms.private_value_bounds import PrivateValueBounds
from hazemap.cells import Tree
from hazemap.encoders import Values
from hazemap.errors import InputError
from hazemap.estimate.value_estimates import Measurements
from hazemap.queries import Prices, Query, Rounds
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.tables.contribution_bounding import OwnMeans
from hazemap.values.cell_time_slots import CellTimeSlots
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
            raise InputError("nothing is found out first: ask for the values of the cells themselves (CellStatistics)")

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
