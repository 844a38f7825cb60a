"""Where degrees lie on the sheet: Web Mercator in metres (EPSG:3857), x east, y north."""

import math

import numpy as np
from numpy.typing import NDArray

from hazemap.spatial.bounding_box import MERCATOR_LATITUDE
from hazemap.spatial.geodesy import ECCENTRICITY

RADIUS = 6378137.0
CIRCUMFERENCE = 2 * math.pi * RADIUS


def sheet(lon: NDArray[np.float64], lat: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Metres on the sheet of degrees; latitudes beyond Web Mercator are put on its edge.

    >>> x, y = sheet(np.array([180.0]), np.array([90.0]))
    >>> bool(np.isclose(x, y)[0])
    True
    """
    kept = np.clip(lat, -MERCATOR_LATITUDE, MERCATOR_LATITUDE)
    return np.radians(lon) * RADIUS, np.arcsinh(np.tan(np.radians(kept))) * RADIUS


def longitude(x: float) -> float:
    """Degrees east of a place on the sheet."""
    return math.degrees(x / RADIUS)


def latitude(y: float) -> float:
    """Degrees north of a place on the sheet."""
    return math.degrees(math.atan(math.sinh(y / RADIUS)))


def ground(lat: float) -> float:
    """Metres on the ground, along the parallel, of one metre on the sheet (WGS 84).

    A degree of longitude is N(φ) cos φ · π/180 on the ellipsoid, N(φ) = a / √(1 - e² sin² φ), and a · π/180
    on the sheet.
    """
    phi = math.radians(lat)
    return math.cos(phi) / math.sqrt(1 - (ECCENTRICITY * math.sin(phi)) ** 2)
