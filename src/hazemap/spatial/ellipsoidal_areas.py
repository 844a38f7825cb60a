"""Unit Web-Mercator coordinates in degrees, and exact areas on the WGS 84 ellipsoid.

x = longitude/360 + 1/2 grows east, y = 1/2 - artanh(sin latitude)/2π grows south; the world is the square
from (0, 0) to (1, 1).
"""

import math

import numpy as np
from numpy.typing import NDArray

from hazemap.spatial.mercator_and_morton import latitude, longitude
from hazemap.vdaf.compiled_loops import compiler_is_loaded

__all__ = ["latitude", "latitudes", "longitude", "mercator_rectangles"]

FLATTENING = 1 / 298.257223563
SEMI_MINOR = 6378137.0 * (1 - FLATTENING)
ECCENTRICITY = math.sqrt(FLATTENING * (2 - FLATTENING))


FEW = 32
"""So few numbers are not looked through for equal ones."""

MOST_ROWS = 1 << 16
"""Up to this many different latitudes, computing them one by one is faster than loading numba."""


def latitudes(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Degrees of unit y, each to the last bit as `latitude` has it."""
    if not compiler_is_loaded():
        if y.size <= FEW:
            return np.array([latitude(each) for each in y.tolist()])
        different = np.sort(y)  # cells of a map have few rows
        different = different[np.append(True, different[1:] != different[:-1])]
        if len(different) <= MOST_ROWS:
            return np.array([latitude(each) for each in different.tolist()])[np.searchsorted(different, y)]
    from hazemap.spatial import pixel_kernels

    return pixel_kernels.latitudes(y)


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
