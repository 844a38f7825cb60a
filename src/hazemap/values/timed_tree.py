"""A tree of cells whose rows lie in a slot too: what rules bound where maps have time."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Columns, Tree
from hazemap.errors import InputError, TableError
from hazemap.field_types import check_fields
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.spatial.districts import PATH_BITS, Districts
from hazemap.spatial.h3_hexagons import FINEST, Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.temporal.time_slots import Slots, Spans
from hazemap.values.histogram_bins import OneLevelTree


class PlacesAndSlots(NamedTuple):
    """Of each row, or of each vote, the base cell of the inner tree and the slot (−1 with `NOWHERE`)."""

    cells: Cells
    slots: Ints


@dataclass(frozen=True)
class TimedTree(OneLevelTree):
    """Each base cell of a tree in each slot, one number each: who is twice in a place, at two hours, is in two.

    So every bounding rule covers all slots together: K rows a person are K rows at all hours, and one vote is shared
    out over places *and* slots. A row outside the cells, without a time, or in no slot lies `NOWHERE`. The slots of
    one place follow each other, so votes in ascending order are in that of their places too.

    >>> from hazemap.temporal.time_slots import Clock
    >>> tree = TimedTree(Quadtree.world(depth=1), Clock.hours("UTC"))
    >>> rows = {"lon": np.array([2.3, 2.3]), "lat": np.array([48.8, 48.8]), "time": np.array([3600.0, np.nan])}
    >>> tree.cell_at(rows, 0), tree.taken_apart(tree.cell_at(rows, 0)).slots, tree.size
    (array([26,  0], dtype=uint64), array([ 1, -1]), 96)
    """

    tree: Tree
    slots: Slots

    what = "a place in a slot"
    named_by = "its cell and its slot"

    def __post_init__(self) -> None:
        check_fields(self)
        if not self.slots.timed:
            raise InputError("maps with time need slots, such as hour-of-day")
        if not isinstance(self.tree, Quadtree | Hexagons | Districts):
            raise InputError("maps with time have squares, hexagons or districts as cells")
        if self.size >= 1 << 63:
            raise InputError(
                f"{self.many:,} slots of cells this fine are more numbers than 63 bits hold: "
                "choose fewer slots, coarser cells or a smaller box"
            )

    @cached_property
    def many(self) -> int:
        """How many slots; the names of many stretches of time take a second."""
        return len(self.slots.edges) - 1 if isinstance(self.slots, Spans) else len(self.slots.names)

    @cached_property
    def _grain(self) -> int:
        """By how much the numbers of two base cells differ at least."""
        if isinstance(self.tree, Hexagons):
            return 1 << 3 * (FINEST - self.tree.finest)
        return 1 << int(PATH_BITS) if isinstance(self.tree, Districts) else 1

    @cached_property
    def _ends(self) -> tuple[int, int]:
        """The first and the last number of any base cell."""
        first, last = self.tree.span(self.tree.root)
        return int(first.min()), int(last.max())

    @property
    def size(self) -> int:
        """How many numbers places and slots may have."""
        first, last = self._ends
        return ((last - first) // self._grain + 1) * self.many

    def cell_at(self, columns: Columns, level: int) -> Cells:
        """The number of each row: 1 + its base cell's place · slots + its slot. O(rows)."""
        if level != 0:
            raise InputError(f"places in slots have level 0, not {level}")
        if "time" not in columns:
            raise TableError(f"these rows have no time, which slots need: found {', '.join(sorted(columns))}")
        slot = self.slots.at(np.asarray(columns["time"], dtype=np.float64))
        return self.numbered(PlacesAndSlots(self.tree.cell_at(columns, self.tree.depth), slot))

    def numbered(self, found: PlacesAndSlots) -> Cells:
        """The number of each place in each slot; `NOWHERE` where either is none."""
        known = (found.cells != NOWHERE) & (found.slots >= 0)
        place = (np.where(known, found.cells, self._ends[0]) - np.uint64(self._ends[0])) // np.uint64(self._grain)
        slot = np.where(known, found.slots, 0).astype(np.uint64)
        return np.where(known, np.uint64(1) + place * np.uint64(self.many) + slot, NOWHERE)

    def taken_apart(self, base: Cells) -> PlacesAndSlots:
        """Base cell and slot of each number: what `numbered` took."""
        known = base != NOWHERE
        place, slot = np.divmod(np.where(known, base, 1) - np.uint64(1), np.uint64(self.many))
        cells = place * np.uint64(self._grain) + np.uint64(self._ends[0] + self._rest)
        return PlacesAndSlots(np.where(known, cells, NOWHERE), np.where(known, slot.astype(np.int64), -1))

    @cached_property
    def _rest(self) -> int:
        """What every base cell has beyond the last multiple of the grain."""
        if isinstance(self.tree, Hexagons):
            return self._grain - 1  # digits that are not used are 7; spans begin where they are 0
        return int(isinstance(self.tree, Districts))

    def area(self, cells: Cells) -> Floats:
        """That of the place."""
        return self.tree.area(self.taken_apart(cells).cells)

    def outlines(self, cells: Cells) -> NDArray[Any]:
        """That of the place."""
        return self.tree.outlines(self.taken_apart(cells).cells)

    def names(self, cells: Cells) -> list[str]:
        """Cell and slot."""
        places, slots = self.taken_apart(cells)
        of = self.slots.names
        return [f"{name} {of[slot]}" for name, slot in zip(self.tree.names(places), slots.tolist(), strict=True)]
