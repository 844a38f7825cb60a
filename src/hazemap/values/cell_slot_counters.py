"""Cells times slots in which values are measured: a public list, or, where whereabouts are public, those with rows."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Columns, Leaves, Tree
from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.temporal.time_slots import Slots
from hazemap.values.histogram_bins import OneLevelTree
from hazemap.values.rows_with_values import values_and_slots
from hazemap.values.value_encoding import STEPS, ValueEncoding

MOST_PLACES = 1 << 26
RUN = STEPS + 1
"""How many readings there are: rows of one cell and slot have as many numbers one after another."""


@dataclass(frozen=True)
class CellTimeSlots(OneLevelTree):
    """The counters of a value encoding, in every slot of every cell: a tree of one level, numbered from 1 in that
    order.

    A row lies in one cell and one slot, but in all counters of its value encoding in parts, so only a rule that divides
    rows (`tables.contribution_bounding.OwnMeans`) can bound what a person says here. The cells are disjoint and
    declared (all cells of a box, the districts of a file), never those that happen to hold data.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.temporal.time_slots import Clock
    >>> quarters = Leaves.at_level(Quadtree.world(depth=1), 1)
    >>> CellTimeSlots(quarters, Clock.hours("UTC"), ValueEncoding(0, 65)).size
    192
    """

    cells: Leaves
    slots: Slots
    value_encoding: ValueEncoding

    what = "a counter of a value encoding"
    named_by = "its cell, its slot and its number"

    def __post_init__(self) -> None:
        check_fields(self)
        if (self.cells.cells == NOWHERE).any() or not self.cells.size:
            raise InputError("values need at least one cell, and NOWHERE is not one")
        if self.size > MOST_PLACES:
            raise InputError(
                f"{self.cells.size:,} cells × {len(self.slots.names):,} slots × {self.value_encoding.size} counters "
                f"are more than {MOST_PLACES:,}: choose coarser cells or fewer slots, or select cells with many people "
                "(--select)"
            )

    @property
    def places(self) -> int:
        """How many cells times slots: place i is slot i mod slots of cell i ÷ slots."""
        return self.cells.size * len(self.slots.names)

    @property
    def size(self) -> int:
        """How many counters in all."""
        return self.places * self.value_encoding.size

    def rows(self, columns: Columns) -> Cells:
        """For each row 1 + 1025 · its place + its reading; `NOWHERE` outside cells and slots, and without a value."""
        value, slot, known = values_and_slots(columns, self.slots)
        cell = self.cells.locate(self.cells.tree.cell_at(columns, self.cells.tree.depth))
        known &= cell >= 0
        reading = self.value_encoding.quantizer.read(np.where(known, value, self.value_encoding.low))
        place = cell * len(self.slots.names) + slot
        return np.where(known, (1 + place * RUN + reading).astype(np.uint64), NOWHERE)

    def cell_at(self, columns: Columns, level: int) -> Cells:
        """`InputError`: a row lies in several counters."""
        raise InputError(
            f"{len(columns)} columns of rows lie in several counters of level {level}: bound them with OwnMeans"
        )

    def area(self, cells: Cells) -> NDArray[np.float64]:
        """That of the cell."""
        return self.cells.tree.area(self._inner(cells))

    def outlines(self, cells: Cells) -> NDArray[Any]:
        """That of the cell."""
        return self.cells.tree.outlines(self._inner(cells))

    def names(self, cells: Cells) -> list[str]:
        """Cell, slot and number of the counter."""
        place, counter = np.divmod(cells.astype(np.int64) - 1, self.value_encoding.size)
        slots = self.slots.names
        inner = self.cells.tree.names(self._inner(cells))
        which = zip(inner, (place % len(slots)).tolist(), counter.tolist(), strict=True)
        return [f"{name} {slots[slot]} {number}" for name, slot, number in which]

    def _inner(self, cells: Cells) -> Cells:
        each = len(self.slots.names) * self.value_encoding.size
        return self.cells.cells[(cells.astype(np.int64) - 1) // each]


class LocatedRows(NamedTuple):
    """The cell (`NOWHERE` for a row that does not count), the slot and the reading of each row."""

    cells: Cells
    slots: NDArray[np.int64]
    readings: NDArray[np.int64]


@dataclass(frozen=True)
class ObservedCellSlots:
    """Where values are measured: base cells of a tree (those `within` some list, if there is one), in slots.

    VALUES ONLY: which of them are occupied is public. `CellTimeSlots` is the same for a list that was declared.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.temporal.time_slots import Always
    >>> places = ObservedCellSlots(Quadtree.world(depth=3), Always(), ValueEncoding(0, 60))
    >>> places.rows({"lon": np.array([2.0]), "lat": np.array([48.0]), "value": np.array([30.0])}).readings
    array([512])
    """

    tree: Tree
    slots: Slots
    value_encoding: ValueEncoding
    within: Leaves | None = None

    def rows(self, columns: Columns) -> LocatedRows:
        """Where each row lies; outside all places and without a value it lies nowhere."""
        value, slots, known = values_and_slots(columns, self.slots)
        cells = self.tree.cell_at(columns, self.tree.depth)
        known &= cells != NOWHERE
        if self.within is not None:
            known &= self.within.locate(cells) >= 0
        readings = self.value_encoding.quantizer.read(np.where(known, value, self.value_encoding.low))
        return LocatedRows(np.where(known, cells, NOWHERE), slots, readings)

    def occupied(self, cells: Cells) -> CellTimeSlots:
        """The places of the cells in which rows were found, in ascending order."""
        if not len(cells):
            raise InputError("no row has a value inside a cell and a slot: check the box, the times and the column")
        return CellTimeSlots(Leaves(self.tree, cells), self.slots, self.value_encoding)
