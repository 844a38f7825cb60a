"""The city that does not exist as a table: what plans are tried on."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Floats
from hazemap.cells import Cells, Tree
from hazemap.planning.synthetic_city import City, Quarter
from hazemap.privacy.random_stream import Stream
from hazemap.spatial.bounding_box import MERCATOR_LATITUDE, Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.contribution_bounding import Bounding
from hazemap.tables.votes import Votes

DETAIL = 9  # the square around the box has 4^DETAIL plots


class PlotLevel(NamedTuple):
    """A level of a tree: its `cells` in all, those of them `touched` by plots, and which of these each plot is in."""

    level: int
    cells: int
    touched: int
    at: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SyntheticTable:
    """The made-up city laid over a box: plots with people, and a tree whose cells are no smaller than plots.

    `base` is the base cell of each plot, `density` the law of where people are, `people` how many there are.

    >>> box = Box(2.2, 48.8, 2.5, 48.9)
    >>> SyntheticTable.of(Quadtree.around(box, 12), box, 1000).tree.depth
    9
    """

    tree: Quadtree | Hexagons
    box: Box
    columns: dict[str, Floats]
    base: Cells
    density: Floats
    people: NDArray[np.int64]

    @classmethod
    def of(cls, tree: Quadtree | Hexagons, box: Box, people: int) -> "SyntheticTable":
        """So many people, give or take luck, none of them outside the box; the same ones every time."""
        square, stream = Quadtree.around(box, DETAIL), Stream.fixed(b"the city of a plan")
        plots = square.grid(DETAIL).ravel()
        west, south, east, north = square.bounds(plots)
        lon, lat = (west + east) / 2, (south + north) / 2
        inside = box.holds(lon, lat)
        columns = {"lon": lon[inside], "lat": lat[inside]}
        density = City.built(stream, 1 << DETAIL).day.density.ravel()[inside]
        quarter = Quarter(density / density.sum())
        rough = _no_finer(tree, float(np.median(square.area(plots[::97]))), box)
        base = rough.cell_at(columns, rough.depth)
        return cls(rough, box, columns, base, quarter.density, quarter.counts(stream, people))

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """Everybody gives as much as the rule allows, all of it in their plot."""
        return Votes.gathered(self.base_in(tree), self.people * bounding.sensitivity.l1)

    def base_in(self, tree: Tree) -> Cells:
        """The finest cell of a tree that each plot is in."""
        return self.base if tree == self.tree else tree.cell_at(self.columns, tree.depth)

    def misplaced(self, at: NDArray[np.int64], numbers: Floats) -> float:
        """The part of all people that a map puts in a wrong plot; `at` is the position of each plot's cell."""
        guess = np.maximum(numbers, 0)[at] / np.bincount(at, minlength=len(numbers))[at]
        return float(np.abs(guess / max(guess.sum(), 1e-9) - self.density).sum() / 2)

    def layers(self) -> list[PlotLevel]:
        """Every level, the coarsest first."""
        sizes, cells = [], self.tree.root
        for _ in range(self.tree.depth):
            sizes.append(len(cells))
            cells = self.tree.children(cells)
        sizes.append(len(cells))
        touched, at = np.unique(self.base, return_inverse=True)
        layers = [PlotLevel(self.tree.depth, sizes[-1], len(touched), at)]
        for level in reversed(range(self.tree.depth)):
            touched, above = np.unique(self.tree.parent(touched), return_inverse=True)
            at = above[at]
            layers.append(PlotLevel(level, sizes[level], len(touched), at))
        return layers[::-1]


def median(sizes: Floats, weights: NDArray[Any]) -> float:
    """The least size that half the weight does not exceed."""
    order = np.argsort(sizes)
    until = np.cumsum(weights[order])
    return float(sizes[order][np.searchsorted(until, until[-1] / 2)])


def middle(tree: Tree, box: Box, level: int) -> Cells:
    """The cell of a level in the middle of what a web map shows of a box."""
    south, north = np.clip([box.south, box.north], -MERCATOR_LATITUDE, MERCATOR_LATITUDE)
    columns = {"lon": np.array([(box.west + box.east) / 2]), "lat": np.array([(south + north) / 2])}
    return tree.cell_at(columns, level)


def _no_finer(tree: Quadtree | Hexagons, area: float, box: Box) -> Quadtree | Hexagons:
    """The same tree, without levels whose cells are smaller than a plot."""
    if isinstance(tree, Quadtree):
        return replace(tree, depth=min(tree.depth, DETAIL))
    fits = [level for level in range(tree.depth + 1) if tree.area(middle(tree, box, level))[0] >= area]
    return replace(tree, finest=tree.coarsest + max(fits, default=0))
