"""Sums of value counters in each cell and slot, over all people."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hazemap.encoders.encoder import Entries
from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.tables.contribution_bounding import OwnMeans, Sensitivity
from hazemap.tables.votes import VotesTable
from hazemap.values.cell_slot_counters import CellTimeSlots

if TYPE_CHECKING:
    from hazemap.engines.memory import MemoryTable


@dataclass(frozen=True)
class Values:
    """All counters of all cells and slots, in the order of the tree; bounded contributions of each person.

    A person adds whole numbers, none negative, to the counters of at most `cells` places: in a place w · scale in all,
    w ≤ records. So L1 = cells · records · scale, whatever is measured and whoever is added or removed. In one place the
    squares add up to at most (w · s)² for each group of counters that adds up to w · s (moments, bins): L2² = cells ·
    records² · Σ s². Both are reached.

    >>> from hazemap.cells import Leaves
    >>> from hazemap.temporal.time_slots import Always
    >>> from hazemap.values.value_encoding import ValueEncoding
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> value_encoding = ValueEncoding(0, 65, degree=2, branchings=(16,))
    >>> tree = CellTimeSlots(Leaves.at_level(Quadtree.world(depth=3), 3), Always(), value_encoding)
    >>> values = Values(tree, OwnMeans(4, scale=value_encoding.scale))
    >>> values.size == 64 * 19, values.sensitivity.l1 == 4 * 2 * 2**20, values.sensitivity.l2_squared == 4 * 2 * 2**40
    (True, True, True)
    """

    tree: CellTimeSlots
    bounding: OwnMeans

    def __post_init__(self) -> None:
        check_fields(self)
        if self.bounding.scale != self.tree.value_encoding.scale:
            raise InputError(
                "a record must have as many parts as its value encoding: give the rule scale=value_encoding.scale"
            )

    @property
    def size(self) -> int:
        """All counters."""
        return self.tree.size

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person can move the sums."""
        cells, records, scales = self.bounding.cells, self.bounding.records, self.tree.value_encoding.scales
        return Sensitivity(self.bounding.sensitivity.l1, cells * records**2 * sum(scale**2 for scale in scales))

    def encode(self, table: "MemoryTable") -> Entries:
        """What each person adds where."""
        person, counter, weight = table.bounded(self.tree, self.bounding)
        return Entries(person, counter.astype(np.int64) - 1, weight)

    def total(self, table: VotesTable) -> NDArray[np.int64]:
        """The exact sums, from the table's votes: O(cells · slots)."""
        votes = table.votes(self.tree, self.bounding)
        sums = np.zeros(self.size, dtype=np.int64)
        sums[votes.cells.astype(np.int64) - 1] = votes.weights
        return sums
