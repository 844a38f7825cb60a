"""A line of base cells cut into stretches: what a histogram of a value counts over."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells
from hazemap.errors import InputError
from hazemap.values.float_grid import FloatGrid, added


@dataclass(frozen=True)
class HistogramBins:
    """Every base cell of a line in one stretch: stretch i begins with the cell `starts[i]`, and ends before the next.

    The first one begins where the line does, the last one ends where it ends.

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
            raise InputError(f"stretches begin at rising cells, the first at 1 and none above {self.tree.size:,}")

    @classmethod
    def between(cls, tree: FloatGrid, low: float, high: float, bins: int) -> "HistogramBins":
        """About so many of equal width between two numbers, one of all below and one of all above.

        Edges are edges of base cells; where these are wider than the bins, there are fewer bins.
        """
        wanted = np.linspace(low, high, bins + 1)
        edges = tree.cells_of(wanted).astype(np.int64)
        # A negative edge of a cell is the last number in it: the stretch above begins with the next cell.
        edges += [int(tree.below(cell + 1) <= edge < 0) for cell, edge in zip(edges.tolist(), wanted, strict=True)]
        inner = np.unique(edges).tolist()
        last = inner[-1] if len(inner) > 1 else inner[-1] + 1
        first = max(inner[0], 2)
        middle = [cell for cell in inner[1:-1] if first < cell < last]
        return cls(tree, (1, first, *middle, min(max(last, first + 1), tree.size)))

    @property
    def size(self) -> int:
        """How many stretches."""
        return len(self.starts)

    @property
    def edges(self) -> NDArray[np.float64]:
        """At which number each begins, and where the last one ends; float64[size + 1]."""
        return np.array([self.tree.below(start) for start in (*self.starts, self.tree.size + 1)])

    def locate(self, base: Cells) -> NDArray[np.int64]:
        """For each base cell the position of its stretch; −1 for `NOWHERE`."""
        return np.searchsorted(np.array(self.starts, dtype=np.uint64), base, "right") - 1

    def total(self, base: Cells, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """The weight in each stretch: O(base)."""
        return added(self.locate(base), weights, self.size)
