"""A partition of places in slots: each cell, or each cell in each slot, once for every side of rows."""

from dataclasses import dataclass

import numpy as np

from hazemap.cells import NOWHERE, Cells, Leaves
from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.machine_code.arrays import Ints
from hazemap.values.boolean_attribute import BinaryAttribute
from hazemap.values.cells_in_slots import MOST_NUMBERS, AllSlots, EachSlot
from hazemap.values.timed_tree import TimedTree


@dataclass(frozen=True)
class SidesInSlots:
    """First all places of the first side, as `places` has them, then those of the next.

    A partition of the sides of places in slots: a row is in one place, in one slot and on one side, so every bounding
    rule covers all slots and all sides together, and no rule lets a person move the sums further than without them.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.temporal.time_slots import Weekdays
    >>> timed = TimedTree(Quadtree.world(depth=1), Weekdays("UTC"))
    >>> SidesInSlots(EachSlot(timed, Leaves.at_level(timed.tree, 1))).size
    56
    """

    places: AllSlots | EachSlot
    sides: int | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if not isinstance(self.leaves, Leaves) or (self.leaves.cells == NOWHERE).any():
            raise InputError("shares in slots are of cells that are listed, and NOWHERE is not one")
        check_room(self.places.tree, self.tree.shift)
        if self.size > MOST_NUMBERS:
            raise InputError(
                f"{self.tree.number} sides of {self.places.size:,} cells in slots are more than {MOST_NUMBERS:,} "
                "numbers: choose coarser cells, fewer slots or fewer marks"
            )

    @property
    def leaves(self) -> Leaves:
        """The cells, whatever the slots."""
        return self.places.cells  # type: ignore[return-value]  # checked when it was made

    @property
    def tree(self) -> BinaryAttribute:
        """The tree whose base cells are counted: a place in a slot, and a side."""
        return BinaryAttribute(self.places.tree, self.sides)

    @property
    def size(self) -> int:
        """As many for each place as there are sides."""
        return self.tree.number * self.places.size

    def locate(self, base: Cells) -> Ints:
        """For each base cell the position of its place and side; −1 for none."""
        tree = self.tree
        found = self.places.locate(base >> tree.shift)
        side = (base & (tree.first - np.uint64(1))).astype(np.int64)
        return np.where(found >= 0, found + self.places.size * side, -1)

    def total(self, base: Cells, weights: Ints) -> Ints:
        """The weight in each place and side, given sorted base cells with weights: O(size + base · log cells)."""
        at = self.locate(base)
        sums = np.zeros(self.size, dtype=np.int64)
        np.add.at(sums, at[at >= 0], weights[at >= 0])
        return sums


def check_room(tree: TimedTree, shift: np.uint64) -> None:
    """`InputError` where places in slots with a side are more numbers than 63 bits hold."""
    if tree.size >= 1 << (63 - int(shift)):
        raise InputError(
            f"the sides of cells this fine in {tree.many:,} slots are more numbers than 63 bits hold: choose fewer "
            "slots or marks, coarser cells or a smaller box"
        )
