"""The nodes of a binary tree on the way to prefixes of a level: what is walked once for all reports."""

from dataclasses import dataclass

import numpy as np

from hazemap.errors import Refused
from hazemap.machine_code.arrays import Ints, Words


@dataclass(frozen=True, eq=False)
class PrefixTree:
    """Every node between some start nodes and sorted prefixes below them.

    Step `s` of a level leads to child `s % 2` of node `s // 2` of the level above, in that level's order. The steps of
    the i-th level below the start are `steps[offsets[i] : offsets[i + 1]]`; the last level has the prefixes.

    >>> tree = PrefixTree.below(np.array([0], dtype=np.uint64), -1, np.array([1, 4, 5], dtype=np.uint64), 2)
    >>> tree.start.tolist(), [tree.of_level(i).tolist() for i in range(3)]
    ([0], [[0, 1], [0, 2], [1, 2, 3]])
    """

    start: Ints
    """which of the nodes above are begun from"""
    steps: Ints
    offsets: Ints

    @classmethod
    def below(cls, nodes: Words, node_level: int, prefixes: Words, level: int) -> "PrefixTree":
        """The tree from nodes of one level (the root's is -1) to prefixes of a deeper one. O(levels x prefixes)."""
        each = [prefixes >> np.uint64(level - depth) for depth in range(max(node_level, 0), level + 1)]
        each = [numbers[np.flatnonzero(np.diff(numbers, prepend=~numbers[:1]))] for numbers in each]
        above = each.pop(0) if node_level >= 0 else np.zeros(min(1, prefixes.size), dtype=np.uint64)
        start = np.searchsorted(nodes, above)
        if start.size and (start[-1] >= nodes.size or not np.array_equal(nodes[start], above)):
            raise Refused("a prefix does not descend from those of the level before")
        steps = [np.empty(0, dtype=np.int64)]
        for numbers in each:
            parents = np.searchsorted(above, numbers >> np.uint64(1))
            steps.append(2 * parents + (numbers & np.uint64(1)).astype(np.int64))
            above = numbers
        offsets = np.cumsum([len(part) for part in steps])
        return cls(start, np.concatenate(steps), offsets)

    def of_level(self, index: int) -> Ints:
        """The steps of the level so many below the first one."""
        return self.steps[self.offsets[index] : self.offsets[index + 1]]

    def without_last(self) -> "PrefixTree":
        """The tree down to the level above the prefixes."""
        return PrefixTree(self.start, self.steps[: self.offsets[-2]], self.offsets[:-1])
