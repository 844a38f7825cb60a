"""Errors of range queries: how far answers to "how many are in this rectangle?" are from the truth.

The workloads are those of the literature on private maps: 2,000 rectangles of random shape and size, and as many
squares of 2, 6 and 10 % of the area (Shaham et al. 2021). A workload is public and comes from a seed, so that everybody
asks the same questions.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.privacy.random_stream import Stream

WORKLOADS: dict[str, float | None] = {"random": None, "2%": 0.02, "6%": 0.06, "10%": 0.10}
"""The share of the area that each rectangle of a workload has, before the border of the map cuts it."""

SMOOTHING = 20.0
"""People: the error of a count below it is divided by it, lest empty rectangles weigh without bound."""


class QueryRectangles(NamedTuple):
    """Rows north ≤ r < south and columns west ≤ c < east of a grid, int64[n] each; none is empty.

    >>> one = QueryRectangles(*np.array([[0], [2], [1], [3]]))
    >>> sums(np.arange(9).reshape(3, 3), one)
    array([12.])
    """

    north: Ints
    south: Ints
    west: Ints
    east: Ints


def rectangles(seed: bytes, shape: tuple[int, int], number: int = 2000, area: float | None = None) -> QueryRectangles:
    """A workload for a grid of `shape` pixels, the same for the same seed.

    Centres are uniform on the map. Without an `area`, height and width are uniform up to those of the map, each
    on its own; with one, each rectangle is a small copy of the map with this share of its area. What lies outside
    the map is cut off, and pixels that are touched belong.
    """
    if min(shape) < 1 or number < 1 or (area is not None and not 0 < area <= 1):
        raise InputError(
            f"rectangles need a grid, a number of them and an area up to 1; found {shape}, {number}, {area}"
        )
    stream = Stream.fixed(b"rectangles " + seed)
    luck = (stream.words(4 * number) >> np.uint64(11)).astype(np.float64).reshape(4, number) * 2.0**-53
    return laid(luck[:2], luck[2:] if area is None else np.full((2, number), np.sqrt(area)), shape)


def workloads(seed: bytes, shape: tuple[int, int], number: int = 2000) -> dict[str, QueryRectangles]:
    """All of `WORKLOADS` for a grid, by name."""
    return {name: rectangles(name.encode() + b" " + seed, shape, number, area) for name, area in WORKLOADS.items()}


def laid(centres: Floats, sizes: Floats, shape: tuple[int, int]) -> QueryRectangles:
    """The pixels that rectangles touch: float64[2, n] of centres and of sizes, rows first, as parts of the map."""
    sides = []
    for centre, size, pixels in zip(centres, sizes, shape, strict=True):
        start = np.clip(np.floor(centre * pixels - size * pixels / 2), 0, pixels - 1).astype(np.int64)
        end = np.clip(np.ceil(centre * pixels + size * pixels / 2), 1, pixels).astype(np.int64)
        sides += [start, np.maximum(end, start + 1)]
    return QueryRectangles(*sides)


def sums(numbers: ArrayLike, asked: QueryRectangles) -> Floats:
    """What a grid holds in each rectangle, float64[n]: O(pixels + n), by cumulative sums (exact for whole numbers)."""
    grid = np.asarray(numbers)
    if grid.ndim != 2:
        raise InputError(f"rectangles are asked of a grid of rows and columns, not of {grid.ndim} axes")
    outside = (asked.north < 0) | (asked.south > grid.shape[0]) | (asked.west < 0) | (asked.east > grid.shape[1])
    if outside.any():
        raise InputError(f"rectangles of a larger grid were asked of one of {grid.shape} pixels")
    table = np.zeros((grid.shape[0] + 1, grid.shape[1] + 1), np.int64 if grid.dtype.kind in "iub" else np.float64)
    inner = table[1:, 1:]
    np.cumsum(grid, axis=0, out=inner)
    np.cumsum(inner, axis=1, out=inner)
    north, south, west, east = asked
    return np.asarray(table[south, east] - table[north, east] - table[south, west] + table[north, west], np.float64)


def relative_errors(exact: ArrayLike, found: ArrayLike, smoothing: float = SMOOTHING) -> Floats:
    """|found − exact| / max(exact, smoothing) of each answer, as a fraction.

    >>> relative_errors([100.0, 0.0], [90.0, 5.0])
    array([0.1 , 0.25])
    """
    exact, found = np.asarray(exact, np.float64), np.asarray(found, np.float64)
    if exact.shape != found.shape or not smoothing > 0:
        raise InputError("every exact answer is compared with one that was found, with a smoothing above 0")
    return np.asarray(np.abs(found - exact) / np.maximum(exact, smoothing))


def mre(true: ArrayLike, estimate: ArrayLike, asked: QueryRectangles, smoothing: float = SMOOTHING) -> float:
    """Mean relative error of the counts in rectangles, as a fraction (times 100 for the per cent of most papers).

    Both maps are counts of people, not densities, and an estimate may be negative.
    """
    return float(relative_errors(sums(true, asked), sums(estimate, asked), smoothing).mean())
