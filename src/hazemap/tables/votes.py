"""What bounding leaves of a table: sorted base cells with integer weights."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells, Tree
from hazemap.tables.bounding import Bounding


@dataclass(frozen=True, eq=False)
class Votes:
    """Base cells in ascending order, none twice, uint64; and the weight in each, int64."""

    cells: Cells
    weights: NDArray[np.int64]

    @classmethod
    def gathered(cls, cells: Cells, weights: NDArray[np.int64]) -> "Votes":
        """From cells in any order, some perhaps several times: O(n log n)."""
        unique, at = np.unique(cells, return_inverse=True)
        sums = np.zeros(len(unique), dtype=np.int64)
        np.add.at(sums, at, weights)
        return cls(unique, sums)


class Table(Protocol):
    """Rows of people. Only a trust model may hold one."""

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """The exact votes of everyone in the base cells of `tree`: memory is O(cells + people), never O(rows)."""
        ...
