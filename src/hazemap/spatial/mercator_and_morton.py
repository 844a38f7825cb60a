"""Unit Web-Mercator coordinates from degrees, and bits of quadtree cells: formulas shared by compiled loops."""

import math
from typing import Any

import numpy as np

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
