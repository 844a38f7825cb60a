"""Which square of a Web-Mercator quadtree holds a point: the one hot loop of the domain.

Columns and rows are decided by comparing degrees with the degrees of the edges, which `longitudes` and
`latitudes` give: so outlines and cells agree to the last bit. This module imports numba; the quadtree
imports it inside its methods.
"""

import math

import numpy as np
from numpy.typing import NDArray

from hazemap.compiled import compiled
from hazemap.domains import geodesy

longitude = compiled(geodesy.longitude)
latitude = compiled(geodesy.latitude)


@compiled
def longitudes(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Degrees of unit x."""
    degrees = np.empty_like(x)
    for i in range(x.size):
        degrees[i] = longitude(x[i])
    return degrees


@compiled
def latitudes(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Degrees of unit y."""
    degrees = np.empty_like(y)
    for i in range(y.size):
        degrees[i] = latitude(y[i])
    return degrees


@compiled
def spread(number: int) -> np.uint64:
    """The lower 32 bits of a number with a zero before each of them."""
    bits = np.uint64(number)
    bits = (bits | (bits << np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    bits = (bits | (bits << np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    bits = (bits | (bits << np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    bits = (bits | (bits << np.uint64(2))) & np.uint64(0x3333333333333333)
    return (bits | (bits << np.uint64(1))) & np.uint64(0x5555555555555555)


@compiled
def squares(
    lon: NDArray[np.float64],
    lat: NDArray[np.float64],
    left: float,
    top: float,
    side: float,
    depth: int,
    level: int,
) -> NDArray[np.uint64]:
    """The cell of each point at this level of the quadtree (left, top, side, depth); 0 for none.

    A cell owns its western and northern edge, so a point lies in one cell; the root owns all its edges.
    """
    cells = np.zeros(lon.size, dtype=np.uint64)
    count = 1 << depth
    width = 1.0 / count
    west, east = longitude(left), longitude(left + side)
    north, south = latitude(top), latitude(top + side)
    scale = count / side
    # Rounding moves a row coordinate by less than this: nearer to an edge, the edge's degrees decide.
    doubt = min(0.5, 1e-14 * scale)
    rise = 2 * (depth - level)
    for i in range(lon.size):
        x, y = lon[i], lat[i]
        if not (west <= x <= east and south <= y <= north):  # NaN compares false
            continue
        column = min(max(int((x / 360.0 + 0.5 - left) * scale), 0), count - 1)
        while column > 0 and x < longitude(left + side * (column * width)):
            column -= 1
        while column < count - 1 and x >= longitude(left + side * ((column + 1) * width)):
            column += 1
        sine = math.sin(math.radians(y))  # three times as fast as asinh(tan)
        height = (0.5 - math.log((1 + sine) / (1 - sine)) / (4 * math.pi) - top) * scale
        row = min(max(int(height), 0), count - 1)
        if not doubt < height - row < 1 - doubt:
            while row > 0 and y > latitude(top + side * (row * width)):
                row -= 1
            while row < count - 1 and y <= latitude(top + side * ((row + 1) * width)):
                row += 1
        finest = (np.uint64(1) << np.uint64(2 * depth)) | spread(column) | (spread(row) << np.uint64(1))
        cells[i] = finest >> np.uint64(rise)
    return cells
