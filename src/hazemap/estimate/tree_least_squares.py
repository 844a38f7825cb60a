"""Least squares on a forest of regions, in two passes (Hay et al. 2010; Cormode et al. 2012; Honaker 2015).

Every region r has a true number z_r, a measurement y_r of variance m_r (infinite where it was never asked),
and z_r is the sum over its children, if they cover it. Upward, the best estimate from below is

    z̃_r = ω_r y_r + (1 − ω_r) Σ z̃_c,   ω_r = U_r/(m_r + U_r),   U_r = Σ V_c,   V_r = ω_r m_r;

downward, what the parent knows better is shared out: ẑ_c = z̃_c + s_c (ẑ_r − Σ z̃_c) with s_c = V_c/U_r. This is the
generalised least squares estimate, O(regions). Any linear function of it is linear in the measurements; its
weights come from the same passes run backwards, and give its variance and kurtosis exactly.

The estimate is unbiased if the regions were fixed before their noise was drawn. They are not where a noisy number
decided what was asked below it: `postprocess.py` says what is done about that.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import Spread
from hazemap.cells import Leaves
from hazemap.errors import InputError
from hazemap.estimate.region_forest import Forest, forest
from hazemap.machine_code.arrays import Floats
from hazemap.spatial.whole_domain import WholeDomain
from hazemap.vdaf.compiled_loops import fitting


class MeasurementSample(NamedTuple):
    """Numbers are of people who were drawn, and were multiplied by `factor` so that they are of `people`.

    A person adds at most `most` to what is counted.
    """

    people: int
    most: float
    factor: float


class Measurement(NamedTuple):
    """Unbiased numbers of the cells of a partition, their variances and excess kurtosis; float64[size]."""

    cells: Leaves | WholeDomain
    numbers: Floats
    variances: Floats
    kurtosis: float
    sample: MeasurementSample | None = None

    @property
    def leaves(self) -> Leaves:
        """Its cells; `InputError` for a number of everything."""
        if isinstance(self.cells, WholeDomain):
            raise InputError("a total cannot tell cells apart")
        return self.cells


class Regions(NamedTuple):
    """All regions that were measured, and those of the result; one entry a region, in the order of the forest."""

    forest: Forest
    measured: Floats  # m
    kurtosis: Floats  # of each measurement
    turn: NDArray[np.int16]  # which measurement a region is of
    at: NDArray[np.int64]  # where the cells of the result are among them


@dataclass(frozen=True, eq=False)
class ConsistentEstimate:
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
        variance, fourth = fitting(_spread_loop, len(pull))(
            regions.forest.parent, pull, self.given, self.own, regions.measured, regions.kurtosis, regions.turn
        )
        return Spread(variance**0.5, fourth / variance**2 if variance else 0.0)


def consistent(measurements: Sequence[Measurement], leaves: Leaves, total: float | None = None) -> ConsistentEstimate:
    """Exact least squares from measurements, oldest first, for the cells of `leaves`.

    `total` is the number of everything, where that is to be kept. `InputError` if nothing is known of some cells.
    """
    parts = [part for part in measurements if isinstance(part.cells, Leaves)]
    place = _place(parts, leaves)
    if place is None:
        place = len(parts)
        parts.append(Measurement(leaves, np.zeros(leaves.size), np.full(leaves.size, np.inf), 0.0))
    woods = forest([part.leaves for part in parts])
    sizes = [*(part.cells.size for part in parts), 1]
    everything = _everything([part for part in measurements if isinstance(part.cells, WholeDomain)], total)
    numbers = np.concatenate([*(part.numbers for part in parts), [everything.number]])[woods.row]
    measured = np.concatenate([*(part.variances for part in parts), [everything.variance]])[woods.row]
    turn = np.repeat(np.arange(len(sizes), dtype=np.int16), sizes)[woods.row]
    solve = fitting(_solve_loop, len(woods.parent))
    own, given, below, whole, variance = solve(woods.parent, woods.missing, numbers, measured)
    position = np.full(sum(sizes), -1)
    position[woods.row] = np.arange(len(woods.row))
    at = position[sum(sizes[:place]) : sum(sizes[: place + 1])]
    if (at < 0).any():
        raise InputError("some cells of the result cut across what was asked for, so nothing is known of them")
    if not np.isfinite(variance[at]).all():
        raise InputError("some cells of the result were never asked for, so nothing is known of them")
    kurtosis = np.array([*(part.kurtosis for part in parts), everything.kurtosis])
    return ConsistentEstimate(leaves, Regions(woods, measured, kurtosis, turn, at), own, given, below, whole, variance)


class _One(NamedTuple):
    """What is known of one number."""

    number: float
    variance: float
    kurtosis: float


def _everything(parts: Sequence[Measurement], total: float | None) -> _One:
    """What is known of everything: `total`, or else the mean of its measurements by their variances, or nothing."""
    if total is not None or not parts:
        return _One(float(total or 0), np.inf if total is None else 0.0, 0.0)
    variances = np.array([part.variances[0] for part in parts])
    least = float(variances.min())
    # in units of the least, which may be next to nothing or nothing, at an ε of a million
    weights = np.divide(least, variances, out=np.ones(len(variances)), where=variances > least)
    number = float(weights @ np.array([part.numbers[0] for part in parts]) / weights.sum())
    fourth = float(weights**2 @ np.array([part.kurtosis for part in parts]) / weights.sum() ** 2)
    return _One(number, least / float(weights.sum()), fourth)


def _place(measurements: Sequence[Measurement], leaves: Leaves) -> int | None:
    """Which measurement, the last one, is of these very cells; None if they have to be added to the forest."""
    alike = (turn for turn, part in enumerate(measurements) if np.array_equal(part.leaves.cells, leaves.cells))
    return max(alike, default=None)


def _solve_loop(parent, missing, numbers, measured):  # type: ignore[no-untyped-def]
    """ω and s of each region, the variance V of z̃, the estimate ẑ, and its variance: infinite where nothing is known.

    Given the sum of its siblings, z̃_c is s_c of it and a rest, of variance V_c (1 − s_c), that has nothing to do with
    anything else. So the variance of ẑ_c is that and s_c² times its parent's.
    """
    n = len(parent)
    own, given = np.ones(n), np.zeros(n)
    whole, below = numbers.copy(), measured.copy()
    total, spread = np.zeros(n), np.zeros(n)
    unknown = np.full(n, -1, dtype=np.int32)  # children of which nothing is known; −1 without children
    for i in range(n - 1, -1, -1):
        if unknown[i] == 0 and not missing[i]:
            if np.isinf(measured[i]):
                own[i], below[i], whole[i] = 0.0, spread[i], total[i]
            elif measured[i] + spread[i] > 0:
                own[i] = spread[i] / (measured[i] + spread[i])
                below[i] = own[i] * measured[i]
                whole[i] = own[i] * numbers[i] + (1 - own[i]) * total[i]
        above = parent[i]
        if above >= 0:
            unknown[above] = max(unknown[above], 0)
            if np.isinf(below[i]):
                unknown[above] += 1
            else:
                spread[above] += below[i]
                total[above] += whole[i]
    variance = below.copy()
    for i in range(n):
        above = parent[i]
        if above < 0 or missing[above]:
            continue
        if unknown[above] == 0 and spread[above] > 0:
            given[i] = below[i] / spread[above]
            whole[i] += given[i] * (whole[above] - total[above])
            variance[i] = below[i] * (1 - given[i]) + given[i] * given[i] * variance[above]
        elif unknown[above] == 1 and np.isinf(below[i]):  # the only unknown one is what the others leave
            given[i] = 1.0
            whole[i] = whole[above] - total[above]
            variance[i] = variance[above] + spread[above]
    return own, given, below, whole, variance


def _spread_loop(parent, pull, given, own, measured, kurtosis, turn):  # type: ignore[no-untyped-def]
    """Variance and fourth cumulant of Σ pull · ẑ, by the passes run backwards; `turn` says whose kurtosis it is."""
    n = len(parent)
    passed = np.zeros(n)  # how the sum moves with ẑ of a region, through its children
    for i in range(n - 1, -1, -1):
        if parent[i] >= 0:
            passed[parent[i]] += given[i] * (pull[i] + passed[i])
    from_below = np.zeros(n)  # how it moves with z̃ of a region
    variance, fourth = 0.0, 0.0
    for i in range(n):
        above = parent[i]
        from_below[i] = pull[i] + passed[i]
        if above >= 0:
            from_below[i] += from_below[above] * (1 - own[above]) - passed[above]
        weight = from_below[i] * own[i]
        if weight != 0 and np.isfinite(measured[i]):
            part = weight * weight * measured[i]
            variance += part
            fourth += kurtosis[turn[i]] * part * part
    return variance, fourth
