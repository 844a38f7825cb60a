"""Which square of a Web-Mercator quadtree holds a point: the one hot loop of the domain.

Columns and rows are decided by comparing degrees with the degrees of the edges, which
`geodesy` gives: so outlines and cells agree to the last bit. This module imports numba; the quadtree
imports it inside its methods.
"""

import math

import numpy as np
from numpy.typing import NDArray

from hazemap.jit import compiled
from hazemap.spatial import mercator_formulas

longitude = compiled(mercator_formulas.longitude)
latitude = compiled(mercator_formulas.latitude)


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
def table_of_rows(top: float, side: float, count: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The degrees of the edges of all rows, north to south; and the first row of each of 4 · count equal bands."""
    edges = np.empty(count + 1)
    for row in range(count + 1):
        edges[row] = latitude(top + side * (row * (1.0 / count)))
    starts = np.empty(4 * count, dtype=np.int64)
    row = 0
    for band in range(starts.size):
        begin = edges[0] - (edges[0] - edges[count]) * band / starts.size
        while row < count - 1 and begin <= edges[row + 1]:
            row += 1
        starts[band] = row
    return edges, starts


@compiled
def squares(  # noqa: PLR0912 - two ways to a row, each mended at the edges
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
    # Rounding moves a coordinate by less than this: nearer to an edge, the edge's degrees decide.
    doubt = min(0.5, 1e-14 * scale)
    rise = 2 * (depth - level)
    edges, starts = np.empty(0), np.empty(0, dtype=np.int64)
    if 16 * count <= lon.size:  # it pays to write the rows down first
        edges, starts = table_of_rows(top, side, count)
    bins = starts.size / (north - south)
    for i in range(lon.size):
        x, y = lon[i], lat[i]
        if not (west <= x <= east and south <= y <= north):  # NaN compares false
            continue
        across = (x / 360.0 + 0.5 - left) * scale
        column = min(max(int(across), 0), count - 1)
        if not doubt < across - column < 1 - doubt:
            while column > 0 and x < longitude(left + side * (column * width)):
                column -= 1
            while column < count - 1 and x >= longitude(left + side * ((column + 1) * width)):
                column += 1
        if starts.size:
            row = starts[min(int((north - y) * bins), starts.size - 1)]
            while row > 0 and y > edges[row]:
                row -= 1
            while row < count - 1 and y <= edges[row + 1]:
                row += 1
        else:
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
