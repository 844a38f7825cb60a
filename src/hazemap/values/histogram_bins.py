"""All numbers as a line of cells by sign and size, and its partitions into histogram bins and powers of two."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Columns
from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.spatial.bounding_box import Box, coordinates
from hazemap.temporal.time_slots import Always, Slots
from hazemap.values.rows_with_values import values_and_slots

LEAST, MOST = -30, 40
"""Numbers below 2^LEAST count as 0, and those of 2^MOST and more as the largest number."""

EVER = Always()
PARTS = 1 << 8
"""Equal parts of each octave, from a power of two to the next."""

HALF = (MOST - LEAST) * PARTS
"""How many cells there are for each sign."""


class OneLevelTree(ABC):
    """A tree of cells that are numbered from 1 and not cut any further: all of them are its root."""

    depth = 0
    what: str
    """What one of its cells is, for messages."""
    named_by: str

    @property
    @abstractmethod
    def size(self) -> int:
        """How many cells."""

    @abstractmethod
    def names(self, cells: Cells) -> list[str]:
        """What each cell is called."""

    @cached_property
    def root(self) -> Cells:
        """All cells."""
        return np.arange(1, self.size + 1, dtype=np.uint64)

    def children(self, cells: Cells) -> Cells:
        """`InputError`: they are not cut any further."""
        raise InputError(f"{self.what} cannot be cut any further; found {len(cells)} to cut")

    def parent(self, cells: Cells) -> Cells:
        """`InputError`: they are the root."""
        raise InputError(f"{self.what} has no parent; found {len(cells)} to look for")

    def level(self, cells: Cells) -> NDArray[np.int64]:
        """0; −1 for what is no cell."""
        return np.where((cells >= 1) & (cells <= np.uint64(self.size)), 0, -1)

    def span(self, cells: Cells) -> tuple[Cells, Cells]:
        """Each stands for itself."""
        return cells, cells

    def named(self, names: list[str]) -> Cells:
        """The cells with these names: O(all cells)."""
        known = {name: cell for cell, name in enumerate(self.names(self.root), 1)}
        if not set(names) <= set(known):
            raise InputError(f"{self.what} is named by {self.named_by}")
        return np.array([known[name] for name in names], dtype=np.uint64)


@dataclass(frozen=True)
class FloatGrid(OneLevelTree):
    """All numbers as a line of base cells, 1 to 35,841 in ascending order: each octave of each sign in 256 equal parts.

    A public list, the same for every table: 0 is in the middle; what lies outside of ±2⁴⁰ is in the outermost cells. A
    row without a number, outside the `box` (where there is one) or in no slot lies `NOWHERE`. So the rules that bound
    people in space bound them here: with one vote a person, every person spreads theirs as their values are spread.

    >>> line = FloatGrid()
    >>> cells = line.cell_at({"value": np.array([-3.0, 0.0, 20.0, np.nan])}, 0)
    >>> cells, [(float(line.below(cell)), float(line.below(cell + 1))) for cell in cells[[0, 2]]]
    (array([ 9856, 17921, 26690,     0], dtype=uint64), [(-3.0078125, -3.0), (20.0, 20.0625)])
    """

    box: Box | None = None
    slots: Slots = EVER

    what = "a part of a line of numbers"
    named_by = "the number at which it begins"

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def size(self) -> int:
        """How many base cells."""
        return 2 * HALF + 1

    def cell_at(self, columns: Columns, level: int) -> Cells:
        """The cell of each row's value: O(rows)."""
        if level != 0:
            raise InputError(f"numeric bins have level 0, not {level}")
        value, _, known = values_and_slots(columns, self.slots)
        if self.box is not None:
            known &= self.box.holds(*coordinates(columns))
        return np.where(known, self.cells_of(np.where(known, value, 0.0)), NOWHERE)

    def cells_of(self, values: NDArray[np.float64]) -> Cells:
        """The cells of numbers, infinite ones perhaps: O(values)."""
        size = np.minimum(np.abs(values), 2.0**MOST * (1 - 2.0**-50))
        mantissa, exponent = np.frexp(np.maximum(size, 2.0**LEAST))
        within = np.minimum(((2 * mantissa - 1) * PARTS).astype(np.int64), PARTS - 1)
        number = np.where(size < 2.0**LEAST, 0, 1 + (exponent.astype(np.int64) - 1 - LEAST) * PARTS + within)
        return (HALF + 1 + np.where(values < 0, -number, number)).astype(np.uint64)

    def below(self, cell: int) -> float:
        """The number at which a cell begins, 1 to size + 1; that of 0 begins at 0."""
        number = int(cell) - (HALF + 1)
        sign, steps = (1, number - 1) if number > 0 else (-1, -number)
        octave, part = divmod(steps, PARTS)
        return sign * 2.0 ** (LEAST + octave) * (1 + part / PARTS) if number else 0.0

    def area(self, cells: Cells) -> NDArray[np.float64]:
        """The width of each."""
        return np.array([self.below(cell + 1) - self.below(cell) for cell in cells.tolist()])

    def outlines(self, cells: Cells) -> NDArray[Any]:
        """`InputError`: numbers are no places."""
        raise InputError(f"{len(cells)} numeric bins cannot be drawn on a map: they are not places")

    def names(self, cells: Cells) -> list[str]:
        """From where each is."""
        return [f"{self.below(cell)!r}" for cell in cells.tolist()]


