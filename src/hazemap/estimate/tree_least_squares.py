"""Least squares on a forest of regions, in two passes (Hay et al. 2010; Cormode et al. 2012; Honaker 2015).

Every region r has a true number z_r, a measurement y_r of variance m_r (infinite where it was never asked),
and z_r is the sum over its children, if they cover it. Upward, the best estimate from below is

    z̃_r = ω_r y_r + (1 − ω_r) Σ z̃_c,   ω_r = U_r/(m_r + U_r),   U_r = Σ V_c,   V_r = ω_r m_r;

downward, what the parent knows better is shared out: ẑ_c = z̃_c + s_c (ẑ_r − Σ z̃_c) with s_c = V_c/U_r. This is the
generalised least squares estimate, O(regions). Any linear function of it is linear in the measurements; its
weights come from the same passes run backwards, and give its variance and kurtosis exactly.

The estimate is unbiased if the regions were fixed before their noise was drawn. They are not where a noisy number
decided what was asked below it: `postprocess.py` says what is done about that.

**Regular trees.** Where whole levels of a regular tree were counted, the cells of a level stand in the order of their
parents, each of which has as many of them, f. So the sum over children is that over the rows of a reshaped array, and
ω, V and s are one number a level: s = 1/f. It is the estimate that `consistent` gives, in a fraction of its time and
memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import Spread
from hazemap.cells import Leaves, WholeDomain
from hazemap.errors import InputError
from hazemap.estimate.region_forest import Forest, forest
from hazemap.machine_code.arrays import Floats
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
