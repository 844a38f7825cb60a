"""Arrays by the type of their numbers, and runs of consecutive numbers."""

import numpy as np
from numpy.typing import NDArray

from hazemap.vdaf.compiled_loops import Bools, Bytes, Ints, Words

__all__ = ["Bools", "Bytes", "Floats", "Ints", "Words", "consecutive"]

Floats = NDArray[np.float64]


def consecutive(begin: Ints, count: Ints) -> Ints:
    """Runs of consecutive numbers, one after another: `count[i]` of them from `begin[i]` on.

    >>> consecutive(np.array([7, 1, 4]), np.array([2, 0, 3]))
    array([7, 8, 4, 5, 6])
    """
    before = np.cumsum(count) - count
    return np.repeat(begin - before, count) + np.arange(count.sum())
