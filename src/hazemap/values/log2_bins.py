"""How large values are, whatever their sign: a line of base cells folded at 0, from each power of two to the next."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells
from hazemap.field_types import check_fields
from hazemap.values.float_grid import HALF, LEAST, MOST, PARTS, FloatGrid, added


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
