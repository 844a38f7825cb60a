"""Least squares on a forest of regions, in two passes (Hay et al. 2010; Cormode et al. 2012; Honaker 2015).

Every region r has a true number z_r, a measurement y_r of variance m_r (infinite where it was never asked),
and z_r is the sum over its children, if they cover it. Upward, the best estimate from below is

    z̃_r = ω_r y_r + (1 − ω_r) Σ z̃_c,   ω_r = U_r/(m_r + U_r),   U_r = Σ V_c,   V_r = ω_r m_r;

downward, what the parent knows better is shared out: ẑ_c = z̃_c + s_c (ẑ_r − Σ z̃_c) with s_c = V_c/U_r. This is the
generalised least squares estimate, O(regions). Any linear function of it is linear in the measurements; its
weights come from the same passes run backwards, and give its variance and kurtosis exactly.

The estimate is unbiased if the regions were fixed before their noise was drawn. They are not where a noisy number
decided what was asked below it: `read.py` says what is done about that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import Spread
from hazemap.cells import Leaves
from hazemap.errors import InputError
from hazemap.estimate.forest import Forest, forest

Floats = NDArray[np.float64]


class Sample(NamedTuple):
    """Numbers are of people who were drawn, and were multiplied by `factor` so that they are of `people`.

    A person adds at most `most` to what is counted.
    """

    people: int
    most: float
    factor: float


class Measurement(NamedTuple):
    """Unbiased numbers of the cells of a partition, their variances and excess kurtosis; float64[size]."""

    cells: Leaves
    numbers: Floats
    variances: Floats
    kurtosis: float
    sample: Sample | None = None


class Regions(NamedTuple):
    """All regions that were measured, and those of the result; one entry a region, in the order of the forest."""

    forest: Forest
    numbers: Floats  # y
    measured: Floats  # m
    kurtosis: Floats
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


def consistent(measurements: Sequence[Measurement], leaves: Leaves, total: float | None = None) -> Consistent:
    """Exact least squares from measurements, oldest first, for the cells of `leaves`.

    `total` is the number of everything, where that is to be kept. `InputError` if nothing is known of some cells.
    """
    regions = _regions(measurements, leaves, total)
    parent, missing = regions.forest.parent, regions.forest.missing
    own, given = _loops().weigh(parent, missing, regions.measured)
    below, whole, variance = _loops().apply(parent, regions.numbers, regions.measured, own, given)
    if not np.isfinite(variance[regions.at]).all():
        raise InputError("some cells of the result were never asked for, so nothing is known of them")
    return Consistent(leaves, regions, own, given, below, whole, variance)


def _regions(measurements: Sequence[Measurement], leaves: Leaves, total: float | None) -> Regions:
    """Everything that was measured, the cells of the result, and the whole domain."""
    unknown = Measurement(leaves, np.zeros(leaves.size), np.full(leaves.size, np.inf), 0.0)
    parts = [*measurements, unknown]
    everything = ([0.0], [np.inf]) if total is None else ([total], [0.0])
    woods = forest([part.cells for part in parts])
    rows = sum(part.cells.size for part in parts)
    place = np.full(rows + 1, -1)
    place[woods.row] = np.arange(len(woods.row))
    at = place[rows - leaves.size : rows]
    if (at < 0).any():
        raise InputError("some cells of the result cut across what was asked for, so nothing is known of them")
    return Regions(
        woods,
        np.concatenate([*(part.numbers for part in parts), everything[0]])[woods.row],
        np.concatenate([*(part.variances for part in parts), everything[1]])[woods.row],
        np.concatenate([*(np.full(part.cells.size, part.kurtosis) for part in parts), [0.0]])[woods.row],
        at,
    )


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
