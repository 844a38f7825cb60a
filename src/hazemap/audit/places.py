"""Where made-up people are: the middles of the cells of a small square, far apart from each other's edges."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Leaves
from hazemap.domains import Box, Quadtree

BOX = "13.0,52.0,13.3,52.15"


@dataclass(frozen=True)
class Square:
    """The square around `BOX`, cut `depth` times: 4^depth places. Places follow each other along the cells' order.

    >>> Square(2).size, Square(2).lon.shape
    (16, (16,))
    """

    depth: int

    @property
    def cells(self) -> str:
        """As `--cells` has it."""
        return f"quadtree:{self.depth}"

    @property
    def size(self) -> int:
        """How many places."""
        return int(4**self.depth)

    @cached_property
    def leaves(self) -> Leaves:
        """The cell of each place."""
        return Leaves.at_level(Quadtree.around(Box.parse(BOX), self.depth), self.depth)

    @cached_property
    def _middles(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        tree = Quadtree.around(Box.parse(BOX), self.depth)
        west, south, east, north = tree.bounds(self.leaves.cells)
        return (west + east) / 2, (south + north) / 2

    @property
    def lon(self) -> NDArray[np.float64]:
        """Longitudes in degrees."""
        return self._middles[0]

    @property
    def lat(self) -> NDArray[np.float64]:
        """Latitudes in degrees."""
        return self._middles[1]
