"""Numbers without minus signs, and without the bias that clamping brings."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Leaves, distinct
from hazemap.estimate.forest import forest

Floats = NDArray[np.float64]


def nonnegative(cells: Leaves, values: Floats) -> Floats:
    """The nearest non-negative numbers with the same totals, level by level of the tree, float64[cells].

    Clamping each cell at zero raises the total of a sparse map many times over. Here, from the whole domain down, the
    parts of a cell are projected (in L2) on {x ≥ 0, Σ x = the cell's number}, so that what empty places gain is
    taken from their neighbours and from nobody far away. The total stays exactly what it was, so unbiased; so does
    every coarser total, but for those that were negative. A whole domain (or `NOWHERE`) that is not positive keeps its
    number, shared out by area. O(cells · depth).
    """
    ancestors = _ancestors(cells)
    woods = forest([*ancestors, cells])
    rows = sum(part.size for part in ancestors) + cells.size
    place = np.full(rows + 1, -1)
    place[woods.row] = np.arange(len(woods.row))
    at = place[rows - cells.size : rows]
    start, areas, ours = np.zeros(len(woods.row)), np.zeros(len(woods.row)), np.zeros(len(woods.row), dtype=np.bool_)
    start[at], areas[at], ours[at] = values, cells.areas, True
    result: Floats = _compiled()(woods.parent, start, areas, ours)[at]
    return result


def _ancestors(cells: Leaves) -> list[Leaves]:
    """All cells above, a partition a level, coarsest first."""
    tree, levels, found = cells.tree, cells.levels, cells.cells[:0]
    ancestors = []
    for level in range(int(levels.max(initial=0)), 0, -1):
        found = distinct(tree.parent(np.concatenate([cells.cells[levels == level], found])))
        ancestors.append(Leaves(tree, found))
    return ancestors[::-1]


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
