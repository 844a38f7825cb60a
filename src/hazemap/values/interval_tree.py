"""Intervals of a value, split recursively: the tree under a cumulative distribution."""

from dataclasses import dataclass
from functools import cached_property
from math import isfinite, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Columns
from hazemap.errors import InputError
from hazemap.machine_code.arrays import consecutive

_LEVEL = np.uint64(48)  # cells are numbered by level, then from the lowest interval on, from 1
_INDEX = np.uint64((1 << 48) - 1)
_ONE = np.uint64(1)
MOST_BINS = 1 << 24


@dataclass(frozen=True)
class IntervalTree:
    """`bins` equal intervals from `low` to `high`, under a tree: level i has `branchings[i − 1]` times as many.

    Level-uniform trees (Rameshwar et al. 2024): all cells of a level have equally many children, but for the last ones
    where the branchings multiply to more than `bins`. Rows have a column `value`; values outside are clipped to the
    ends, which are declared and never read from the data. NaN lies nowhere.

    >>> tree = IntervalTree(0, 65, bins=100, branchings=(10, 10))
    >>> tree.depth, tree.edges[[0, 50, 100]], len(tree.children(tree.root))
    (2, array([ 0. , 32.5, 65. ]), 10)
    >>> tree.names(tree.cell_at({"value": np.array([7.0, 70, -1])}, 1))
    ['1/1', '1/9', '1/0']
    """

    low: float
    high: float
    bins: int
    branchings: tuple[int, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "branchings", tuple(int(number) for number in self.branchings))
        if not (isfinite(self.low) and isfinite(self.high) and self.low < self.high):
            raise InputError(f"the lower bound of values must be below the upper one; found {self.low} and {self.high}")
        if not 1 <= self.bins <= MOST_BINS or not self.branchings or min(self.branchings) < 1:
            raise InputError(f"an interval tree has 1 to {MOST_BINS} bins, and branching factors of at least 1")
        if not self.bins <= prod(self.branchings) < 1 << 47:
            raise InputError(f"the branchings {self.branchings} do not reach {self.bins} bins")

    @property
    def depth(self) -> int:
        """Levels below the root."""
        return len(self.branchings)

    @cached_property
    def _widths(self) -> NDArray[np.int64]:
        """How many bins a cell of each level has."""
        return np.array([prod(self.branchings[level:]) for level in range(self.depth + 1)], dtype=np.int64)

    @property
    def edges(self) -> NDArray[np.float64]:
        """Where the bins begin, and where the last one ends; float64[bins + 1]."""
        return np.linspace(self.low, self.high, self.bins + 1)

    @property
    def root(self) -> Cells:
        """One cell, of all values."""
        return np.ones(1, dtype=np.uint64)

    def children(self, cells: Cells) -> Cells:
        """The intervals that each is cut into, in order."""
        level, index = self._taken_apart(cells)
        if len(cells) and level.max() >= self.depth:
            raise InputError("bins cannot be cut any further")
        parts = np.array(self.branchings, dtype=np.int64)[level]
        number = np.minimum(parts, -(-(self.bins - index * self._widths[level]) // self._widths[level + 1]))
        return _put_together(np.repeat(level + 1, number), consecutive(index * parts, number))

    def parent(self, cells: Cells) -> Cells:
        """The interval that each is a part of."""
        level, index = self._taken_apart(cells)
        if len(cells) and level.min() < 1:
            raise InputError("the root has no parent")
        return _put_together(level - 1, index // np.array(self.branchings, dtype=np.int64)[level - 1])

    def level(self, cells: Cells) -> NDArray[np.int64]:
        """0 for the root; −1 for what is no cell of this tree."""
        level, index = self._taken_apart(cells)
        within = (level <= self.depth) & (index >= 0)
        within &= index * self._widths[np.minimum(level, self.depth)] < self.bins
        return np.where(within, level, -1)

    def span(self, cells: Cells) -> tuple[Cells, Cells]:
        """The first and the last bin of each."""
        level, index = self._taken_apart(cells)
        width, deepest = self._widths[level], np.full(len(cells), self.depth)
        last = np.minimum((index + 1) * width, self.bins) - 1
        return _put_together(deepest, index * width), _put_together(deepest, last)

    def cell_at(self, columns: Columns, level: int) -> Cells:
        """The interval of a level that each row's `value` lies in, the upper end of a bin in the next one."""
        if "value" not in columns:
            raise InputError(f"intervals need a column named value; found {', '.join(sorted(columns)) or 'none'}")
        value = np.clip(np.asarray(columns["value"], dtype=np.float64), self.low, self.high)
        known = ~np.isnan(value)
        part = (np.where(known, value, self.low) - self.low) / (self.high - self.low)
        bins = np.minimum((part * self.bins).astype(np.int64), self.bins - 1)
        cells = _put_together(np.full(len(bins), level), bins // self._widths[level])
        return np.where(known, cells, NOWHERE)

    def area(self, cells: Cells) -> NDArray[np.float64]:
        """The width of each, in units of the value: what is spread evenly lies in intervals as they are wide."""
        first, last = self.span(cells)
        return (last - first + _ONE).astype(np.float64) * (self.high - self.low) / self.bins

    def outlines(self, cells: Cells) -> NDArray[Any]:
        """`InputError`: intervals of a value are no places."""
        raise InputError(f"{len(cells)} intervals of a value cannot be drawn on a map: they are not places")

    def names(self, cells: Cells) -> list[str]:
        """Level and number from 0 on, "2/37"."""
        level, index = self._taken_apart(cells)
        return [f"{a}/{b}" for a, b in zip(level.tolist(), index.tolist(), strict=True)]

    def named(self, names: list[str]) -> Cells:
        """The cells with these names; `InputError` for a name that is not one."""
        try:
            level, index = np.array([[int(part) for part in name.split("/")] for name in names]).reshape(-1, 2).T
            cells = _put_together(level, index)
            if (self.level(cells) != level).any() or self.names(cells) != names:
                raise ValueError
        except (ValueError, OverflowError) as error:
            raise InputError("write an interval as its level and number, such as 2/37") from error
        return cells

    def _taken_apart(self, cells: Cells) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Level, and number from 0 on (−1 for `NOWHERE`)."""
        numbers = np.asarray(cells, dtype=np.uint64)
        return (numbers >> _LEVEL).astype(np.int64), (numbers & _INDEX).astype(np.int64) - 1


def _put_together(level: NDArray[np.int64], index: NDArray[np.int64]) -> Cells:
    cells: Cells = (level.astype(np.uint64) << _LEVEL) + (index + 1).astype(np.uint64)
    return cells
