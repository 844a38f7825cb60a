"""How many are in each cell."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Partition
from hazemap.encoders.encoder import Entries
from hazemap.engines.memory import MemoryTable
from hazemap.field_types import check_fields
from hazemap.tables.contribution_bounding import AtMostRows, Bounding, Sensitivity
from hazemap.tables.votes import VotesTable


@dataclass(frozen=True)
class Counts:
    """The votes in each cell of a partition, bounded by one rule.

    The cells are disjoint, so a person moves the sums by no more than the rule allows them in all.

    >>> from hazemap.cells import Leaves
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> tree = Quadtree.world(depth=3)
    >>> Counts(Leaves(tree, tree.children(tree.root)), AtMostRows(2)).sensitivity.l1
    2
    """

    cells: Partition
    bounding: Bounding = AtMostRows(1)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def size(self) -> int:
        """How many cells."""
        return self.cells.size

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person can move the sums: what the rule leaves them."""
        return self.bounding.sensitivity

    def encode(self, table: MemoryTable) -> Entries:
        """What each person adds where."""
        person, base, weight = table.bounded(self.cells.tree, self.bounding)
        position = self.cells.locate(base)
        known = position >= 0
        return Entries(person[known], position[known], weight[known])

    def total(self, table: VotesTable) -> NDArray[np.int64]:
        """The exact sums, from the table's votes."""
        votes = table.votes(self.cells.tree, self.bounding)
        return np.asarray(self.cells.total(votes.cells, votes.weights))
