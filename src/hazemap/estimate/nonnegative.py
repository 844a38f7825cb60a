"""Numbers without minus signs, and without the bias that clamping brings."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.estimate.consistent import Consistent

Floats = NDArray[np.float64]


def nonnegative(estimate: Consistent, values: Floats) -> Floats:
    """The nearest non-negative numbers with the same totals wherever a region's total is positive, float64[cells].

    Clamping each cell at zero raises the total of a sparse map many times over. Here, from the top down, the
    children of a region are projected (in L2) on {x ≥ 0, Σ x = the region's number}; a region whose own number
    is not positive keeps it, shared out by area, so the totals of the top regions (the coarsest that were
    asked) stay exactly what they were: unbiased. `values` are the cells' numbers, shrunk or not. O(regions · log).
    """
    areas = np.zeros(len(estimate.whole))
    areas[estimate.regions.at] = estimate.leaves.areas
    start = np.zeros(len(estimate.whole))
    start[estimate.regions.at] = values
    above = np.zeros(len(areas), dtype=np.bool_)
    above[estimate.regions.at] = True
    result: Floats = _compiled()(estimate.regions.forest.parent, start, areas, above)
    return result[estimate.regions.at]


@cache
def _compiled() -> Any:
    """The compiled loop below (numba is loaded only when it is needed)."""
    from hazemap.compiled import compiled

    return compiled(_project_loop)


def _project_loop(parent, values, areas, cells):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    n = len(parent)
    value, area, children = values.copy(), areas.copy(), np.zeros(n + 1, dtype=np.int64)
    used = cells.copy()  # the cells and the regions above them
    for i in range(n - 1, -1, -1):
        above = parent[i]
        if used[i] and above >= 0 and not cells[above]:
            used[above] = True
            value[above] += value[i]
            area[above] += area[i]
            children[above + 1] += 1
    start = np.cumsum(children)
    member, filled = np.empty(start[-1], dtype=np.int64), start.copy()
    for i in range(n):
        above = parent[i]
        if used[i] and above >= 0 and not cells[above]:
            member[filled[above]] = i
            filled[above] += 1
    for v in range(n):
        family = member[start[v] : start[v + 1]]
        if len(family) == 0:
            continue
        goal = value[v]
        if goal <= 0:
            for c in family:
                value[c] = goal * area[c] / area[v] if area[v] > 0 else goal / len(family)
            continue
        ordered = np.sort(value[family])[::-1]  # projection on a simplex (Held, Wolfe and Crowder 1974)
        running, shift = 0.0, 0.0
        for k in range(len(ordered)):
            running += ordered[k]
            candidate = (running - goal) / (k + 1)
            if ordered[k] - candidate > 0:
                shift = candidate
        for c in family:
            value[c] = max(0.0, value[c] - shift)
    return value
