"""Cells drawn toward the density of what surrounds them, by as much as noise explains their difference."""

import numpy as np

from hazemap.arrays import Floats
from hazemap.estimate.tree_least_squares import Consistent
from hazemap.jit import once_compiled


def shrunk(estimate: Consistent) -> Floats:
    """The cells' numbers after top-down shrinkage, family by family (James and Stein 1961; METHODS.md 1).

    A child's number becomes  area share · parent + max(0, 1 − noise/observed) · deviation: its deviation is
    what it differs by from its share of the parent, `observed` the family's Σ deviation², `noise` what that sum
    would be in expectation if people were spread evenly. Sums of families are kept. float64[cells], O(regions).
    """
    areas = np.zeros(len(estimate.whole))
    areas[estimate.regions.at] = estimate.leaves.areas
    whole: Floats = once_compiled(_shrink_loop)(
        estimate.regions.forest.parent, estimate.whole, estimate.below, estimate.given, areas
    )
    return whole[estimate.regions.at]


def _shrink_loop(parent, whole, below, given, areas):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    n = len(parent)
    area = areas.copy()  # of a region above the cells; the regions below them keep 0 and are not read
    for i in range(n - 1, -1, -1):
        if parent[i] >= 0 and areas[parent[i]] == 0:
            area[parent[i]] += area[i]
    noise, observed = np.zeros(n), np.zeros(n)
    for i in range(n):
        above = parent[i]
        if above >= 0 and area[above] > 0:
            observed[above] += (whole[i] - whole[above] * area[i] / area[above]) ** 2
            if np.isfinite(below[i]):
                noise[above] += below[i] * (1 - given[i])
    result = whole.copy()
    for i in range(n):
        above = parent[i]
        if above >= 0 and area[above] > 0:
            share = area[i] / area[above]
            kept = max(0.0, 1 - noise[above] / observed[above]) if observed[above] > 0 else 0.0
            result[i] = share * result[above] + kept * (whole[i] - share * whole[above])
    return result
