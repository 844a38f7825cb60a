"""A tree with a single cell: the whole domain."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Tree


@dataclass(frozen=True)
class WholeDomain:
    """All cells of a tree together, as one number: what a tree with several roots has above them.

    Rows in `NOWHERE` are not among it.

    >>> from hazemap.spatial.bounding_box import Box
    >>> from hazemap.spatial.h3_hexagons import Hexagons
    >>> tree = Hexagons(Box(2.2, 48.8, 2.5, 48.9), 6, 8)
    >>> len(tree.root), WholeDomain(tree).total(tree.children(tree.root)[:3], np.array([5, 2, 1]))
    (19, array([8]))
    """

    tree: Tree

    @property
    def size(self) -> int:
        """One."""
        return 1

    def locate(self, base: Cells) -> NDArray[np.int64]:
        """For each base cell 0; -1 for `NOWHERE`."""
        return np.where(base == NOWHERE, -1, 0)

    def total(self, base: Cells, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """All weight in the tree: O(base)."""
        return np.array([weights[base != NOWHERE].sum()], dtype=np.int64)
