"""Least squares on a forest of regions, in two passes (Hay et al. 2010; Cormode et al. 2012; Honaker 2015).

Every region r has a true number z_r, a measurement y_r of variance m_r (infinite where it was never asked),
and z_r is the sum over its children, if they cover it. Upward, the best estimate from below is

    z̃_r = ω_r y_r + (1 − ω_r) Σ z̃_c,   ω_r = U_r/(m_r + U_r),   U_r = Σ V_c,   V_r = ω_r m_r;

downward, what the parent knows better is shared out: ẑ_c = z̃_c + s_c (ẑ_r − Σ z̃_c) with s_c = V_c/U_r. This is the
generalised least squares estimate, O(regions). Any linear function of it is linear in the measurements; its
weights come from the same passes run backwards, and give its variance and kurtosis exactly.

**Who chose the regions matters.** An adaptive method cuts a cell because its noisy number was high, so U_r, and with
it the weight of that very number, depends on its noise: least squares are then biased upward, by several standard
errors for a whole map (benchmarks/intervals.py). `unbiased` therefore gives all cells of one level of one round
the same weight, from the mean of their U_r: no number chooses its own weight, so a region fixed beforehand is
estimated without bias, whatever was asked adaptively (a sum of martingale differences, up to 1/cells of a level).
For a tree that was fixed beforehand the two are the same, level by level; `consistent` keeps the exact weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import Spread
from hazemap.cells import NOWHERE, Leaves
from hazemap.errors import InputError
from hazemap.estimate.forest import Forest, forest

Floats = NDArray[np.float64]


class Measurement(NamedTuple):
    """Unbiased numbers of the cells of a partition, their variances and excess kurtosis; float64[size]."""

    cells: Leaves
    numbers: Floats
    variances: Floats
    kurtosis: float


class Regions(NamedTuple):
    """All regions that were measured, and those of the result; one entry a region, in the order of the forest."""

    forest: Forest
    numbers: Floats  # y
    measured: Floats  # m
    kurtosis: Floats
    group: NDArray[np.int64]  # one number for each level of each round
    at: NDArray[np.int64]  # where the cells of the result are among them


@dataclass(frozen=True, eq=False)
class Consistent:
    """An estimate of every region that is linear in the measurements and adds up."""

    leaves: Leaves
    regions: Regions
    own: Floats  # ω
    given: Floats  # s
    below: Floats  # variance of z̃
    whole: Floats  # ẑ
    variance: Floats  # of ẑ

    @property
    def numbers(self) -> Floats:
        """The estimate of each cell of the result."""
        return self.whole[self.regions.at]

    @cached_property
    def stddev(self) -> Floats:
        """The standard error of each."""
        return np.sqrt(self.variance[self.regions.at])

    def of(self, weights: Floats) -> Spread:
        """The noise of Σ weights · numbers: O(regions)."""
        regions, pull = self.regions, np.zeros(len(self.whole))
        np.add.at(pull, regions.at, weights)
        variance, fourth = _loops().spread(
            regions.forest.parent, pull, self.given, self.own, regions.measured, regions.kurtosis
        )
        return Spread(variance**0.5, fourth / variance**2 if variance else 0.0)


def consistent(measurements: Sequence[Measurement], leaves: Leaves) -> Consistent:
    """Exact least squares from measurements, oldest first, for the cells of `leaves`.

    `InputError` if nothing is known of some of them.
    """
    regions = _regions(measurements, leaves)
    return _solved(regions, leaves, np.full(len(regions.numbers), np.nan))


def unbiased(measurements: Sequence[Measurement], leaves: Leaves) -> Consistent:
    """The same with weights that no number chose for itself: unbiased under adaptive rounds."""
    regions = _regions(measurements, leaves)
    parent, missing = regions.forest.parent, regions.forest.missing
    _, _, around = _loops().weigh(parent, missing, regions.measured, np.full(len(parent), np.nan))
    some = np.isfinite(around)
    size = np.bincount(regions.group[some], minlength=int(regions.group.max()) + 1)
    mean = np.bincount(regions.group[some], around[some], len(size)) / np.maximum(size, 1)
    return _solved(regions, leaves, mean[regions.group])


def _regions(measurements: Sequence[Measurement], leaves: Leaves) -> Regions:
    """Everything that was measured, the cells of the result, and the whole domain."""
    unknown = Measurement(leaves, np.zeros(leaves.size), np.full(leaves.size, np.inf), 0.0)
    parts = [*measurements, unknown]
    woods = forest([part.cells for part in parts])
    rows = sum(part.cells.size for part in parts)
    place = np.full(rows + 1, -1)
    place[woods.row] = np.arange(len(woods.row))
    at = place[rows - leaves.size : rows]
    if (at < 0).any():
        raise InputError("some cells of the result cut across what was asked for, so nothing is known of them")
    levels = leaves.tree.depth + 2
    groups = [turn * levels + _level(part.cells) for turn, part in enumerate(parts)]
    return Regions(
        woods,
        np.concatenate([*(part.numbers for part in parts), [0.0]])[woods.row],
        np.concatenate([*(part.variances for part in parts), [np.inf]])[woods.row],
        np.concatenate([*(np.full(part.cells.size, part.kurtosis) for part in parts), [0.0]])[woods.row],
        np.concatenate([*groups, [len(parts) * levels]])[woods.row],
        at,
    )


def _level(cells: Leaves) -> NDArray[np.int64]:
    """The level of each cell; one more than the deepest for `NOWHERE`."""
    level = np.full(cells.size, cells.tree.depth + 1)
    real = cells.cells != NOWHERE
    level[real] = cells.tree.level(cells.cells[real])
    return level


def _solved(regions: Regions, leaves: Leaves, pooled: Floats) -> Consistent:
    parent, missing = regions.forest.parent, regions.forest.missing
    own, given, _ = _loops().weigh(parent, missing, regions.measured, pooled)
    below, whole, variance = _loops().apply(parent, regions.numbers, regions.measured, own, given)
    if not np.isfinite(variance[regions.at]).all():
        raise InputError("some cells of the result were never asked for, so nothing is known of them")
    return Consistent(leaves, regions, own, given, below, whole, variance)


class _Loops(NamedTuple):
    weigh: Any
    apply: Any
    spread: Any


@cache
def _loops() -> _Loops:
    """The compiled loops of `passes` (numba is loaded only when it is needed)."""
    from hazemap.compiled import compiled
    from hazemap.estimate import passes

    return _Loops(compiled(passes.weigh), compiled(passes.apply), compiled(passes.spread))
