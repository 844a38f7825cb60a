"""Non-negative numbers without the bias of clamping."""

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells, Leaves
from hazemap.estimate.grid_groups import groups
from hazemap.estimate.region_forest import forest
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.vdaf.compiled_loops import once_compiled


def nonnegative(cells: Leaves, values: Floats) -> Floats:
    """The nearest non-negative numbers with the same totals, level by level of the tree, float64[cells].

    Clamping each cell at zero raises the total of a sparse map many times over. Here, from the whole domain down, the
    parts of a cell are projected (in L2) on {x ≥ 0, Σ x = the cell's number}, so that what empty places gain is
    taken from their neighbours and from nobody far away. The total stays exactly what it was, so unbiased; so does
    every coarser total, but for those that were negative. A whole domain (or `NOWHERE`) that is not positive keeps its
    number, shared out by area. A grid that has nothing between its cells and everything is taken by groups of its cells
    (`grid_groups`). O(cells · depth); for a grid O(cells).
    """
    if tree := groups(cells):
        grouped = tree.grouped(cells)
        return grouped.back(nonnegative(grouped.cells, values[grouped.order]))
    above = _above_regions(cells) if cells.nested else _above(cells)
    places = above[: cells.size] >= 0
    none_left = values[places].sum() <= 0  # only then is anything shared out by area, which is dear to work out
    areas = cells.areas if none_left else np.zeros(0)
    result: Floats = once_compiled(_project_loop)(above, values.astype(np.float64), areas)
    return result


def _above(cells: Leaves) -> Ints:
    """For each cell the place of the smallest cell of the tree around it, and of that one's, and so on; −1 for none.

    The places of the cells come first, then those of the cells above them, parents after their children. The last is
    everything.
    """
    tree, levels, size = cells.tree, cells.levels, cells.size
    own, found, start = np.full(size, -1), np.empty(0, dtype=np.uint64), size
    around = [own]
    for level in range(int(levels.max(initial=0)), -1, -1):
        here = np.flatnonzero(levels == level) if (levels != level).any() else np.arange(size)
        lower, end = np.concatenate([cells.cells[here], found]), start + len(found)
        upper, part = _grouped(tree.parent(lower)) if level else (found[:0], np.zeros(len(lower), dtype=np.int64))
        own[here] = end + part[: len(here)]
        around.append(end + part[len(here) :])
        found, start = upper, end
    return np.concatenate([*around, np.full(1, -1)])


def _above_regions(cells: Leaves) -> Ints:
    """The same where cells lie inside others: a cell of the tree that one of these has a share in is left out."""
    tree, levels, found = cells.tree, cells.levels, cells.cells[:0]
    ancestors = list[Leaves]()
    for level in range(int(levels.max(initial=0)), 0, -1):
        found, _ = _grouped(tree.parent(np.concatenate([cells.cells[levels == level], found])))
        ancestors.append(Leaves(tree, found))
    woods = forest([*ancestors[::-1], cells])
    rows = sum(part.size for part in ancestors)
    ours = (rows <= woods.row) & (woods.row < rows + cells.size)
    place = np.full(len(ours) + 1, -1)
    place[np.flatnonzero(ours)] = woods.row[ours] - rows
    place[np.flatnonzero(~ours)[::-1]] = np.arange(cells.size, cells.size + (~ours).sum())
    around = np.full(cells.size + int((~ours).sum()), -1)
    around[place[:-1]] = place[woods.parent]
    return around


def _grouped(cells: Cells) -> tuple[Cells, Ints]:
    """Each once, in ascending order, and where each of them went."""
    if (cells[1:] < cells[:-1]).any():
        distinct, part = np.unique(cells, return_inverse=True)
        return distinct, part
    first: NDArray[np.bool_] = np.concatenate([[True], cells[1:] != cells[:-1]])[: len(cells)]
    return cells[first], np.cumsum(first) - 1


def _project_loop(around, values, areas):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    size, n = len(values), len(around)
    value, area = np.zeros(n), np.zeros(n if len(areas) else 0)
    value[:size] = values
    area[: len(areas)] = areas
    eldest, sibling = np.full(n - size, -1), np.empty(n, dtype=np.int64)
    for i in range(n):
        outer = around[i]
        if outer >= 0:
            value[outer] += value[i]
            if len(areas):
                area[outer] += area[i]
            sibling[i], eldest[outer - size] = eldest[outer - size], i
    for v in range(n - 1, size - 1, -1):
        goal, total, number = value[v], 0.0, 0
        child = eldest[v - size]
        while child >= 0:
            total += value[child]
            number += 1
            child = sibling[child]
        shift, left = 0.0, number
        while goal > 0 and left > 0:  # projection on a simplex: whoever falls below 0 falls out (Michelot 1986)
            shift, number = (total - goal) / left, left
            total, left, child = 0.0, 0, eldest[v - size]
            while child >= 0:
                if value[child] > shift:
                    total += value[child]
                    left += 1
                child = sibling[child]
            if left >= number:  # none fell out; rounding may even have let one back in
                break
        child = eldest[v - size]
        while child >= 0:
            if goal > 0:
                value[child] = max(0.0, value[child] - shift)
            else:
                share = area[child] / area[v] if len(areas) and area[v] > 0 else 1 / max(number, 1)
                value[child] = goal * share
            child = sibling[child]
    return value[:size]
