"""Exact least squares on a forest of regions, in two passes (Hay et al. 2010; Cormode et al. 2012; Honaker 2015).

Every region r has a true number z_r, a measurement y_r of variance m_r (infinite where it was never asked),
and z_r is the sum over its children, if they cover it. Upward, the best estimate from below is

    z̃_r = ω_r y_r + (1 − ω_r) Σ z̃_c,   1/V_r = 1/m_r + 1/ΣV_c,   ω_r = V_r/m_r;

downward, what the parent knows better is shared out: ẑ_c = z̃_c + s_c (ẑ_r − Σ z̃_c) with s_c = V_c/ΣV_c. This is the
generalised least squares estimate, unbiased, O(regions). Any linear function of it is linear in the
measurements; its weights come from the same two passes run backwards, and give variance and kurtosis exactly.
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


class Measurement(NamedTuple):
    """Unbiased numbers of the cells of a partition, their variances and excess kurtosis; float64[size]."""

    cells: Leaves
    numbers: Floats
    variances: Floats
    kurtosis: float


@dataclass(frozen=True, eq=False)
class Consistent:
    """The least-squares estimate of the cells of one partition from all measurements.

    `whole` and `variance` are those of every region of the forest; `at` finds the partition's cells among them.
    """

    leaves: Leaves
    forest: Forest
    measured: Floats  # variance of each region's own measurement
    kurtosis: Floats
    below: Floats  # V: variance of the estimate from below
    given: Floats  # share s of what the parent knows better
    own: Floats  # weight ω of the region's own measurement
    whole: Floats  # ẑ
    variance: Floats
    at: NDArray[np.int64]

    @property
    def numbers(self) -> Floats:
        """The estimate of each cell."""
        return self.whole[self.at]

    @cached_property
    def stddev(self) -> Floats:
        """The standard error of each."""
        return np.sqrt(self.variance[self.at])

    def of(self, weights: Floats) -> Spread:
        """The noise of Σ weights · numbers: O(regions)."""
        pull = np.zeros(len(self.whole))
        np.add.at(pull, self.at, weights)
        variance, fourth = _passes().spread(
            self.forest.parent, pull, self.given, self.own, self.measured, self.kurtosis
        )
        return Spread(variance**0.5, fourth / variance**2 if variance else 0.0)


def consistent(measurements: Sequence[Measurement], leaves: Leaves) -> Consistent:
    """Least squares from measurements, oldest first, for the cells of `leaves`.

    `InputError` if nothing is known of some of them.
    """
    parts = [*measurements, unmeasured(leaves)]
    woods = forest([part.cells for part in parts])
    numbers = np.concatenate([*(part.numbers for part in parts), [0.0]])[woods.row]
    measured = np.concatenate([*(part.variances for part in parts), [np.inf]])[woods.row]
    kurtosis = np.concatenate([*(np.full(part.cells.size, part.kurtosis) for part in parts), [0.0]])[woods.row]
    below, given, own, whole, variance = _passes().solve(woods.parent, woods.missing, numbers, measured)
    rows = sum(part.cells.size for part in parts)
    place = np.full(rows + 1, -1)
    place[woods.row] = np.arange(len(woods.row))
    at = place[rows - leaves.size : rows]
    if (at < 0).any() or not np.isfinite(variance[at]).all():
        raise InputError("some cells of the result were never asked for, so nothing is known of them")
    return Consistent(leaves, woods, measured, kurtosis, below, given, own, whole, variance, at)


def unmeasured(cells: Leaves) -> Measurement:
    """The cells of a result, which belong to the forest whether they were asked for or not."""
    return Measurement(cells, np.zeros(cells.size), np.full(cells.size, np.inf), 0.0)


class _Passes(NamedTuple):
    solve: Any
    spread: Any


@cache
def _passes() -> _Passes:
    """The compiled loops below (numba is loaded only when it is needed)."""
    import numba

    compiled = numba.njit(cache=True, nogil=True)
    return _Passes(compiled(_solve_loop), compiled(_spread_loop))


def _solve_loop(parent, missing, numbers, measured):  # type: ignore[no-untyped-def]  # noqa: PLR0912
    n = len(parent)
    below, up, own = np.empty(n), np.empty(n), np.ones(n)
    total, spread, unknown = np.zeros(n), np.zeros(n), np.zeros(n, dtype=np.int64)
    leaf = np.ones(n, dtype=np.bool_)
    for i in range(n):
        if parent[i] >= 0:
            leaf[parent[i]] = False
    for i in range(n - 1, -1, -1):
        closed = not leaf[i] and not missing[i] and unknown[i] == 0
        if not closed:
            below[i], up[i] = measured[i], numbers[i] if np.isfinite(measured[i]) else 0.0
        elif np.isinf(measured[i]):
            below[i], up[i], own[i] = spread[i], total[i], 0.0
        elif measured[i] + spread[i] == 0:  # both exact
            below[i], up[i] = 0.0, numbers[i]
        else:
            own[i] = spread[i] / (measured[i] + spread[i])
            below[i] = own[i] * measured[i]
            up[i] = own[i] * numbers[i] + (1 - own[i]) * total[i]
        if parent[i] >= 0:
            total[parent[i]] += up[i]
            if np.isinf(below[i]):
                unknown[parent[i]] += 1
            else:
                spread[parent[i]] += below[i]
    given, whole, variance = np.zeros(n), up.copy(), below.copy()
    for i in range(n):
        above = parent[i]
        if above < 0 or missing[above]:
            continue
        if unknown[above] == 0:
            if spread[above] > 0:
                given[i] = below[i] / spread[above]
            variance[i] = below[i] * (1 - given[i]) + given[i] ** 2 * variance[above]
        elif unknown[above] == 1 and np.isinf(below[i]):  # the only unknown one is what the others leave
            given[i] = 1.0
            variance[i] = variance[above] + spread[above]
        whole[i] = up[i] + given[i] * (whole[above] - total[above])
    return below, given, own, whole, variance


def _spread_loop(parent, pull, given, own, measured, kurtosis):  # type: ignore[no-untyped-def]  # pragma: no cover
    n = len(parent)
    passed = np.zeros(n)  # b: how the answer moves with ẑ of a region, through its children
    for i in range(n - 1, -1, -1):
        if parent[i] >= 0:
            passed[parent[i]] += given[i] * (pull[i] + passed[i])
    from_below = np.zeros(n)  # h: how it moves with z̃ of a region
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
            fourth += kurtosis[i] * part * part
    return variance, fourth