def added(at: NDArray[np.int64], weights: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """The weight at each position, int64[size]; what is at −1 is left out. O(weights)."""
    sums = np.zeros(size, dtype=np.int64)
    np.add.at(sums, at[at >= 0], weights[at >= 0])
    return sums


@dataclass(frozen=True)
class HistogramBins:
    """A partition of the line into bins: bin i begins with the cell `starts[i]` and ends before the next one.

    The first bin begins where the line does, and the last one ends where it ends.

    >>> signs = HistogramBins(FloatGrid(), (1, 17921, 17922))
    >>> signs.locate(signs.tree.cell_at({"value": np.array([-7.0, 0.0, 0.25])}, 0))
    array([0, 1, 2])
    """

    tree: FloatGrid
    starts: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "starts", tuple(int(start) for start in self.starts))
        rising = all(a < b for a, b in pairwise(self.starts))
        if not self.starts or self.starts[0] != 1 or not rising or self.starts[-1] > self.tree.size:
            raise InputError(f"bins must begin at increasing cells, the first at 1 and none above {self.tree.size:,}")

    @classmethod
    def between(cls, tree: FloatGrid, low: float, high: float, bins: int) -> "HistogramBins":
        """About `bins` bins of equal width between two numbers, one bin below and one above.

        Edges are edges of base cells; where these are wider than the bins, there are fewer bins.
        """
        wanted = np.linspace(low, high, bins + 1)
        edges = tree.cells_of(wanted).astype(np.int64)
        # A negative edge of a cell is the last number in it: the bin above begins with the next cell.
        edges += [int(tree.below(cell + 1) <= edge < 0) for cell, edge in zip(edges.tolist(), wanted, strict=True)]
        inner = np.unique(edges).tolist()
        last = inner[-1] if len(inner) > 1 else inner[-1] + 1
        first = max(inner[0], 2)
        middle = [cell for cell in inner[1:-1] if first < cell < last]
        return cls(tree, (1, first, *middle, min(max(last, first + 1), tree.size)))

    @property
    def size(self) -> int:
        """How many bins."""
        return len(self.starts)

    @property
    def edges(self) -> NDArray[np.float64]:
        """At which number each begins, and where the last one ends; float64[size + 1]."""
        return np.array([self.tree.below(start) for start in (*self.starts, self.tree.size + 1)])

    def locate(self, base: Cells) -> NDArray[np.int64]:
        """For each base cell the position of its bin; −1 for `NOWHERE`."""
        return np.searchsorted(np.array(self.starts, dtype=np.uint64), base, "right") - 1

    def total(self, base: Cells, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """The weight in each bin: O(base)."""
        return added(self.locate(base), weights, self.size)


@dataclass(frozen=True)
class Log2Bins:
    """0 first, then what is between ±2^e and ±2^(e + 1), e = −30 … 39; larger numbers are in the last one.

    >>> sizes = Log2Bins(FloatGrid())
    >>> sizes.locate(sizes.tree.cell_at({"value": np.array([0.0, 5.0, -7.0, 8.0])}, 0)), sizes.size
    (array([ 0, 33, 33, 34]), 71)
    """

    tree: FloatGrid

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def size(self) -> int:
        """How many."""
        return 1 + MOST - LEAST

    def upto(self, octave: int) -> float:
        """The size at which one ends."""
        return 2.0 ** (LEAST + octave)

    def locate(self, base: Cells) -> NDArray[np.int64]:
        """For each base cell its octave; −1 for `NOWHERE`."""
        steps = np.abs(base.astype(np.int64) - (HALF + 1))
        return np.where(base > 0, -(-steps // PARTS), -1)

    def total(self, base: Cells, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """The weight in each octave: O(base)."""
        return added(self.locate(base), weights, self.size)
