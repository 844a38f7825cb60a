"""Degrees of unit Web-Mercator coordinates: formulas for a number, which loops compile and others call."""

import math
from typing import Any

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
