"""What bounding leaves of a table: sorted base cells with integer weights."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Redrawn, Tree
from hazemap.tables.cell_votes_index import CellVotesIndex
from hazemap.tables.contribution_bounding import Bounding
from hazemap.tables.summed_area_table import SummedAreaTable, rectangles_of, square_of


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

    def drawn(self, tree: Redrawn) -> CellVotesIndex:
        """The same votes under a tree that is drawn over their cells; the last such tree is remembered."""
        known: CellVotesIndex | None = self.__dict__.get("_drawn")
        if known is None or (known.tree is not tree and known.tree != tree):
            known = CellVotesIndex(self, tree)
            object.__setattr__(self, "_drawn", known)
        return known

    def redrawn(self, tree: Redrawn) -> "Votes":
        """The same votes in the base cells of a tree that is drawn over theirs: O(cells); the last is remembered."""
        known: tuple[Redrawn, Votes] | None = self.__dict__.get("_redrawn")
        if known is None or (known[0] is not tree and known[0] != tree):
            known = tree, self._redrawn_anew(tree)
            object.__setattr__(self, "_redrawn", known)
        return known[1]

    def _redrawn_anew(self, tree: Redrawn) -> "Votes":
        leaves, summed = tree.leaves, self.summed(tree)
        if summed is not None:
            inside = summed.inside(rectangles_of(tree, leaves))
            sums = np.append(inside, self.weights.sum() - inside.sum())
        else:
            sums = np.zeros(len(leaves) + 1, dtype=np.int64)
            np.add.at(sums, self.drawn(tree).positions, self.weights)  # the last place, −1, is `NOWHERE`
        kept = np.flatnonzero(sums[:-1])
        nowhere = sums[-1:] > 0
        cells = np.concatenate([np.full(1, NOWHERE)[nowhere], leaves[kept]])
        return Votes(cells, np.concatenate([sums[-1:][nowhere], sums[kept]]))

    def summed(self, tree: Redrawn) -> SummedAreaTable | None:
        """Their cumulative sums, if the tree's cells are rectangles and these are worth making; once for all trees."""
        square = square_of(tree, len(self.cells))
        if square is None:
            return None
        known: SummedAreaTable | None = self.__dict__.get("_summed")
        if known is None:
            known = SummedAreaTable.of(self.cells, self.weights, square)
            object.__setattr__(self, "_summed", known)
        return known


class VotesTable(Protocol):
    """Rows of people. Only a trust model may hold one."""

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """The exact votes of everyone in the base cells of `tree`: memory is O(cells + people), never O(rows)."""
        ...
