"""The result of every method: a number and an error bar for each cell.

One file format, one set of questions and one set of pictures serve every method because of this type.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Leaves
from hazemap.errors import InputError


class Reading(Enum):
    """The best guess that a map shows. The unbiased estimate is kept beside it, whichever is chosen."""

    UNBIASED = "unbiased"  # least squares over all rounds
    NONNEGATIVE = "nonnegative"  # the nearest map without minus signs that has the same totals
    SHRUNK = "shrunk"  # first drawn toward the density around it, as far as noise explains the difference
    LIKELY = "likely"  # the most plausible map, by what the answers themselves tell of how people are spread


class Spread(NamedTuple):
    """The noise of one number: its standard deviation and its excess kurtosis (Laplace 3, Gaussian 0)."""

    stddev: float
    kurtosis: float


class Noise(Protocol):
    """How the errors of the cells' unbiased numbers hang together."""

    def of(self, weights: NDArray[np.float64]) -> Spread:
        """The noise of Σ weights · unbiased; weights is float64[cells]."""


@dataclass(frozen=True, eq=False)
class CellMap:
    """A number for each of some disjoint cells, with two readings of it.

    `values` is the best guess, what a picture shows: it may be shrunk or non-negative. `unbiased` is the
    least-squares estimate with standard error `stddev`; intervals come from it and from `noise` alone.
    All are float64[cells.size], in what the bounding rule counts (people, rows, visits). `reading` is how `values` were
    read; in the most plausible map (`Reading.LIKELY`) people lie unevenly inside cells too
    (`estimate.smooth_disaggregation`).

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> tree = Quadtree.world(depth=1)
    >>> leaves = Leaves(tree, tree.root)
    >>> CellMap.independent(leaves, np.array([10.0]), np.array([2.0]), 3.0).noise.of(np.array([2.0])).stddev
    4.0
    """

    cells: Leaves
    values: NDArray[np.float64]
    unbiased: NDArray[np.float64]
    stddev: NDArray[np.float64]
    noise: Noise
    reading: Reading = Reading.UNBIASED

    def __post_init__(self) -> None:
        for name in ("values", "unbiased", "stddev"):
            if getattr(self, name).shape != (self.cells.size,):
                raise InputError(f"{name} must hold one number for each of the {self.cells.size} cells")

    @classmethod
    def independent(
        cls, cells: Leaves, numbers: NDArray[np.float64], stddev: NDArray[np.float64], kurtosis: float
    ) -> "CellMap":
        """Cells that were each measured on their own."""
        return cls(cells, numbers, numbers, stddev, Independent(stddev, kurtosis))

    @property
    def places(self) -> NDArray[np.bool_]:
        """Which cells are places: all but `NOWHERE`."""
        places: NDArray[np.bool_] = self.cells.cells != NOWHERE
        return places


@dataclass(frozen=True, eq=False)
class Independent:
    """Errors that have nothing to do with each other; all of one shape."""

    stddev: NDArray[np.float64]
    kurtosis: float

    def of(self, weights: NDArray[np.float64]) -> Spread:
        """Variances and fourth cumulants add: O(cells)."""
        variances = (weights * self.stddev) ** 2
        variance = float(variances.sum())
        if variance == 0:
            return Spread(0.0, 0.0)
        return Spread(variance**0.5, self.kurtosis * float((variances**2).sum()) / variance**2)
