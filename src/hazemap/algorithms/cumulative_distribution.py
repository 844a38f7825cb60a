"""The cumulative distribution of a value: the fraction of people, or rows, up to each bin."""

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, prod
from typing import ClassVar

import numpy as np

from hazemap.algorithms.count_queries import grids_up, mapped_together
from hazemap.cellmap import Reading
from hazemap.errors import InputError
from hazemap.estimate.quantile_intervals import monotone
from hazemap.machine_code.arrays import Floats
from hazemap.queries.algorithm_disclosure import Disclosure, counted
from hazemap.queries.noisy_queries import Prices, Rounds
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
    """Level-uniform trees (Rameshwar et al. 2024): every level counted with an equal part of the budget, or with parts
    as `weights` are, a whole number for each level from the top on (`best_weights`).

    A part up to a bin is the sum of few cells of each level. Least squares over the tree make all levels agree, and the
    nearest non-decreasing numbers between 0 and 1 are published. It only asks for counts, so it runs under every trust
    model; a person counts as the bounding rule says.

    >>> CumulativeTree(IntervalTree(0, 65, 100, best_branchings(100))).tree.branchings
    (10, 10)
    """

    tree: IntervalTree
    bounding: Bounding = AtMostRows(1)
    weights: tuple[int, ...] = ()
    disclosure: ClassVar[Disclosure] = counted()

    def __post_init__(self) -> None:
        weights = self.weights or (1,) * self.tree.depth
        if len(weights) != self.tree.depth or not all(type(weight) is int and weight >= 1 for weight in weights):
            raise InputError(f"each of the {self.tree.depth} levels has a weight, a whole number from 1 on: {weights}")
        object.__setattr__(self, "weights", weights)

    def rounds(self, prices: Prices) -> Rounds[Distribution]:  # noqa: ARG002 - one query needs no price
        """One query."""
        levels = grids_up(self.tree, self.tree.depth, self.tree.depth, self.bounding)
        counted = yield from mapped_together(levels, self.weights[::-1], self.bounding, Reading.UNBIASED)
        upto = np.cumsum(counted.unbiased[counted.places])
        return Distribution(self.tree.edges, monotone(upto / max(upto[-1], self.bounding.unit)))


def expected_error(branchings: tuple[int, ...], weights: tuple[int, ...] = ()) -> Fraction:
    """Mean variance of the count up to a bin before least squares, in units of 1/ε²: (Σ w)² Σ (b_i − 1)/w_i².

    Up to a bin there are 0 to b_i − 1 cells of level i to be added, (b_i − 1)/2 in the mean; each has noise of variance
    2/ε_i², ε_i = ε w_i/Σ w, for a person is in one cell of each of the h levels. Without weights: h² Σ (b_i − 1).

    >>> [int(expected_error(branchings)) for branchings in ((10, 10), (100,), (2,) * 7)]
    [72, 99, 343]
    >>> float(expected_error((34, 3), (5, 2)))
    89.18
    """
    weights = weights or (1,) * len(branchings)
    pairs = zip(branchings, weights, strict=True)
    return sum(weights) ** 2 * sum((Fraction(branching - 1, weight**2) for branching, weight in pairs), Fraction(0))


FINEST_WEIGHT = 64
"""The largest weight of a level."""


def best_weights(branchings: tuple[int, ...]) -> tuple[int, ...]:
    """How to divide a budget over the levels of a given tree: w_i near ∛(b_i − 1), which has the least expected error.

    (Σ w)² Σ a_i/w_i² does not change if all w grow alike, so Σ w may be 1; then a_i/w_i³ is one number for all i
    (Lagrange). Rounded to whole numbers up to `FINEST_WEIGHT`; equal branchings have equal weights.

    >>> best_weights((10, 10)), best_weights((34, 3))
    ((64, 64), (64, 25))
    """
    most = max(max(branchings) - 1, 1)
    return tuple(max(round(FINEST_WEIGHT * ((branching - 1) / most) ** (1 / 3)), 1) for branching in branchings)


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
