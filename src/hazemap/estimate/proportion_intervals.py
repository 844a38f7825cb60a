"""From two noisy counts a cell, with and without a mark, to a proportion and its interval."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from hazemap.arrays import Floats
from hazemap.cells import Leaves
from hazemap.errors import InputError


@dataclass(frozen=True, eq=False)
class Proportions:
    """How many of those in each cell carry the mark: float64[cells.size] throughout.

    `marked` and `people` are unbiased; each of the two counts behind them (with the mark, without) has noise of
    standard deviation `stddev`, independent of the other's.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> one = Leaves(Quadtree.world(depth=0), np.array([1], dtype=np.uint64))
    >>> found = Proportions(one, np.array([200.0]), np.array([1000.0]), 10.0)
    >>> found.values, [end.round(3) for end in found.interval(0.95)]
    (array([0.2]), [array([0.184]), array([0.216])])
    """

    cells: Leaves
    marked: Floats
    people: Floats
    stddev: float

    @property
    def values(self) -> Floats:
        """marked/people within 0 … 1; NaN where there seem to be no people at all."""
        some = self.people > 0
        return np.where(some, np.clip(self.marked / np.where(some, self.people, 1), 0, 1), np.nan)

    def interval(self, confidence: float = 0.95, sampled: bool = False) -> tuple[Floats, Floats]:
        """Low and high ends. With `sampled`, the people asked stand for more people like them.

        Fieller (1954): p is in the interval iff (marked − p·people)² ≤ z² · Var(marked − p·people), a quadratic in p.
        The noise of marked − p·people has the variance σ²((1 − p)² + p²); a sample adds people·p(1 − p) (with σ = 0
        this is Wilson's interval). Where noise could explain that nobody is there, it is 0 … 1.
        """
        return bounds(self.marked, self.people, self.stddev, confidence, sampled)


def bounds(marked: Floats, people: Floats, stddev: float, confidence: float, sampled: bool) -> tuple[Floats, Floats]:
    """Fieller's interval for each cell, within 0 … 1: O(cells)."""
    if not 0 < confidence < 1:
        raise InputError(f"a confidence lies between 0 and 1, not at {confidence}")
    z2 = NormalDist().inv_cdf((1 + confidence) / 2) ** 2
    noise, sample = stddev**2, np.maximum(people, 0.0) * sampled
    a = people**2 - z2 * (2 * noise - sample)
    b = -2 * marked * people - z2 * (sample - 2 * noise)
    c = marked**2 - z2 * noise
    root = b**2 - 4 * a * c
    some = (people > 0) & (a > 0) & (root >= 0)
    middle, half = -b / np.where(some, 2 * a, 1), np.sqrt(np.where(some, root, 0)) / np.where(some, 2 * a, 1)
    low = np.where(some, np.clip(middle - half, 0, 1), 0.0)
    high = np.where(some, np.clip(middle + half, 0, 1), 1.0)
    return low, high
