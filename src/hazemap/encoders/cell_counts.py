"""The number of votes, or people, in each cell: one-hot, or as a count-min sketch where cells are too many to list."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Leaves, Partition, Tree
from hazemap.encoders.encoder import Entries
from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.tables.contribution_bounding import AtMostCells, AtMostRows, Bounding, Sensitivity
from hazemap.tables.keyed_hash import KeyWords, numbers, seeds
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


@dataclass(frozen=True)
class CountMinSketch:
    """The votes of one level's cells, each cell thrown by a public hash into one of `width` buckets, in `rows` ways.

    A count-min sketch (Cormode and Muthukrishnan 2005): rows × width numbers, however many cells the level has. Every
    vote is counted once in each row, so a person moves the sums by `rows` times what their rule allows them in L1;
    in L2², where rows are disjoint parts of the vector, by `rows` times what it allows as well. That holds for any
    hash, so the key is public. `NOWHERE` is a cell like any other where the rule keeps it.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> sketch = CountMinSketch(Quadtree.world(depth=20), level=20, width=500, rows=3)
    >>> sketch.size, sketch.sensitivity.l1, sketch.places(np.array([1 << 40], dtype=np.uint64)).shape
    (1500, 3, (3, 1))
    """

    tree: Tree
    level: int
    width: int
    rows: int
    bounding: Bounding = AtMostRows(1)
    key: int = 0

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.level <= self.tree.depth:
            raise InputError(f"this tree has levels 0 to {self.tree.depth}, not {self.level}")
        if self.width < 2 or not 1 <= self.rows <= 64:
            raise InputError(f"a sketch needs 1 to 64 rows of at least 2 buckets, not {self.rows} of {self.width}")

    @property
    def size(self) -> int:
        """Buckets in all rows."""
        return self.rows * self.width

    @property
    def sensitivity(self) -> Sensitivity:
        """How far one person can move the sums: `rows` times what the rule leaves them."""
        one = self.bounding.sensitivity
        return Sensitivity(self.rows * one.l1, self.rows * one.l2_squared)

    def places(self, cells: Cells) -> NDArray[np.int64]:
        """Where in the vector each cell of the level is counted, int64[rows, cells]: a bucket in every row."""
        row = np.arange(self.rows, dtype=np.uint64)
        key = seeds(row, KeyWords.expanded(self.key, "Sketch"))
        buckets = numbers(key[:, None], cells[None, :]) % np.uint64(self.width)
        return (buckets + (row * np.uint64(self.width))[:, None]).astype(np.int64)

    def encode(self, table: "MemoryTable") -> Entries:
        """What each person adds where."""
        person, base, weight = table.bounded(self.tree, self.bounding)
        position = self.places(self._above(base))
        every = (self.rows, len(base))
        return Entries(np.broadcast_to(person, every).ravel(), position.ravel(), np.broadcast_to(weight, every).ravel())

    def total(self, table: VotesTable) -> NDArray[np.int64]:
        """The exact sums, from the table's votes: O(rows · base cells with votes)."""
        votes = table.votes(self.tree, self.bounding)
        sums = np.zeros(self.size, dtype=np.int64)
        for row in self.places(self._above(votes.cells)):
            np.add.at(sums, row, votes.weights)
        return sums

    def _above(self, base: Cells) -> Cells:
        """The cell of the level that holds each base cell."""
        cells, real = base.copy(), base != NOWHERE
        for _ in range(self.tree.depth - self.level):
            cells[real] = self.tree.parent(cells[real])
        return cells
