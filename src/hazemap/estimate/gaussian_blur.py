"""Averages under a Gaussian over rectangles of even density: what the eye sees of a map, and how noise moves it.

At x it is H(x) = Σ_c d_c w_c(x) / Σ_c w_c(x), where w_c(x) is the mass in rectangle c of a Gaussian around x: the
density convolved with a Gaussian, cut off at the border of the map and renormalised there (Ghazi et al. 2022,
definition 2.3, for a plane and not a lattice). A rectangle's mass is a product of two differences of error functions,
so nothing is rounded to pixels.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.machine_code.arrays import Floats

REACH = 5.0
"""Standard deviations beyond which a Gaussian is taken for 0: 6e-7 of it."""

AT_ONCE = 1 << 11
"""Rectangles whose masses are in memory at one time."""

LEAST = 1e-6
"""Of its mass: where less of a Gaussian lies on the map, nothing is said."""


class Blurred(NamedTuple):
    """Weighted means of several densities, float64[densities, rows, columns], and the standard error of each pixel.

    NaN where no rectangle is near.
    """

    means: Floats
    stddev: Floats


def blurred(
    bounds: tuple[Floats, Floats, Floats, Floats],
    densities: Floats,
    stddev: Floats,
    x: Floats,
    y: Floats,
    sigma: float,
    correlated: bool = False,
) -> Blurred:
    """The blur of disjoint rectangles (west, south, east, north) with `densities`, float64[densities, n].

    `stddev`, float64[n], are standard errors of densities whose errors are uncorrelated, or correlated negatively: as
    those of least squares on a tree are, whose precision is an ultrametric matrix, so that its inverse has no positive
    number beside the diagonal (Martínez, Michon and San Martín 1994). Then the result's `stddev` is no less than its
    standard error, and just that where errors are uncorrelated. Where they are `correlated` in other ways, it is as if
    they were all one error, which is never too small.

    O(Σ over blocks of `AT_ONCE` rectangles of a size: rectangles · pixels within `REACH` of any of them).

    >>> one = tuple(np.array([edge]) for edge in (0.0, 0.0, 1.0, 1.0))
    >>> found = blurred(one, np.array([[8.0]]), np.array([2.0]), np.array([0.5]), np.array([0.5]), 0.1)
    >>> found.means.item(), found.stddev.item()
    (8.0, 2.0)
    """
    west, south, east, north = bounds
    sums = np.zeros((len(densities) + 1, len(y), len(x)))
    doubt = np.zeros((len(y), len(x)))
    # Of a size together, and near each other: a block then reaches few pixels.
    size = np.round(np.log2(np.maximum(east - west, north - south)))
    tile = 2 ** np.max(size, initial=0) / 16
    order = np.lexsort((west, np.floor(south / tile), np.floor(west / tile), size))
    for start in range(0, len(order), AT_ONCE):
        some = order[start : start + AT_ONCE]
        columns = _near(x, west[some].min(), east[some].max(), sigma)
        rows = _near(y, south[some].min(), north[some].max(), sigma)
        across = _masses(west[some], east[some], x[columns], sigma)
        up = _masses(south[some], north[some], y[rows], sigma).T
        for part, density in zip(sums, (*densities, np.ones(len(order))), strict=True):
            part[np.ix_(rows, columns)] += up @ (density[some, None] * across)
        power = 1 if correlated else 2
        doubt[np.ix_(rows, columns)] += up**power @ ((stddev[some, None] * across) ** power)
    mass = sums[-1]
    there = mass > LEAST
    divisor = np.where(there, mass, np.nan)
    return Blurred(sums[:-1] / divisor, (doubt if correlated else np.sqrt(doubt)) / divisor)


def _near(pixels: Floats, low: float, high: float, sigma: float) -> NDArray[np.int64]:
    """The pixels from which something between two ends is seen."""
    return np.flatnonzero((pixels >= low - REACH * sigma) & (pixels <= high + REACH * sigma))


def _masses(low: Floats, high: Floats, at: Floats, sigma: float) -> Floats:
    """The mass between two ends of Gaussians around some places, float64[ends, places]."""
    from scipy.special import ndtr

    mass: Floats = ndtr((high[:, None] - at) / sigma) - ndtr((low[:, None] - at) / sigma)
    return mass
