"""The cumulative distribution of a value: the fraction of people, or rows, up to each bin."""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, prod

import numpy as np

from hazemap.algorithms.count_queries import grids_up, mapped_together
from hazemap.arrays import Floats
from hazemap.cellmap import Reading
from hazemap.errors import InputError
from hazemap.estimate.isotonic_regression import monotone
from hazemap.noisy_queries import Prices, Rounds
from hazemap.tables.contribution_bounding import AtMostRows, Bounding
from hazemap.values.interval_tree import IntervalTree


@dataclass(frozen=True, eq=False)
class Distribution:
    """An approximate cumulative distribution: `parts[i]` of all lie below `edges[i + 1]`; never falling, in [0, 1].

    >>> round(Distribution(np.array([0.0, 10, 20]), np.array([0.25, 1.0])).quantile(0.5), 3)
    13.333
    """

    edges: Floats
    parts: Floats

    def quantile(self, rank: float) -> float:
        """The value below which a part `rank` lies, as if values were spread evenly inside a bin."""
        if not 0 <= rank <= 1:
            raise InputError(f"a rank must be between 0 and 1, not {rank}")
        at = int(np.searchsorted(self.parts, rank, side="left"))  # the first bin at the end of which there is as much
        if at == len(self.parts):
            return float(self.edges[-1])
        below, upto = (float(self.parts[at - 1]) if at else 0.0), float(self.parts[at])
        inside = (rank - below) / (upto - below) if upto > below else 0.0
        return float(self.edges[at] + inside * (self.edges[at + 1] - self.edges[at]))


@dataclass(frozen=True)
class CumulativeTree:
    """Level-uniform trees (Rameshwar et al. 2024): every level counted with an equal part of the budget.

    A part up to a bin is the sum of few cells of each level. Least squares over the tree make all levels agree, and the
    nearest non-decreasing numbers between 0 and 1 are published. It only asks for counts, so it runs under every trust
    model; a person counts as the bounding rule says.

    >>> CumulativeTree(IntervalTree(0, 65, 100, best_branchings(100))).tree.branchings
    (10, 10)
    """

    tree: IntervalTree
    bounding: Bounding = AtMostRows(1)

    def rounds(self, prices: Prices) -> Rounds[Distribution]:  # noqa: ARG002 - one query needs no price
        """One query."""
        levels = grids_up(self.tree, self.tree.depth, self.tree.depth, self.bounding)
        counted = yield from mapped_together(levels, (1,) * self.tree.depth, self.bounding, Reading.UNBIASED)
        upto = np.cumsum(counted.unbiased[counted.places])
        return Distribution(self.tree.edges, monotone(upto / max(upto[-1], self.bounding.unit)))


def expected_error(branchings: tuple[int, ...]) -> Fraction:
    """Mean variance of the count up to a bin before least squares, in units of 1/ε²: h² Σ (b_i − 1).

    Up to a bin there are 0 to b_i − 1 cells of level i to be added, (b_i − 1)/2 in the mean; each has noise of variance
    2h²/ε², for a person is in one cell of each of the h levels.

    >>> [int(expected_error(branchings)) for branchings in ((10, 10), (100,), (2,) * 7)]
    [72, 99, 343]
    """
    return Fraction(len(branchings) ** 2 * sum(branching - 1 for branching in branchings))


def best_branchings(bins: int) -> tuple[int, ...]:
    """The integer branchings of the least expected error that reach this many bins, of all heights. O(log² bins).

    For a height h and a sum of branchings, their product is largest if they differ by one at most: to take one from a
    branching and to give it to another that is smaller by two or more keeps the sum, and raises the product. So for
    each height the least sum that reaches the bins is made of ⌊S/h⌋ and ⌈S/h⌉. For large numbers they are near 17,
    where (b − 1)/ln³ b is least.

    >>> best_branchings(1000), best_branchings(10_000), best_branchings(2)
    ((10, 10, 10), (22, 22, 21), (2,))
    """
    if bins < 1:
        raise InputError(f"a distribution needs at least 1 bin, not {bins}")
    heights = range(1, max(bins.bit_length(), 1) + 1)
    return min((_evenly(bins, height) for height in heights), key=lambda found: (expected_error(found), len(found)))


def _evenly(bins: int, height: int) -> tuple[int, ...]:
    """The branchings of this height with the least sum that reach this many bins, the largest first."""
    total = height if height > 2 else (2 * isqrt(bins) if height == 2 else bins)
    while True:
        each, more = divmod(total, height)
        found = (each + 1,) * more + (each,) * (height - more)
        if prod(found) >= bins:
            return found
        total += 1
