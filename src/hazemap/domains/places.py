"""Cells times slots wherever rows are: for whom whereabouts are public, so that no list has to be declared."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Columns, Leaves, Tree
from hazemap.domains.gauge import Gauge
from hazemap.domains.measured import Measured
from hazemap.domains.slots import Slots
from hazemap.domains.valued import told
from hazemap.errors import InputError


class Located(NamedTuple):
    """The cell (`NOWHERE` for a row that does not count), the slot and the reading of each row."""

    cells: Cells
    slots: NDArray[np.int64]
    readings: NDArray[np.int64]


@dataclass(frozen=True)
class Places:
    """Where values are measured: base cells of a tree (those `within` some list, if there is one), in slots.

    VALUES ONLY: which of them are occupied is public. `Measured` is the same for a list that was declared.

    >>> from hazemap.domains import Quadtree
    >>> from hazemap.domains.slots import Always
    >>> places = Places(Quadtree.world(depth=3), Always(), Gauge(0, 60))
    >>> places.rows({"lon": np.array([2.0]), "lat": np.array([48.0]), "value": np.array([30.0])}).readings
    array([512])
    """

    tree: Tree
    slots: Slots
    gauge: Gauge
    within: Leaves | None = None

    def rows(self, columns: Columns) -> Located:
        """Where each row lies; outside all places and without a value it lies nowhere."""
        value, slots, known = told(columns, self.slots)
        cells = self.tree.cell_at(columns, self.tree.depth)
        known &= cells != NOWHERE
        if self.within is not None:
            known &= self.within.locate(cells) >= 0
        readings = self.gauge.ruler.read(np.where(known, value, self.gauge.low))
        return Located(np.where(known, cells, NOWHERE), slots, readings)

    def occupied(self, cells: Cells) -> Measured:
        """The places of the cells in which rows were found, in ascending order."""
        if not len(cells):
            raise InputError(
                "no row lies in a cell and a slot, with a value: look at the box, the times and the column"
            )
        return Measured(Leaves(self.tree, cells), self.slots, self.gauge)
