"""Cells times slots wherever rows are: for whom whereabouts are public, so that no list has to be declared."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Columns, Leaves, Tree
from hazemap.errors import InputError
from hazemap.temporal.time_slots import Slots
from hazemap.values.cell_time_slots import CellTimeSlots
from hazemap.values.rows_with_values import values_and_slots
from hazemap.values.value_encoding import ValueEncoding


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
            raise InputError(
                "no row lies in a cell and a slot, with a value: look at the box, the times and the column"
            )
        return CellTimeSlots(Leaves(self.tree, cells), self.slots, self.value_encoding)
