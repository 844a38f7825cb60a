"""Numbers that do not fall: the nearest ones to given numbers."""

import numpy as np

from hazemap.arrays import Floats
from hazemap.jit import once_compiled


def monotone(numbers: Floats, low: float = 0.0, high: float = 1.0) -> Floats:
    """The non-decreasing numbers in [low, high] nearest to these in ℓ₂: isotonic regression, then clipped. O(n).

    Neighbours in the wrong order are pooled into their mean until none are left (Ayer et al. 1955). To clip that is the
    nearest under the bounds, too (Németh and Németh 2012).

    >>> monotone(np.array([0.1, 0.4, 0.2, 1.3]))
    array([0.1, 0.3, 0.3, 1. ])
    """
    nearest: Floats = np.clip(once_compiled(_pooled)(np.asarray(numbers, dtype=np.float64)), low, high)
    return nearest


def _pooled(numbers):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    mean, size, blocks = np.empty(len(numbers)), np.zeros(len(numbers), dtype=np.int64), 0
    for number in numbers:
        mean[blocks], size[blocks] = number, 1
        blocks += 1
        while blocks > 1 and mean[blocks - 2] > mean[blocks - 1]:
            both = size[blocks - 2] + size[blocks - 1]
            mean[blocks - 2] += (mean[blocks - 1] - mean[blocks - 2]) * size[blocks - 1] / both
            size[blocks - 2] = both
            blocks -= 1
    found, at = np.empty(len(numbers)), 0
    for block in range(blocks):
        found[at : at + size[block]] = mean[block]
        at += size[block]
    return found
