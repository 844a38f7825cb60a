"""Smoothing: cells move towards the density around them by as much as noise explains the difference."""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Leaves
from hazemap.estimate.tree_least_squares import ConsistentEstimate
from hazemap.machine_code.arrays import Floats
from hazemap.vdaf.compiled_loops import once_compiled


def shrunk(estimate: ConsistentEstimate) -> Floats:
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


OWN = 2  # neighbours that a cell itself is worth, in the mean over what surrounds it
FEW = 16  # cells that tell too little about cells like them
_SLIVER = 1e-6  # parts of an area below this are rounding


@runtime_checkable
class AdjacentCells(Protocol):
    """A tree that knows which cells touch each other."""

    def neighbours(self, cells: Cells) -> Cells:
        """The cells of the same level that share an edge with each, uint64[cells, k]; `NOWHERE` where there is none."""


def drawn_together(cells: Leaves, numbers: Floats, variances: Floats, values: Floats) -> Floats:
    """Each number drawn toward what the density around its cell predicts, as far as noise explains the difference.

    `values` is a first guess, `numbers` and `variances` what was measured. A cell of area a is predicted to hold
    p = a · (2d + Σ d_k)/(2 + k), d its own density in the guess and d_k that of the k cells of its size on its sides.
    Cells of one level whose p lie within a factor of 2 are judged together: their numbers x become p + w(x − p) with
    w = max(0, 1 − Σ variance/Σ (x − p)²) (empirical Bayes, Efron and Morris 1973). So where people are spread smoothly
    neighbours help, and where every street is another world they do not. Cells with few like them keep their guess.
    Then the numbers in each cell a level up are brought back to their total, so that nobody moves far. float64[cells],
    O(cells · log cells); the guess itself where a tree does not know who touches whom.
    """
    tree, places = cells.tree, cells.cells != NOWHERE
    if not isinstance(tree, AdjacentCells) or not places.any():
        return values
    around = tree.neighbours(cells.cells[places])
    there = around != NOWHERE
    mass, area = np.zeros(around.shape), np.zeros(around.shape)
    mass[there], area[there] = _held(cells, values, around[there])
    known = area > 0
    density = np.divide(mass, area, out=np.zeros(around.shape), where=known)
    predicted = OWN * values[places] + cells.areas[places] * density.sum(axis=1)
    predicted /= OWN + known.sum(axis=1)
    apart, scale = numbers[places] - predicted, np.rint(np.log2(np.maximum(predicted, 1))).astype(np.int64)
    _, alike, members = np.unique(cells.levels[places] * 64 + scale, return_inverse=True, return_counts=True)
    noise, seen = (np.bincount(alike, weight) for weight in (variances[places], apart**2))
    kept = np.maximum(0, 1 - np.divide(noise, seen, out=np.ones(len(seen)), where=seen > 0))
    drawn = values.copy()
    drawn[places] = np.where(members[alike] < FEW, values[places], predicted + kept[alike] * apart)
    return _restored(cells, drawn, values, places)


def _restored(cells: Leaves, drawn: Floats, values: Floats, places: NDArray[np.bool_]) -> Floats:
    """The numbers in each cell a level up scaled back to their total, where both totals are positive."""
    real = Leaves(cells.tree, cells.cells[places])
    upper = real.above(1)
    group = upper.locate(real.spans[0])
    goal = np.bincount(group, values[places], upper.size)
    found = np.bincount(group, drawn[places], upper.size)
    fine = (goal > 0) & (found > 0)
    factor = np.divide(goal, found, out=np.ones(upper.size), where=fine)
    result = drawn.copy()
    result[places] = np.where(fine[group], drawn[places] * factor[group], values[places])
    return result


class _Held(NamedTuple):
    mass: Floats
    area: Floats


def _held(cells: Leaves, values: Floats, asked: Cells) -> _Held:
    """How much of the map lies in each of some cells of the tree, and on how much of their area anything is known.

    A cell that is asked for holds cells of the map, or lies in one, or (where cells are nested) both.
    """
    tree, order = cells.tree, cells.order
    starts, ends = (edges[order] for edges in cells.spans)
    masses = np.concatenate([[0], np.cumsum(values[order])])
    areas = np.concatenate([[0], np.cumsum(cells.areas[order])])
    first, last = tree.span(asked)
    begin, end = np.searchsorted(starts, first, "left"), np.searchsorted(starts, last, "right")
    padded = np.append(ends, np.uint64(0))
    while (wider := (begin < end) & (padded[begin] > last)).any():  # cells around that begin at the same place
        begin[wider] += 1
    mass, area = masses[end] - masses[begin], areas[end] - areas[begin]
    whole = tree.area(asked)
    free = np.where(whole - area > _SLIVER * whole, whole - area, 0)
    holder = cells.locate(first)
    opens, closes = cells.spans
    while (within := (holder >= 0) & (opens[holder] >= first) & (closes[holder] <= last)).any():
        holder[within] = cells.holder[holder[within]]
    inside = holder >= 0
    room = cells.areas[holder]
    lent = np.where(inside & (room > 0), free / np.where(room > 0, room, 1), 0)
    return _Held(mass + lent * values[holder], area + np.where(inside, free, 0))
