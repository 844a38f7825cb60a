"""The cells of a map and all their ancestors, level by level, for passes of estimation."""

from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest

import numpy as np

from hazemap.cells import NOWHERE, Cells, Leaves, distinct
from hazemap.estimate.shrinkage import AdjacentCells
from hazemap.estimate.tree_least_squares import Measurement
from hazemap.machine_code.arrays import Floats, Ints


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
