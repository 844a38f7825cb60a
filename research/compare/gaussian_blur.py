"""The heatmap of a density: what the eye sees of it, and what Ghazi et al. (2022) compare."""

import math

import numpy as np
from numpy.typing import ArrayLike

from hazemap.errors import InputError
from hazemap.machine_code.arrays import Floats

_STRIP = 256
"""Pixels that are blurred at a time."""


def heatmap(density: ArrayLike, variance: float) -> Floats:
    """A density convolved with a Gaussian of `variance` in squared pixels (so 4 is a standard deviation of 2 pixels).

    H(x) = Σ_y p(y) exp(−‖x − y‖² / 2σ²) / Z(y), where Z(y) is the sum of the exponentials over the pixels x of the
    map (Ghazi et al. 2022, definition 2.3): at the border the Gaussian of a pixel is cut off and scaled up, so nobody
    leaves the map and the heatmap sums to what the density does. A pixel is a point on the integer lattice. To keep a
    blur the same on the ground, scale the variance with the square of the pixels along a side.

    The Gaussian is separable: per axis a product with a matrix, banded to where the exponential is 0 in float64. All
    terms are positive, so even the faintest pixel is right to 12 digits, which a Fourier transform would not give and
    `kl` needs. O(pixels · min(side, 77 σ + 256)).

    >>> heatmap([[1.0, 0.0]], variance=0.5).round(3)
    array([[0.731, 0.269]])
    """
    grid = np.asarray(density, np.float64)
    if grid.ndim != 2 or not grid.size or not np.isfinite(grid).all():
        raise InputError("a heatmap is made of a grid of rows and columns with finite numbers")
    if not (0 <= variance < math.inf):
        raise InputError(f"a heatmap blurs with a variance of 0 squared pixels or more, not {variance}")
    if variance == 0:
        return grid.copy()
    return np.ascontiguousarray(_blurred(_blurred(grid, variance).T, variance).T)


def _blurred(grid: Floats, variance: float) -> Floats:
    """Along the first axis."""
    size = len(grid)
    with np.errstate(over="ignore"):
        bell = np.exp(-np.square(np.arange(size, dtype=np.float64)) / (2 * variance))
    until = np.cumsum(bell)
    scaled = grid / (until + until[::-1] - 1)[:, None]  # Z of a pixel: what its bell has on either side
    reach = int(np.count_nonzero(bell)) - 1
    result = np.empty_like(grid)
    for start in range(0, size, _STRIP):
        end = min(start + _STRIP, size)
        low, high = max(start - reach, 0), min(end + reach, size)
        apart = np.abs(np.arange(start, end)[:, None] - np.arange(low, high))
        result[start:end] = bell[apart] @ scaled[low:high]
    return result
