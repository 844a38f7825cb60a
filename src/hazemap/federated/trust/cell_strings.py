"""Cells as the bit strings that one report holds (Poplar1): their paths from the root, and what servers ask for.

The first bit says whether a person is nowhere. Then comes the number of the first cell among the tree's roots, and
for each level down the number of the child among its siblings. A last bit is 0, and is never asked for: so all sums
are in one field, that of inner nodes.
"""

from dataclasses import dataclass

import numpy as np

from hazemap.cells import NOWHERE, Cells, Tree, distinct
from hazemap.federated.trust.prefix_walk import string_bits
from hazemap.machine_code.arrays import Ints, Words
from hazemap.vdaf.poplar1_parameter import Poplar1Parameter


@dataclass(frozen=True)
class CellStrings:
    """The strings of a tree's cells.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> strings = CellStrings(Quadtree.world(depth=3))
    >>> strings.bits, strings.of_cells(strings.tree.children(strings.tree.root), 1).tolist()
    (8, [0, 1, 2, 3])
    >>> strings.of_people(np.array([64, 127, 0], dtype=np.uint64)).tolist()
    [0, 126, 128]
    """

    tree: Tree

    @property
    def bits(self) -> int:
        """Of a person's string."""
        return string_bits(self.tree) + 1

    def length(self, level: int) -> int:
        """Bits of a cell's string at a level: the first ones of the strings of whoever is in it."""
        roots = max(len(self.tree.root) - 1, 0).bit_length()
        return 1 + roots + (level * self._step)

    def of_people(self, base: Cells) -> Words:
        """What people in these base cells, or `NOWHERE`, report. O(people x depth)."""
        found = np.full(len(base), np.uint64(1) << np.uint64(self.bits - 1))
        somewhere = base != NOWHERE
        found[somewhere] = self.of_cells(base[somewhere], self.tree.depth) << np.uint64(1)
        return found

    def of_cells(self, cells: Cells, level: int) -> Words:
        """The strings of cells of one level, as numbers of `length(level)` bits. O(cells x level)."""
        found, step = np.zeros(len(cells), dtype=np.uint64), np.uint64(self._step)
        for up in range(level):
            found |= _places(self.tree, cells) << (np.uint64(up) * step)
            cells = self.tree.parent(cells)
        return found | np.searchsorted(self.tree.root, cells).astype(np.uint64) << (np.uint64(level) * step)

    def parameter(self, level: int, cells: Cells) -> tuple[Poplar1Parameter, Ints]:
        """What asks how many are in each of some cells of a level, and, last, how many are nowhere.

        Also the place of each cell among the prefixes, which ascend.
        """
        strings = self.of_cells(cells, level)
        order = np.argsort(strings)
        places = np.empty(len(cells), dtype=np.int64)
        places[order] = np.arange(len(cells))
        nowhere = np.uint64(1) << np.uint64(self.length(level) - 1)
        return Poplar1Parameter(self.length(level) - 1, np.append(strings[order], nowhere)), places

    @property
    def _step(self) -> int:
        """Bits a level."""
        roots = max(len(self.tree.root) - 1, 0).bit_length()
        return (string_bits(self.tree) - 1 - roots) // max(self.tree.depth, 1)


def _places(tree: Tree, cells: Cells) -> Words:
    """The place of each cell among the children of its parent."""
    siblings = tree.children(distinct(tree.parent(cells)))
    families = tree.parent(siblings)
    first = np.flatnonzero(np.concatenate([[True], families[1:] != families[:-1]])[: len(families)])
    sizes: Ints = np.diff(np.append(first, len(siblings)))
    place = np.arange(len(siblings)) - np.repeat(first, sizes)
    order = np.argsort(siblings)
    found: Words = place[order[np.searchsorted(siblings[order], cells)]].astype(np.uint64)
    return found
