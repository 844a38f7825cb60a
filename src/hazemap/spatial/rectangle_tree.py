"""Rectangles of base cells (*pixels*) of a quadtree: what trees drawn over a quadtree have in common."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells, Growing, Redrawn, Tree
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.spatial.ellipsoidal_areas import latitudes, longitude, mercator_rectangles
from hazemap.spatial.quadtree import Quadtree


class Rectangles(NamedTuple):
    """Lines between pixels, counted from the west and from the north; int64[rectangles] each."""

    west: Ints
    north: Ints
    east: Ints
    south: Ints


@runtime_checkable
class Pixelled(Protocol):
    """A tree that says where its base cells lie among each other: column and row, counted from west and north."""

    def pixels(self, base: Cells) -> tuple[Ints, Ints]:
        """Column and row of each base cell; -1, -1 for `NOWHERE`."""


@runtime_checkable
class Cuttable(Tree, Redrawn, Growing, Protocol):
    """A tree of rectangles of pixels that is cut while it is asked. Its `base` is `Pixelled`."""

    def rectangles(self, cells: Cells) -> Rectangles:
        """The pixels of each cell."""

    def cut(self, cells: Cells, axis: NDArray[Any], at: NDArray[Any]) -> "Cuttable":
        """The same tree with more cells cut: in a direction (0 west from east, 1 north from south), on a line."""


def bounds(square: Quadtree, edges: Rectangles) -> tuple[Floats, Floats, Floats, Floats]:
    """West, south, east and north in degrees, to the last bit those of the quadtree's own cells."""
    share = 0.5**square.depth
    west, east = (longitude(square.left + square.side * (_floats(line) * share)) for line in (edges.west, edges.east))
    north, south = (
        latitudes(square.top + square.side * (_floats(line) * share)) for line in (edges.north, edges.south)
    )
    return west, south, east, north


class PixelTree(ABC):
    """A tree of rectangles of pixels: what follows from the rectangles of its cells."""

    base: Quadtree

    @abstractmethod
    def rectangles(self, cells: Cells) -> Rectangles:
        """The pixels of each cell."""

    def bounds(self, cells: Cells) -> tuple[Floats, Floats, Floats, Floats]:
        """West, south, east and north of each cell in degrees; neighbours share an edge to the last bit."""
        return bounds(self.base, self.rectangles(cells))

    def area(self, cells: Cells) -> Floats:
        """Geodesic area of each cell on the WGS 84 ellipsoid, in square metres."""
        edges, pixel = self.rectangles(cells), self.base.side * 0.5**self.base.depth
        width, height = _floats(edges.east - edges.west) * pixel, _floats(edges.south - edges.north) * pixel
        return mercator_rectangles(self.base.top + _floats(edges.north) * pixel, width, height)

    def outlines(self, cells: Cells) -> NDArray[Any]:
        """Each cell as a rectangle in longitude and latitude."""
        import shapely

        boxes: NDArray[Any] = shapely.box(*self.bounds(cells))
        return boxes


def _floats(lines: Ints) -> Floats:
    return np.asarray(lines, dtype=np.float64)
