"""Disaggregation: how people are spread inside a cell, estimated from the cells around it.

A cell has one number, and a picture that spreads it evenly has steps at every border. Where a dense cell lies beside an
empty one, more of its people are on the far side of it. Here each cell is cut as often as that shows, and its number
shared out to the parts in proportion to the mean density of what is around each part, a level up. So every cell keeps
its number (Tobler's pycnophylactic interpolation, 1979), nothing is negative, and rectangles that cut cells are a
third and more nearer to the truth where people are spread smoothly. It is a best guess like the numbers themselves:
of the most plausible map a picture shows it, and of every map it tells where in cut cells people are.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import CellMap, Noise, Reading, Spread
from hazemap.cells import MOST_CELLS, NOWHERE, Cells, Leaves, Tree
from hazemap.estimate.shrinkage import AdjacentCells, TreeLevels
from hazemap.machine_code.arrays import Floats, Ints

SHOWS = 0.25
"""A cell is cut where one of its parts would differ by this part of the cell's standard error from an even share."""


class Disaggregation(NamedTuple):
    """Cells, some of them parts of a map's cells; the map's cell that each lies in, and how many people it holds."""

    cells: Leaves
    holder: Ints
    values: Floats


class _Touching(Tree, AdjacentCells, Protocol):
    """A tree that knows which cells touch each other."""


class _Some(NamedTuple):
    """Some cells of one level, how many people and square metres each has, and the map's cell that it lies in."""

    cells: Cells
    values: Floats
    areas: Floats
    holder: Ints

    def those(self, chosen: NDArray[np.bool_]) -> "_Some":
        return _Some(self.cells[chosen], self.values[chosen], self.areas[chosen], self.holder[chosen])


def _together(several: Sequence[_Some]) -> _Some:
    cells, values, areas, holder = zip(*several, strict=True)
    return _Some(np.concatenate(cells), np.concatenate(values), np.concatenate(areas), np.concatenate(holder))


_NONE = _Some(np.empty(0, dtype=np.uint64), np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))


def inside(cells: Leaves, values: Floats, stddev: Floats, shows: float = SHOWS) -> Disaggregation:
    """A map's cells as finer ones; as they are where cells are nested, or the tree does not know who touches whom.

    `values` are 0 or more, `stddev` their standard errors; `shows` is the part of one that a cut must show. O(cells
    found · depth).
    """
    tree = cells.tree
    nowhere = np.flatnonzero(cells.cells == NOWHERE)
    if cells.nested or not isinstance(tree, AdjacentCells) or len(nowhere) == cells.size:
        return Disaggregation(cells, np.arange(cells.size), values)
    above, known, drawn = TreeLevels(cells), _Known(cast(_Touching, tree)), _NONE
    generations, held = above.levels, above.held(values)
    found = [_Some(cells.cells[nowhere], values[nowhere], cells.areas[nowhere], nowhere)]
    room = MOST_CELLS - cells.size
    for level in range(tree.depth + 1):
        if level < len(generations):
            here = generations[level]
            each = _Some(here.cells, held[level], here.area, here.leaf)
            known.add(_together([each, drawn]))
            drawn = _together([each.those(here.leaf >= 0), drawn])
        else:
            known.add(drawn)
        cut = np.zeros(len(drawn.cells), dtype=np.bool_)
        parts = _NONE
        if level < tree.depth and room > 0:
            cut, parts = _cut(known, level, drawn, shows * stddev)
        found.append(drawn.those(~cut))
        drawn = parts
        room -= len(parts.cells)
        if not len(drawn.cells) and level + 1 >= len(generations):
            break
    every = _together(found)
    return Disaggregation(Leaves(tree, every.cells), every.holder, every.values)


def shown(cellmap: CellMap) -> CellMap:
    """The map as a picture shows it: where it is the most plausible one, cut as finely as its best guess is uneven."""
    return finer(cellmap) if cellmap.reading is Reading.LIKELY else cellmap


