"""Partitions of places in slots: some cells at all times together, or some cells in each slot."""

from dataclasses import dataclass

import numpy as np

from hazemap.cells import NOWHERE, Cells, Leaves, WholeDomain
from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.machine_code.arrays import Ints
from hazemap.values.timed_tree import TimedTree

MOST_NUMBERS = 1 << 25
"""The most numbers of cells in slots that are asked for in one question."""


class _Checked:
    """What both partitions check when they are made."""

    tree: TimedTree
    cells: Leaves | WholeDomain

    def __post_init__(self) -> None:
        check_fields(self)
        if self.cells.tree != self.tree.tree:
            raise InputError("cells that are asked for in slots must be of the tree that the slots are about")


@dataclass(frozen=True)
class AllSlots(_Checked):
    """The votes in each of some cells, of all slots together. `NOWHERE` may be one of the cells.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.temporal.time_slots import Weekdays
    >>> tree = TimedTree(Quadtree.world(depth=1), Weekdays("UTC"))
    >>> AllSlots(tree, Leaves.at_level(tree.tree, 1)).total(np.array([1, 7, 8], dtype=np.uint64), np.array([2, 1, 5]))
    array([3, 5, 0, 0])
    """

    tree: TimedTree
    cells: Leaves | WholeDomain

    @property
    def size(self) -> int:
        """As many as there are cells."""
        return self.cells.size

    def locate(self, base: Cells) -> Ints:
        """For each place in a slot the position of the cell around it; −1 for none."""
        return self.cells.locate(self.tree.taken_apart(base).cells)

    def total(self, base: Cells, weights: Ints) -> Ints:
        """The weight in each cell, given sorted numbers with weights: O(size + base)."""
        return self.cells.total(self.tree.taken_apart(base).cells, weights)


@dataclass(frozen=True)
class EachSlot(_Checked):
    """The votes in each of some cells in each slot: those of one cell follow each other.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.temporal.time_slots import Weekdays
    >>> tree = TimedTree(Quadtree.world(depth=1), Weekdays("UTC"))
    >>> EachSlot(tree, WholeDomain(tree.tree)).total(np.array([1, 7, 8], dtype=np.uint64), np.array([2, 1, 5]))
    array([7, 0, 0, 0, 0, 0, 1])
    """

    tree: TimedTree
    cells: Leaves | WholeDomain

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.cells, Leaves) and (self.cells.cells == NOWHERE).any():
            raise InputError(
                "who is nowhere is in no slot either: leave NOWHERE out of cells that are asked for in slots"
            )
        if self.size > MOST_NUMBERS:
            raise InputError(
                f"{self.cells.size:,} cells in {self.tree.many:,} slots are more than {MOST_NUMBERS:,} "
                "numbers: choose coarser cells or fewer slots"
            )

    @property
    def size(self) -> int:
        """How many cells times slots."""
        return self.cells.size * self.tree.many

    def locate(self, base: Cells) -> Ints:
        """For each place in a slot the position of the cell around it in that slot; −1 for none."""
        places, slots = self.tree.taken_apart(base)
        cell = self.cells.locate(places)
        return np.where(cell >= 0, cell * self.tree.many + slots, -1)

    def total(self, base: Cells, weights: Ints) -> Ints:
        """The weight in each cell and slot: O(size + base · log cells)."""
        at = self.locate(base)
        sums = np.zeros(self.size, dtype=np.int64)
        np.add.at(sums, at[at >= 0], weights[at >= 0])
        return sums
