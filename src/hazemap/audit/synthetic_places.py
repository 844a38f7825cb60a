"""Where made-up people are: the middles of the cells of a small square, far from their edges, or their corners."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Leaves
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

BOX = "13.0,52.0,13.3,52.15"


@dataclass(frozen=True)
class Square:
    """The square around `BOX`, cut `depth` times: 4^depth places. Places follow each other along the cells' order.

    >>> Square(2).size, Square(2).lon.shape
    (16, (16,))
    """

    depth: int
    box: str = BOX
    corners: bool = False

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
        return Leaves.at_level(Quadtree.around(Box.parse(self.box), self.depth), self.depth)

    @cached_property
    def _middles(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        tree = Quadtree.around(Box.parse(self.box), self.depth)
        west, south, east, north = tree.bounds(self.leaves.cells)
        if self.corners:
            return west, south
        return (west + east) / 2, (south + north) / 2

    @property
    def lon(self) -> NDArray[np.float64]:
        """Longitudes in degrees."""
        return self._middles[0]

    @property
    def lat(self) -> NDArray[np.float64]:
        """Latitudes in degrees."""
        return self._middles[1]


def quarters(box: str, depth: int) -> str:
    """Districts as GeoJSON: the cells of the square around a box, cut so often."""
    square = Square(depth, box)
    tree = square.leaves.tree
    west, south, east, north = (edge.tolist() for edge in cast(Quadtree, tree).bounds(square.leaves.cells))
    features = [
        {
            "type": "Feature",
            "properties": {"name": f"district {number}"},
            "geometry": {"type": "Polygon", "coordinates": [[[w, s], [e, s], [e, n], [w, n], [w, s]]]},
        }
        for number, (w, s, e, n) in enumerate(zip(west, south, east, north, strict=True))
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})