def finer(cellmap: CellMap, shows: float = SHOWS) -> CellMap:
    """A map cut as finely as its best guess is uneven; where nothing would be cut, the same map.

    What is unbiased in a cell, and its standard error, are spread evenly over its parts, so that every union of them
    has the numbers and intervals that it had before.
    """
    cells, values = cellmap.cells, np.maximum(cellmap.values, 0)
    coarse = (cells.levels < cells.tree.depth) & (cells.levels >= 0)
    if not (coarse & (values > shows * cellmap.stddev)).any():
        return cellmap  # nothing can be cut
    found = inside(cells, values, cellmap.stddev, shows)
    if found.cells.size == cellmap.cells.size:
        return cellmap
    areas = found.cells.areas
    whole = np.bincount(found.holder, areas, cellmap.cells.size)
    share = np.where(areas > 0, areas, 1) / np.where(whole > 0, whole, 1)[found.holder]  # `NOWHERE` has no area
    even = EvenDisaggregation(cellmap.noise, found.holder, share, cellmap.cells.size)
    unbiased, stddev = cellmap.unbiased[found.holder] * share, cellmap.stddev[found.holder] * share
    return CellMap(found.cells, found.values, unbiased, stddev, even, cellmap.reading)


@dataclass(frozen=True, eq=False)
class EvenDisaggregation:
    """The noise of cells that is spread evenly over their parts."""

    noise: Noise
    holder: Ints
    share: Floats
    size: int

    def of(self, weights: Floats) -> Spread:
        """The noise of Σ weights · parts."""
        return self.noise.of(np.bincount(self.holder, weights * self.share, self.size).astype(np.float64))


class _Known:
    """Densities of cells level by level, as far as they are known; where they are not, those of the cell around."""

    def __init__(self, tree: _Touching) -> None:
        self.tree = tree
        self.levels: list[tuple[Cells, Floats]] = []

    def add(self, some: _Some) -> None:
        """The cells of one level more."""
        order = np.argsort(some.cells)
        self.levels.append((some.cells[order], some.values[order] / some.areas[order]))

    def at(self, cells: Cells, level: int) -> Floats:
        """The density at each cell of a level, or in the smallest cell around of which it is known; NaN for none."""
        found, left = np.full(len(cells), np.nan), np.flatnonzero(cells != NOWHERE)
        cells = cells[left]
        for here, density in reversed(self.levels[: level + 1]):
            if not len(left):
                break
            place = np.minimum(np.searchsorted(here, cells), max(len(here) - 1, 0))
            hit = here[place] == cells if len(here) else np.zeros(len(cells), dtype=np.bool_)
            found[left[hit]] = density[place[hit]]
            left, cells = left[~hit], cells[~hit]
            if level and len(left):
                cells, level = self.tree.parent(cells), level - 1
        return found


def _cut(known: _Known, level: int, some: _Some, least: Floats) -> tuple[NDArray[np.bool_], _Some]:
    """Which cells are cut, and their parts: those of which a part differs by so many of an even share."""
    tree, shows = known.tree, least[some.holder]
    likely = some.values > shows  # no part can differ by more
    if not likely.any():
        return likely, _NONE
    own = some.values[likely] / some.areas[likely]
    around = known.at(tree.neighbours(some.cells[likely]).ravel(), level).reshape(len(own), -1)
    steps = np.nan_to_num(np.abs(around - own[:, None])).max(axis=1, initial=0)
    likely[likely] = steps * some.areas[likely] > shows[likely]
    whole = some.those(likely)
    cells = tree.children(whole.cells)
    order = np.argsort(whole.cells)
    parent = order[np.searchsorted(whole.cells[order], tree.parent(cells))]
    areas = tree.area(cells)
    areas *= (whole.areas / np.bincount(parent, areas, len(whole.cells)))[parent]
    beside = tree.neighbours(cells)
    above = np.where(beside != NOWHERE, tree.parent(beside), NOWHERE)
    near = known.at(above.ravel(), level).reshape(beside.shape)
    there = ~np.isnan(near)
    density = np.where(there, near, 0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)
    shares = areas * np.where(there.any(axis=1), density, 1)
    sums = np.bincount(parent, shares, len(whole.cells))[parent]
    values = np.where(sums > 0, shares / np.where(sums > 0, sums, 1), areas / whole.areas[parent])
    values *= whole.values[parent]
    apart = np.abs(values - areas * (whole.values / whole.areas)[parent])
    shown = np.bincount(parent, apart > shows[likely][parent], len(whole.cells)) > 0
    cut = likely.copy()
    cut[likely] = shown
    kept = shown[parent]
    return cut, _Some(cells[kept], values[kept], areas[kept], whole.holder[parent][kept])
