"""Rectangles made of a quadtree's base cells, its *pixels*: what trees drawn over a quadtree have in common."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.domains.geodesy import mercator_rectangles
from hazemap.domains.quadtree import Quadtree

Numbers = NDArray[np.int64]


class Rectangles(NamedTuple):
    """Lines between pixels, counted from the west and from the north; int64[rectangles] each."""

    west: Numbers
    north: Numbers
    east: Numbers
    south: Numbers


def bounds(
    square: Quadtree, edges: Rectangles
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """West, south, east and north in degrees, to the last bit those of the quadtree's own cells."""
    from hazemap.domains.mercator import latitudes, longitudes

    share = 0.5**square.depth
    west, east = (longitudes(square.left + square.side * (_floats(line) * share)) for line in (edges.west, edges.east))
    north, south = (
        latitudes(square.top + square.side * (_floats(line) * share)) for line in (edges.north, edges.south)
    )
    return west, south, east, north


def areas(square: Quadtree, edges: Rectangles) -> NDArray[np.float64]:
    """Geodesic areas on the WGS 84 ellipsoid, in square metres."""
    pixel = square.side * 0.5**square.depth
    width, height = _floats(edges.east - edges.west) * pixel, _floats(edges.south - edges.north) * pixel
    return mercator_rectangles(square.top + _floats(edges.north) * pixel, width, height)


def outlines(square: Quadtree, edges: Rectangles) -> NDArray[Any]:
    """Rectangles in longitude and latitude."""
    import shapely

    boxes: NDArray[Any] = shapely.box(*bounds(square, edges))
    return boxes


def _floats(lines: Numbers) -> NDArray[np.float64]:
    return np.asarray(lines, dtype=np.float64)
