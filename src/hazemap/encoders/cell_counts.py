"""One-hot encoding: the number of votes, or people, in each cell."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Leaves, Partition
from hazemap.encoders.encoder import Entries
from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, Bounding, Sensitivity
from hazemap.tables.votes import VotesTable

if TYPE_CHECKING:
    from hazemap.engines.memory import MemoryTable


class _VotesInCells:
    """What is added up in the cells of a partition, after bounding."""

    cells: Partition
    bounding: Bounding

    @property
    def size(self) -> int:
        """How many cells."""
        return self.cells.size

    def encode(self, table: "MemoryTable") -> Entries:
        """What each person adds where."""
        person, base, weight = table.bounded(self.cells.tree, self.bounding)
        position = self.cells.locate(base)
        known = position >= 0
        return Entries(person[known], position[known], weight[known])

    def total(self, table: VotesTable) -> NDArray[np.int64]:
        """The exact sums, from the table's votes."""
        votes = table.votes(self.cells.tree, self.bounding)
        return np.asarray(self.cells.total(votes.cells, votes.weights))


@dataclass(frozen=True)
class Counts(_VotesInCells):
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
    def sensitivity(self) -> Sensitivity:
        """How far one person can move the sums: what the rule leaves them."""
        return self.bounding.sensitivity


@dataclass(frozen=True)
class CellPresence(_VotesInCells):
    """How many people vote for each of some base cells, where each votes for at most `most` different ones, once.

    `Counts` has to allow that a coarse cell holds all votes of a person. Base cells hold one each, so that L1 = L2² =
    most: in ρ-zCDP the noise grows with √most, not with most. Both are reached.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> CellPresence(Leaves.at_level(Quadtree.world(depth=3), 3), AtMostCells(9)).sensitivity
    Sensitivity(l1=9, l2_squared=9)
    """

    cells: Leaves
    bounding: AtMostCells

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.cells.cells == NOWHERE).any() or (self.cells.levels != self.cells.tree.depth).any():
            raise InputError("people are present in base cells: cells of the finest level, and not NOWHERE")

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person can move the sums."""
        most = min(self.bounding.most, self.size)
        return Sensitivity(most, most)
