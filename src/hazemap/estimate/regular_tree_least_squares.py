"""Least squares where whole levels of a regular tree were counted, in closed form.

The cells of a level stand in the order of their parents, each of which has as many of them, f. So the sum over children
is that over the rows of a reshaped array, and the ω, V and s of `tree_least_squares.py` are one number a level: s =
1/f. It is the estimate that `consistent` gives, in a fraction of its time and memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import Spread
from hazemap.cells import Leaves
from hazemap.estimate.tree_least_squares import Measurement
from hazemap.machine_code.arrays import Floats
from hazemap.spatial.whole_domain import WholeDomain


class CountedLevel(NamedTuple):
    """What was counted of a level, by one answer."""

    numbers: Floats  # y
    measured: float  # m, the variance of each; infinite where nothing was counted
    kurtosis: float


class LevelWeights(NamedTuple):
    """What least squares make of a level."""

    own: float  # ω
    given: float  # s
    below: float  # V, the variance of z̃
    variance: float  # of ẑ


@dataclass(frozen=True, eq=False)
class RegularTreeEstimate:
    """Levels from everything, which is one cell, to the cells of the result; each cuts every cell of the one before."""

    leaves: Leaves
    levels: tuple[CountedLevel, ...]
    weights: tuple[LevelWeights, ...]
    wholes: tuple[Floats, ...]  # ẑ

    @property
    def numbers(self) -> Floats:
        """The estimate of each cell of the result."""
        return self.wholes[-1]

    @property
    def stddev(self) -> Floats:
        """The standard error of each, the same for all."""
        return np.full(self.leaves.size, self.weights[-1].variance ** 0.5)

    def of(self, weights: Floats) -> Spread:
        """The noise of Σ weights · numbers: O(cells), by the passes run backwards."""
        passed = [weights]  # how the sum moves with ẑ of a cell, itself or through its children
        for level, finer in zip(self.levels[-2::-1], self.weights[:0:-1], strict=True):
            passed.append(finer.given * _rows(passed[-1], len(level.numbers)).sum(axis=1))
        passed.reverse()
        from_above, variance, fourth = np.zeros(1), 0.0, 0.0
        for number, (level, weight) in enumerate(zip(self.levels, self.weights, strict=True)):
            moves = passed[number] + from_above  # how it moves with z̃ of a cell
            if weight.own > 0 and np.isfinite(level.measured):
                parts = (moves * weight.own) ** 2
                variance += level.measured * float(parts.sum())
                fourth += level.kurtosis * level.measured**2 * float((parts**2).sum())
            if number + 1 < len(self.levels):
                fan = len(self.levels[number + 1].numbers) // len(level.numbers)
                from_above = np.repeat(moves * (1 - weight.own) - passed[number], fan)
        return Spread(variance**0.5, fourth / variance**2 if variance else 0.0)

    def shrunk(self) -> Floats:
        """The cells' numbers after the shrinkage of `shrunk`, level by level."""
        areas = [self.leaves.areas]
        for level in self.levels[-2::-1]:
            areas.append(_rows(areas[-1], len(level.numbers)).sum(axis=1))
        areas.reverse()
        result = self.wholes[0]
        for number, (coarse, fine) in enumerate(pairwise(self.wholes)):
            rows = _rows(fine, len(coarse))
            share = _rows(areas[number + 1], len(coarse)) / areas[number][:, None]
            apart = rows - share * coarse[:, None]
            seen = (apart**2).sum(axis=1)
            noise = self.weights[number + 1].below * (rows.shape[1] - 1)
            kept = np.maximum(0, 1 - np.divide(noise, seen, out=np.ones(len(seen)), where=seen > 0))
            result = (share * result[:, None] + kept[:, None] * apart).ravel()
        return result


def levels(
    measurements: Sequence[Measurement], leaves: Leaves, total: float | None = None
) -> RegularTreeEstimate | None:
    """The estimate for the cells of a grid of which whole levels were counted; None for anything less regular.

    `total` is the number of everything, where that is to be kept.
    """
    if any(isinstance(part.cells, WholeDomain) for part in measurements):
        return None
    parts = sorted(measurements, key=lambda part: part.cells.size)
    begin, end = leaves.tree.span(leaves.tree.root)
    if not parts or not np.array_equal(parts[-1].leaves.cells, leaves.cells) or not leaves.in_order:
        return None
    stretches = leaves.stretches
    if len(begin) != 1 or not np.array_equal(stretches[0], begin) or not np.array_equal(stretches[1], end):
        return None
    if not all(_cuts(fine.leaves, coarse.leaves) for coarse, fine in pairwise(parts)):
        return None
    if not all((part.variances == part.variances[0]).all() for part in parts):
        return None
    everything = CountedLevel(np.full(1, float(total or 0)), np.inf if total is None else 0.0, 0.0)
    return _solved(
        leaves, (everything, *(CountedLevel(part.numbers, float(part.variances[0]), part.kurtosis) for part in parts))
    )


def _cuts(fine: Leaves, coarse: Leaves) -> bool:
    """Whether each cell of a partition is cut into as many of the other, which stand in its place."""
    fan = fine.size // max(coarse.size, 1)
    if not coarse.in_order or fan * coarse.size != fine.size:
        return False
    (first, last), (begin, end) = coarse.spans, fine.spans
    return np.array_equal(begin[::fan], first) and np.array_equal(end[fan - 1 :: fan], last)


def _rows(numbers: NDArray[np.float64], rows: int) -> Floats:
    return numbers.reshape(rows, -1)


def _solved(leaves: Leaves, every: tuple[CountedLevel, ...]) -> RegularTreeEstimate:
    """Upward, the best estimate from below; downward, what is known from above shared out."""
    own, below, sums = [1.0], [every[-1].measured], list[Floats]()
    upward = [every[-1].numbers]  # z̃, the finest first
    for fine, coarse in pairwise(reversed(every)):
        sums.append(_rows(upward[-1], len(coarse.numbers)).sum(axis=1))
        spread = len(fine.numbers) // len(coarse.numbers) * below[-1]
        weight = 0.0 if np.isinf(coarse.measured) else 1.0
        if weight and coarse.measured + spread > 0:
            weight = spread / (coarse.measured + spread)
        own.append(weight)
        below.append(weight * coarse.measured if weight else spread)
        upward.append(weight * coarse.numbers + (1 - weight) * sums[-1] if weight else sums[-1])
    wholes, weights = [upward[-1]], [LevelWeights(own[-1], 0.0, below[-1], below[-1])]
    for z, total, ours, under in zip(upward[-2::-1], sums[::-1], own[-2::-1], below[-2::-1], strict=True):
        given = len(total) / len(z) if under > 0 else 0.0
        left = given * (wholes[-1] - total)
        wholes.append((_rows(z, len(total)) + left[:, None]).ravel())
        variance = under * (1 - given) + given**2 * weights[-1].variance
        weights.append(LevelWeights(ours, given, under, variance))
    return RegularTreeEstimate(leaves, every, tuple(weights), tuple(wholes))
