"""The cells of another tree, restricted to rows that have a value and a slot."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Columns, Tree
from hazemap.errors import TableError
from hazemap.field_types import check_fields
from hazemap.temporal.time_slots import Always, Slots

EVER = Always()


class ValuesAndSlots(NamedTuple):
    """The value (float64[rows], NaN perhaps) and the slot (int64[rows]) of each row, and whether it has both."""

    values: NDArray[np.float64]
    slots: NDArray[np.int64]
    known: NDArray[np.bool_]


def values_and_slots(columns: Columns, slots: Slots) -> ValuesAndSlots:
    """What each row says, and when; `TableError` without the columns for that. O(rows)."""
    if "value" not in columns:
        raise TableError(f"these rows have no value: found {', '.join(sorted(columns))}")
    if slots.timed and "time" not in columns:
        raise TableError(f"these rows have no time, which slots need: found {', '.join(sorted(columns))}")
    values = np.asarray(columns["value"], dtype=np.float64)
    slot = slots.at(np.asarray(columns["time"] if slots.timed else values, dtype=np.float64))
    return ValuesAndSlots(values, slot, ~np.isnan(values) & (slot >= 0))


@dataclass(frozen=True)
class RowsWithValues:
    """Another tree, in which a row without a value, or in no slot, lies `NOWHERE`: it uses up nobody's allowance.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> tree = RowsWithValues(Quadtree.world(depth=2))
    >>> rows = {"lon": np.array([2.3, 2.3]), "lat": np.array([48.8, 48.8]), "value": np.array([7.0, np.nan])}
    >>> tree.cell_at(rows, 2) == NOWHERE
    array([False,  True])
    """

    tree: Tree
    slots: Slots = EVER

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def depth(self) -> int:
        """The other tree's."""
        return self.tree.depth

    @property
    def root(self) -> Cells:
        """The other tree's."""
        return self.tree.root

    def children(self, cells: Cells) -> Cells:
        """The other tree's."""
        return self.tree.children(cells)

    def parent(self, cells: Cells) -> Cells:
        """The other tree's."""
        return self.tree.parent(cells)

    def level(self, cells: Cells) -> NDArray[np.int64]:
        """The other tree's."""
        return self.tree.level(cells)

    def span(self, cells: Cells) -> tuple[Cells, Cells]:
        """The other tree's."""
        return self.tree.span(cells)

    def cell_at(self, columns: Columns, level: int) -> Cells:
        """The cell of each row that has a value and a slot; `TableError` without the columns for them."""
        return np.where(values_and_slots(columns, self.slots).known, self.tree.cell_at(columns, level), NOWHERE)

    def area(self, cells: Cells) -> NDArray[np.float64]:
        """The other tree's."""
        return self.tree.area(cells)

    def outlines(self, cells: Cells) -> NDArray[Any]:
        """The other tree's."""
        return self.tree.outlines(cells)

    def names(self, cells: Cells) -> list[str]:
        """The other tree's."""
        return self.tree.names(cells)

    def named(self, names: list[str]) -> Cells:
        """The other tree's."""
        return self.tree.named(names)
