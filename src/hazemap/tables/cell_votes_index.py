"""Votes under a tree that is drawn over their base cells: looked up once, whoever asks and how often."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Ints
from hazemap.cells import Redrawn
from hazemap.jit import once_compiled

if TYPE_CHECKING:
    from hazemap.tables.votes import Votes


class Groups(NamedTuple):
    """Votes in the order of the leaves that hold them: those in leaf i stand at start[i] … start[i + 1]."""

    start: Ints
    x: NDArray[np.int32]
    y: NDArray[np.int32]
    weights: Ints


@dataclass(frozen=True, eq=False)
class CellVotesIndex:
    """Where votes lie in a tree that is drawn over their base cells. A question that comes back finds it done.

    >>> from hazemap.spatial.binary_partition import BinaryPartition
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.tables.votes import Votes
    >>> square = Quadtree.world(depth=1)
    >>> halves = BinaryPartition.uncut(square).cut(np.array([1], dtype=np.uint64), np.array([0]), np.array([1]))
    >>> drawn = CellVotesIndex(Votes(square.children(square.root), np.array([5, 6, 7, 8])), halves)
    >>> drawn.positions, drawn.groups.weights
    (array([0, 1, 0, 1]), array([5, 7, 6, 8]))
    """

    votes: "Votes"
    tree: Redrawn

    @cached_property
    def positions(self) -> Ints:
        """Which of the tree's leaves holds each vote; -1 for none."""
        return self.tree.positions(self.votes.cells)

    @cached_property
    def groups(self) -> Groups:
        """The votes that lie in a leaf, with column and row of their pixels: O(votes + leaves)."""
        base = self.tree.base
        x, y = base.pixels(self.votes.cells)  # type: ignore[attr-defined]  # whoever asks knows what the tree is
        return Groups(*once_compiled(_group_loop)(self.positions, len(self.tree.leaves), x, y, self.votes.weights))


def _group_loop(leaf, leaves, x, y, weights):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """A counting sort: stable, O(votes + leaves)."""
    start = np.zeros(leaves + 1, dtype=np.int64)
    for i in range(len(leaf)):
        if leaf[i] >= 0:
            start[leaf[i] + 1] += 1
    start = np.cumsum(start)
    size = start[leaves]
    free = start.copy()
    columns, rows, sums = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int64)
    for i in range(len(leaf)):
        if leaf[i] >= 0:
            at = free[leaf[i]]
            free[leaf[i]] += 1
            columns[at], rows[at], sums[at] = x[i], y[i], weights[i]
    return start, columns, rows, sums
