"""The hot loops of a Web-Mercator quadtree: which of its squares (*pixels*) contains a point, and trees over them.

Columns and rows are decided by comparing degrees with the degrees of the edges, which `web_mercator` gives: so outlines
and cells agree to the last bit. This module imports numba; it is imported inside the functions that call it.
"""

import math

import numpy as np
from numpy.typing import NDArray

from hazemap.machine_code.arrays import Ints
from hazemap.spatial import web_mercator
from hazemap.vdaf.compiled_loops import compiled

longitude = compiled(web_mercator.longitude)
latitude = compiled(web_mercator.latitude)
spread = compiled(web_mercator.spread)
every_other_bit = compiled(web_mercator.every_other_bit)


@compiled
def latitudes(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Degrees of unit y."""
    degrees = np.empty_like(y)
    for i in range(y.size):
        degrees[i] = latitude(y[i])
    return degrees


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
        place = spread(np.uint64(column)) | (spread(np.uint64(row)) << np.uint64(1))
        cells[i] = ((np.uint64(1) << np.uint64(2 * depth)) | place) >> np.uint64(rise)
    return cells


@compiled
def columns_and_rows(cells: NDArray[np.uint64], depth: int) -> tuple[Ints, Ints]:
    """The pixel of each base cell of a quadtree so deep: every other bit of its number, without the leading one.

    `NOWHERE` has pixel −1, −1.
    """
    x, y = np.empty(cells.size, dtype=np.int64), np.empty(cells.size, dtype=np.int64)
    for i in range(cells.size):
        number = cells[i] ^ (np.uint64(1) << np.uint64(2 * depth))
        x[i], y[i] = every_other_bit(number), every_other_bit(number >> np.uint64(1))
        if cells[i] == 0:
            x[i] = y[i] = -1
    return x, y


@compiled
def parts_at(x: Ints, y: Ints, pixels: int, first: int, second: Ints, start: Ints) -> Ints:
    """The part of a grid of grids that holds each pixel, −1 for pixel −1.

    Block i begins at ⌊i · pixels/first⌋, so x is in block ⌊((x + 1) · first − 1)/pixels⌋; and so on inside.
    """
    block_at = ((np.arange(pixels) + 1) * first - 1) // pixels
    found = np.empty(x.size, dtype=np.int64)
    for i in range(x.size):
        if x[i] < 0:
            found[i] = -1
            continue
        column, row = block_at[x[i]], block_at[y[i]]
        block = row * first + column
        parts = second[block]
        found[i] = start[block]
        if parts > 1:
            west, north = column * pixels // first, row * pixels // first
            width, height = (column + 1) * pixels // first - west, (row + 1) * pixels // first - north
            inner = ((x[i] - west + 1) * parts - 1) // width
            found[i] += ((y[i] - north + 1) * parts - 1) // height * parts + inner
    return found


@compiled
def rectangles_of(
    order: Ints,
    child: Ints,
    axis: NDArray[np.int8],
    at: Ints,
    west: Ints,
    north: Ints,
    east: Ints,
    south: Ints,
) -> bool:
    """Hand the rectangles of roots down to the cells below, parents before children as `order` has them.

    The four arrays hold the roots' lines and are filled for all others. `child` is the place of the first of two
    children, −1 where a cell is not cut; `axis` 0 cuts west from east, 1 north from south. False if a cut lies outside.
    """
    for i in order:
        c = child[i]
        if c < 0:
            continue
        for k in (c, c + 1):
            west[k], north[k], east[k], south[k] = west[i], north[i], east[i], south[i]
        low, high = (west[i], east[i]) if axis[i] == 0 else (north[i], south[i])
        if not low < at[i] < high:
            return False
        if axis[i] == 0:
            east[c], west[c + 1] = at[i], at[i]
        else:
            south[c], north[c + 1] = at[i], at[i]
    return True


@compiled
def descended(x: Ints, y: Ints, start: Ints, child: Ints, axis: NDArray[np.int8], at: Ints) -> Ints:
    """The place of the uncut cell that holds each pixel, from the root at `start` down: O(pixels · depth)."""
    found = np.empty(x.size, dtype=np.int64)
    for i in range(x.size):
        k = start[i]
        while child[k] >= 0:
            k = child[k] + (1 if (x[i] if axis[k] == 0 else y[i]) >= at[k] else 0)
        found[i] = k
    return found


@compiled
def painted(side: int, which: Ints, west: Ints, north: Ints, east: Ints, south: Ints) -> NDArray[np.int32]:
    """A picture, side × side, of which rectangle holds each pixel; the rectangles are disjoint."""
    picture = np.full((side, side), -1, dtype=np.int32)
    for k in range(which.size):
        picture[north[k] : south[k], west[k] : east[k]] = which[k]
    return picture


@compiled
def seen(picture: NDArray[np.int32], x: Ints, y: Ints) -> Ints:
    """The cell shown at each pixel of a picture; -1 beside it."""
    side = picture.shape[0]
    found = np.empty(x.size, dtype=np.int64)
    for i in range(x.size):
        inside = 0 <= x[i] < side and 0 <= y[i] < side
        found[i] = picture[y[i], x[i]] if inside else -1
    return found
