"""Unit Web-Mercator coordinates, bits of quadtree cells, and exact areas on the WGS 84 ellipsoid.

x = longitude/360 + 1/2 grows east, y = 1/2 - artanh(sin latitude)/2π grows south; the world is the square
from (0, 0) to (1, 1). Compiled loops (`pixel_kernels`) share these formulas.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.spatial.bounding_box import MERCATOR_LATITUDE


def longitude(x: Any) -> Any:
    """Degrees of a unit x, or of many."""
    return (x - 0.5) * 360.0


def latitude(y: float) -> float:
    """Degrees of a unit y; exactly the limit of Web Mercator on the world's edges.

    >>> latitude(0.0), latitude(0.5)
    (85.05112877980659, 0.0)
    """
    if y <= 0.0:
        return MERCATOR_LATITUDE
    if y >= 1.0:
        return -MERCATOR_LATITUDE
    return math.degrees(math.atan(math.sinh(2 * math.pi * (0.5 - y))))


def every_other_bit(numbers: Any) -> Any:
    """Bits 0, 2, 4 … of a uint64, or of many, put together."""
    bits = numbers & np.uint64(0x5555555555555555)
    bits |= bits >> np.uint64(1)
    bits &= np.uint64(0x3333333333333333)
    bits |= bits >> np.uint64(2)
    bits &= np.uint64(0x0F0F0F0F0F0F0F0F)
    bits |= bits >> np.uint64(4)
    bits &= np.uint64(0x00FF00FF00FF00FF)
    bits |= bits >> np.uint64(8)
    bits &= np.uint64(0x0000FFFF0000FFFF)
    bits |= bits >> np.uint64(16)
    bits &= np.uint64(0x00000000FFFFFFFF)
    return bits


def spread(numbers: Any) -> Any:
    """The lower 32 bits of a uint64, or of many, with a zero before each of them: what `every_other_bit` undoes."""
    bits = (numbers | (numbers << np.uint64(16))) & np.uint64(0x0000FFFF0000FFFF)
    bits = (bits | (bits << np.uint64(8))) & np.uint64(0x00FF00FF00FF00FF)
    bits = (bits | (bits << np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    bits = (bits | (bits << np.uint64(2))) & np.uint64(0x3333333333333333)
    return (bits | (bits << np.uint64(1))) & np.uint64(0x5555555555555555)


FLATTENING = 1 / 298.257223563
SEMI_MINOR = 6378137.0 * (1 - FLATTENING)
ECCENTRICITY = math.sqrt(FLATTENING * (2 - FLATTENING))


def mercator_rectangles(
    y: NDArray[np.float64], width: NDArray[np.float64], height: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Square metres of rectangles in unit Web-Mercator coordinates with their northern edge at y.

    The area of a zone between two parallels is b²/2 · Δλ · Δq with q = s/(1 - e²s²) + artanh(e·s)/e and
    s = sin latitude (Snyder 1987, equation 3-12). Web Mercator makes s = tanh ψ with ψ = 2π(1/2 - y), so
    Δs = sinh Δψ / (cosh ψ₁ cosh ψ₂) and Δq are computed without subtracting near numbers: small cells keep
    full precision, and the areas of the parts of a rectangle sum to its area.

    >>> whole = mercator_rectangles(np.array([0.25]), np.array([0.5]), np.array([0.5]))[0]
    >>> parts = mercator_rectangles(np.array([0.25, 0.5]), np.full(2, 0.5), np.full(2, 0.25)).sum()
    >>> round(float(whole / 1e12)), abs(float(parts / whole) - 1) < 1e-12
    (234, True)
    """
    north = 2 * np.pi * (0.5 - y)
    south = 2 * np.pi * (0.5 - y - height)
    rise = np.sinh(2 * np.pi * height) / (np.cosh(north) * np.cosh(south))
    sin_north, sin_south, square = np.tanh(north), np.tanh(south), ECCENTRICITY**2
    product = square * sin_north * sin_south
    fraction = rise * (1 + product) / ((1 - square * sin_north**2) * (1 - square * sin_south**2))
    logarithm = np.arctanh(ECCENTRICITY * rise / (1 - product)) / ECCENTRICITY
    areas: NDArray[np.float64] = SEMI_MINOR**2 / 2 * (2 * np.pi * width) * (fraction + logarithm)
    return areas
