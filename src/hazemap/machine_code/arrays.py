"""Arrays by the type of their numbers, and runs of consecutive numbers."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]


def consecutive(begin: Ints, count: Ints) -> Ints:
    """Runs of consecutive numbers, one after another: `count[i]` of them from `begin[i]` on.

    >>> consecutive(np.array([7, 1, 4]), np.array([2, 0, 3]))
    array([7, 8, 4, 5, 6])
    """
    before = np.cumsum(count) - count
    return np.repeat(begin - before, count) + np.arange(count.sum())
