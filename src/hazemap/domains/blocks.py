"""Which cell of a grid of grids holds a point: the hot loop of `grids`, which imports it inside its method.

As in `mercator`, the degrees of the edges decide where a coordinate is near one, so outlines and cells agree to the
last bit.
"""

import math

import numpy as np
from numpy.typing import NDArray

from hazemap.compiled import compiled
from hazemap.domains.mercator import latitude, longitude


@compiled
def column_of(x: float, place: float, begin: float, parts: int, first: int, left: float, side: float) -> int:
    """Which of the equal `parts` of the block from `begin` on holds a longitude; `place` is it in blocks."""
    inner = (place - begin) * parts
    at = min(max(math.floor(inner), 0), parts - 1)
    doubt = min(0.5, 1e-14 * parts * first / side)  # rounding moves `inner` by less than this
    if not doubt < inner - at < 1 - doubt:
        while at > 0 and x < longitude(left + side * ((begin + at / parts) / first)):
            at -= 1
        while at < parts - 1 and x >= longitude(left + side * ((begin + (at + 1) / parts) / first)):
            at += 1
    return at


@compiled
def row_of(y: float, place: float, begin: float, parts: int, first: int, top: float, side: float) -> int:
    """Which of the equal `parts` of the block from `begin` on holds a latitude; `place` is it in blocks."""
    inner = (place - begin) * parts
    at = min(max(math.floor(inner), 0), parts - 1)
    doubt = min(0.5, 1e-14 * parts * first / side)
    if not doubt < inner - at < 1 - doubt:
        while at > 0 and y > latitude(top + side * ((begin + at / parts) / first)):
            at -= 1
        while at < parts - 1 and y <= latitude(top + side * ((begin + (at + 1) / parts) / first)):
            at += 1
    return at


@compiled
def blocks_and_parts(
    lon: NDArray[np.float64],
    lat: NDArray[np.float64],
    left: float,
    top: float,
    side: float,
    second: NDArray[np.int64],
    start: NDArray[np.int64],
    level: int,
) -> NDArray[np.uint64]:
    """The cell of each point at a level of the grid of grids; 0 for none. `start` are the first parts of blocks."""
    cells = np.zeros(lon.size, dtype=np.uint64)
    first = int(math.sqrt(second.size) + 0.5)
    west, east = longitude(left), longitude(left + side)
    north, south = latitude(top), latitude(top + side)
    for i in range(lon.size):
        x, y = lon[i], lat[i]
        if not (west <= x <= east and south <= y <= north):  # NaN compares false
            continue
        if level == 0:
            cells[i] = 1
            continue
        across = (x / 360.0 + 0.5 - left) / side
        sine = math.sin(math.radians(y))
        down = (0.5 - math.log((1 + sine) / (1 - sine)) / (4 * math.pi) - top) / side
        column = column_of(x, across, 0.0, first, 1, left, side)
        row = row_of(y, down, 0.0, first, 1, top, side)
        block = row * first + column
        if level == 1:
            cells[i] = 2 + block
            continue
        parts = second[block]
        inner = row_of(y, down * first, float(row), parts, first, top, side) * parts
        inner += column_of(x, across * first, float(column), parts, first, left, side)
        cells[i] = start[block] + inner
    return cells
