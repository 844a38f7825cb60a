"""Isotonic regression: the nearest non-decreasing numbers."""

import numpy as np

from hazemap.machine_code.arrays import Floats


def monotone(numbers: Floats, low: float = 0.0, high: float = 1.0) -> Floats:
    """The non-decreasing numbers in [low, high] nearest to these in ℓ₂: isotonic regression, then clipped. O(n).

    To clip them gives the nearest under the bounds, too (Németh and Németh 2012).

    >>> monotone(np.array([0.1, 0.4, 0.2, 1.3]))
    array([0.1, 0.3, 0.3, 1. ])
    """
    from scipy.optimize import isotonic_regression

    nearest: Floats = np.clip(isotonic_regression(numbers).x, low, high)
    return nearest
