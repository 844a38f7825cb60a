"""Smoothing: cells move towards the density around them by as much as noise explains the difference.

`TreeLevels` are the cells of a map and all their ancestors, for passes of estimation.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Leaves, distinct
from hazemap.estimate.tree_least_squares import ConsistentEstimate, Measurement
from hazemap.machine_code.arrays import Floats, Ints
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


@dataclass(frozen=True, eq=False)
class TreeLevel:
    """Cells of one level, in ascending order, each a cell of the map or around some.

    `parent` are their places among those a level up (0, everything, for roots), `leaf` their places in the map (−1
    for a cell around others), `area` the square metres that the map's cells in them own.
    """

    cells: Cells
    parent: Ints
    leaf: Ints
    area: Floats


@dataclass(frozen=True, eq=False)
class TreeLevels:
    """All generations of a map whose cells do not lie in each other, from the roots down.

    >>> from hazemap.spatial.quadtree import Quadtree
    >>> generations = TreeLevels(Leaves.at_level(Quadtree.world(depth=3), 2))
    >>> [len(each.cells) for each in generations.levels]
    [1, 4, 16]
    """

    leaves: Leaves

    @cached_property
    def levels(self) -> list[TreeLevel]:
        """The generations: O(cells · log cells)."""
        leaves, tree = self.leaves, self.leaves.tree
        found, inner = list[tuple[Cells, Ints]](), np.empty(0, dtype=np.uint64)
        for level in range(int(leaves.levels.max(initial=-1)), -1, -1):
            here = np.flatnonzero(leaves.levels == level)
            cells = np.concatenate([leaves.cells[here], inner])
            leaf = np.concatenate([here, np.full(len(inner), -1)])
            if not (cells[1:] > cells[:-1]).all():
                order = np.argsort(cells, kind="stable")
                cells, leaf = cells[order], leaf[order]
            found.append((cells, leaf))
            inner = distinct(tree.parent(cells)) if level else inner
        generations = list[TreeLevel]()
        areas: Floats = np.empty(0)
        for (cells, leaf), upper in zip_longest(found, [above for above, _ in found[1:]]):
            parent = np.zeros(len(cells), dtype=np.int64)
            if upper is not None:
                above = tree.parent(cells)
                apart = above[1:] != above[:-1]
                if (above[1:] >= above[:-1]).all() and np.array_equal(above[np.append(True, apart)], upper):
                    parent[1:] = np.cumsum(apart)
                else:
                    parent = np.searchsorted(upper, above)
            area = leaves.areas[leaf]
            area[leaf < 0] = areas
            generations.append(TreeLevel(cells, parent, leaf, area))
            areas = np.bincount(parent, area).astype(np.float64)[np.bincount(parent) > 0]
        return generations[::-1]

    def held(self, values: Floats) -> list[Floats]:
        """How many people are in each cell of each generation, from those in each cell of the map: O(cells · depth)."""
        found = list[Floats]()
        below: Floats = np.empty(0)
        for here in reversed(self.levels):
            numbers = np.append(values, 0.0)[here.leaf]
            numbers[here.leaf < 0] = below
            found.append(numbers)
            below = np.bincount(here.parent, numbers).astype(np.float64)[np.bincount(here.parent) > 0]
        return found[::-1]

    def fullest_beside(self, values: Floats) -> Floats:
        """What each cell of the map would hold were it as dense as the densest cell of its size that touches it.

        A part of a larger cell is as dense as that. Nothing where the tree does not know who touches whom. O(cells ·
        log cells).
        """
        leaves, tree = self.leaves, self.leaves.tree
        found = np.zeros(leaves.size)
        if not isinstance(tree, AdjacentCells):
            return found
        density = np.divide(values, leaves.areas, out=np.zeros(leaves.size), where=leaves.areas > 0)
        for here, held in zip(self.levels, self.held(values), strict=True):
            own = here.leaf >= 0
            beside = tree.neighbours(here.cells[own])
            cells, known = beside.ravel(), np.zeros(beside.size)
            place = np.minimum(np.searchsorted(here.cells, cells), len(here.cells) - 1)
            same = here.cells[place] == cells
            known[same] = (held / here.area)[place[same]]
            larger = np.flatnonzero(~same & (cells != NOWHERE))
            holder = leaves.locate(tree.span(cells[larger])[0])
            known[larger] = np.where(holder >= 0, density[holder], 0)
            found[here.leaf[own]] = here.area[own] * known.reshape(beside.shape).max(axis=1, initial=0)
        return found

    @cached_property
    def unknown(self) -> list[Measurement]:
        """A measurement of each generation that says nothing: with it, least squares tell of all of them."""
        sizes = [(Leaves(self.leaves.tree, level.cells), len(level.cells)) for level in self.levels]
        return [Measurement(cells, np.zeros(size), np.full(size, np.inf), 0.0) for cells, size in sizes]

    def around(self, level: int) -> Ints:
        """For each cell of a level, what holds the cells beside it, a level up: int64[cells, neighbours].

        It is the place of a cell of the generation above; or −2 − i where a larger cell of the map does, the i-th; or
        −1 for nothing. So of the four around a quarter two are in its own parent, and two in cells beside that.
        None at all where the tree does not know who touches whom. O(cells · log cells).
        """
        tree, here = self.leaves.tree, self.levels[level]
        if level == 0 or not isinstance(tree, AdjacentCells):
            return np.empty((len(here.cells), 0), dtype=np.int64)
        beside = tree.neighbours(here.cells)
        found = np.full(beside.shape, -1)
        there = np.flatnonzero(beside.ravel() != NOWHERE)
        cells, upper = beside.ravel()[there], self.levels[level - 1].cells
        above = tree.parent(cells)
        own = np.repeat(here.parent, beside.shape[1])[there]
        place, outside = own.copy(), np.flatnonzero(upper[own] != above)
        seek = np.minimum(np.searchsorted(upper, above[outside]), len(upper) - 1)
        place[outside] = np.where(upper[seek] == above[outside], seek, -1)
        larger = outside[place[outside] < 0]
        holder = self.leaves.locate(tree.span(cells[larger])[0])
        place[larger] = np.where(holder >= 0, -2 - holder, -1)
        found.ravel()[there] = place
        return found
