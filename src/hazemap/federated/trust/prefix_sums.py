"""What a walk down a prefix tree counted, or one server's shares of it, and the sums that a question asks of that.

Adding up shares is free: noise goes on the sums of a question, not on the counts below them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Leaves
from hazemap.encoders import Concatenation, Counts, Encoder
from hazemap.errors import Unanswerable
from hazemap.machine_code.arrays import Bools
from hazemap.spatial.whole_domain import WholeDomain

WholeNumbers = NDArray[np.object_]
"""Of any size, such as sums of elements of a field that are yet to be reduced."""


@dataclass(frozen=True, eq=False)
class LevelCounts:
    """Counts of some cells of one level, in their ascending order, and of whoever is nowhere.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> tree = Quadtree.world(depth=3)
    >>> counts = LevelCounts(Leaves.at_level(tree, 1), 1, [10, 20, 30, 40], nowhere=5)
    >>> known, sums = counts.within(Leaves(tree, np.array([1, 5, 16], dtype=np.uint64)))
    >>> known.tolist(), sums.tolist()
    ([True, True, False], [100, 20, 0])
    """

    cells: Leaves
    level: int
    counts: Sequence[int]
    nowhere: int

    def within(self, asked: Leaves) -> tuple[Bools, WholeNumbers]:
        """Which cells these fill, and for those the sums of all counts in them. O(cells x log counts)."""
        begins, ends = asked.spans
        first, last = self.cells.stretches
        at = np.searchsorted(first, begins, "right") - 1
        known = (asked.levels >= 0) & (asked.levels <= self.level) & (at >= 0) & (last[at] >= ends)
        sums = np.zeros(asked.size, dtype=np.object_)
        here = np.searchsorted(self.cells.spans[0], begins[known])
        there = np.searchsorted(self.cells.spans[0], ends[known], "right")
        sums[known] = self._until[there] - self._until[here]
        return known, sums

    @cached_property
    def _until(self) -> WholeNumbers:
        return np.array(list(accumulate(self.counts, initial=0)), dtype=np.object_)


def asked_sums(encoder: Encoder, levels: Sequence[LevelCounts]) -> WholeNumbers:
    """The sums that a question asks, from the least deep level that knows each cell; `Unanswerable` if none does.

    A person counts in the deepest of the cells asked that holds them, as everywhere. O(cells x levels x log counts).
    """
    if isinstance(encoder, Concatenation):
        parts = zip(encoder.weights, encoder.parts, strict=True)
        return np.concatenate([weight * asked_sums(part, levels) for weight, part in parts])
    if isinstance(encoder, Counts) and isinstance(encoder.cells, WholeDomain):
        whole = asked_sums(Counts(_leaves(encoder.cells), encoder.bounding), levels)
        return np.array([whole.sum()], dtype=np.object_)
    if not isinstance(encoder, Counts) or not isinstance(encoder.cells, Leaves):
        raise Unanswerable("one report answers counts of listed cells")
    asked = encoder.cells
    missing = asked.cells != NOWHERE
    sums = np.full(asked.size, levels[-1].nowhere if levels else 0, dtype=np.object_)
    for counts in sorted(levels, key=lambda each: each.level):
        known, found = counts.within(asked)
        sums[known & missing] = found[known & missing]
        missing &= ~known
    if missing.any() or not levels:
        raise Unanswerable(f"{int(missing.sum()):,} cells are no unions of cells that the servers counted")
    return asked.own(sums)


def _leaves(whole: WholeDomain) -> Leaves:
    cells: Cells = whole.tree.root
    return Leaves(whole.tree, cells)
