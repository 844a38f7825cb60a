"""The hot loops of trees that are drawn over a quadtree's pixels; they are imported where they are called."""

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Ints
from hazemap.jit import compiled


@compiled
def every_other_bit(number: int) -> int:
    """Bits 0, 2, 4 … of a number, put together."""
    number &= 0x5555555555555555
    number = (number | number >> 1) & 0x3333333333333333
    number = (number | number >> 2) & 0x0F0F0F0F0F0F0F0F
    number = (number | number >> 4) & 0x00FF00FF00FF00FF
    number = (number | number >> 8) & 0x0000FFFF0000FFFF
    return (number | number >> 16) & 0x00000000FFFFFFFF


@compiled
def columns_and_rows(cells: NDArray[np.uint64], depth: int) -> tuple[Ints, Ints]:
    """The pixel of each base cell of a quadtree so deep: every other bit of its number, without the leading one.

    `NOWHERE` has pixel −1, −1.
    """
    x, y = np.empty(cells.size, dtype=np.int64), np.empty(cells.size, dtype=np.int64)
    for i in range(cells.size):
        number = int(cells[i]) ^ (1 << (2 * depth))
        x[i], y[i] = every_other_bit(number), every_other_bit(number >> 1)
        if cells[i] == 0:
            x[i] = y[i] = -1
    return x, y


@compiled
def parts_at(x: Ints, y: Ints, pixels: int, first: int, second: Ints, start: Ints) -> Ints:
    """Which part of a grid of grids holds each pixel, −1 for pixel −1.

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
    """What a picture shows at each pixel; -1 beside it."""
    side = picture.shape[0]
    found = np.empty(x.size, dtype=np.int64)
    for i in range(x.size):
        inside = 0 <= x[i] < side and 0 <= y[i] < side
        found[i] = picture[y[i], x[i]] if inside else -1
    return found
