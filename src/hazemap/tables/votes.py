"""What bounding leaves of a table: sorted base cells with integer weights."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Redrawn, Tree
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

    def redrawn(self, tree: Redrawn) -> "Votes":
        """The same votes in the base cells of a tree that is drawn over theirs: O(cells)."""
        leaves = tree.leaves
        at = tree.positions(self.cells)
        sums = np.zeros(len(leaves) + 1, dtype=np.int64)
        np.add.at(sums, at, self.weights)  # the last place, −1, is `NOWHERE`
        kept = np.flatnonzero(sums[:-1])
        nowhere = sums[-1:] > 0
        cells = np.concatenate([np.full(1, NOWHERE)[nowhere], leaves[kept]])
        return Votes(cells, np.concatenate([sums[-1:][nowhere], sums[kept]]))


class Table(Protocol):
    """Rows of people. Only a trust model may hold one."""

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """The exact votes of everyone in the base cells of `tree`: memory is O(cells + people), never O(rows)."""
        ...
