"""The geometry of each cell of a map: its area, its outline, its place in an equal-area plane."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Leaves, Tree
from hazemap.machine_code.arrays import Floats
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.plane import ground_unit, plane_of
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import BinaryPartition, TwoLevelGrid
from hazemap.spatial.web_mercator import ECCENTRICITY, SEMI_MINOR

RECTANGULAR = (Quadtree, TwoLevelGrid, BinaryPartition)
"""Trees whose cells are rectangles of longitude and latitude."""


def name_column(tree: Tree) -> str:
    """What the column of names is called, so that other tools know them: `h3`, `quadkey`, else `cell`.

    >>> name_column(Quadtree.world(depth=3)), name_column(Quadtree(0.25, 0.25, 0.5, 3))
    ('quadkey', 'cell')
    """
    if isinstance(tree, Hexagons):
        return "h3"
    if isinstance(tree, Quadtree) and not plane_of(tree) and (tree.left, tree.top, tree.side) == (0, 0, 1):
        return "quadkey"
    return "cell"


def equal_area(degrees: Floats) -> Floats:
    """Points [n, 2] in longitude and latitude on a plane, in metres, where areas are true (WGS 84).

    The cylindrical equal-area projection: x = b·λ, y = b/2 · (s/(1 − e²s²) + artanh(e·s)/e) with s the sine of
    the latitude (Snyder 1987, equation 3-12). Meridians and parallels stay straight.

    >>> equal_area(np.array([[0.0, 0.0], [180.0, 90.0]])).round(-3)
    array([[       0.,        0.],
           [19970000.,  6385000.]])
    """
    sine = np.sin(np.radians(degrees[:, 1]))
    height = sine / (1 - ECCENTRICITY**2 * sine**2) + np.arctanh(ECCENTRICITY * sine) / ECCENTRICITY
    return SEMI_MINOR * np.column_stack([np.radians(degrees[:, 0]), height / 2])


class Pieces(NamedTuple):
    """Disjoint cells that leaves own, and the position of the leaf that owns each."""

    cells: Cells
    owner: NDArray[np.int64]


class NearPieces(NamedTuple):
    """Some pieces, the positions of the leaves that own them, and their bounds in the equal-area plane, float64[4, n].

    `pieces` are their places among all pieces.
    """

    pieces: NDArray[np.int64]
    owner: NDArray[np.int64]
    bounds: Floats


FEW = 1 << 10
"""Cells that are looked at for which of them meet a rectangle, before their leaves are."""

MARGIN = 1e-9
"""Of the size of the world: rounding of bounds does not hide a cell from a rectangle that it meets."""


@dataclass(frozen=True, eq=False)
class CellGeometry:
    """The cells of a map on the ground. Positions are positions in `leaves`; `NOWHERE` owns nothing.

    >>> tree = Quadtree.world(depth=2)
    >>> both = CellGeometry(Leaves(tree, np.concatenate([tree.root, tree.children(tree.root)[:3]])))
    >>> both.pieces.owner, both.km2.round(-6)
    (array([1, 2, 3, 0]), array([1.27e+08, 1.27e+08, 1.27e+08, 1.27e+08]))
    """

    leaves: Leaves

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """The positions of all cells but `NOWHERE`."""
        return np.flatnonzero(self.leaves.cells != NOWHERE)

    @cached_property
    def km2(self) -> Floats:
        """Square kilometres that each cell owns, or on a plane `ground_unit`; exactly 0 where deeper cells fill it."""
        return self.leaves.areas / ground_unit(self.leaves.tree).per

    def flat(self, points: Floats) -> Floats:
        """Points [n, 2] where areas are true: a plane is so as it is."""
        return points if plane_of(self.leaves.tree) else equal_area(points)

    @cached_property
    def pieces(self) -> Pieces:
        """What each place owns, as the largest cells that nested places leave free in it.

        A place that others fill owns nothing and holds nobody. It is its own piece, so that it goes with
        the region that holds all of it, and the parts of a map sum to its total.
        """
        leaves, tree = self.leaves, self.leaves.tree
        inside = leaves.holder >= 0
        hollow = np.zeros(leaves.size, dtype=bool)
        hollow[leaves.holder[inside]] = leaves.areas[leaves.holder[inside]] > 0
        plain = self.places[~hollow[self.places]]
        cells, owners = [leaves.cells[plain]], [plain]
        # Climb from the nested cells: `taken` are cells with a place in them, `owner` is the place around.
        taken, owner = np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
        for level in range(int(leaves.levels.max(initial=0)), 0, -1):
            nested = np.flatnonzero(inside & (leaves.levels == level))
            nested = nested[hollow[leaves.holder[nested]]]
            taken = np.concatenate([taken, leaves.cells[nested]])
            owner = np.concatenate([owner, leaves.holder[nested]])
            around, which = np.unique(tree.parent(taken), return_index=True)
            owner = owner[which]
            children = tree.children(around)
            free = children[~np.isin(children, taken)]
            cells.append(free)
            owners.append(owner[np.searchsorted(around, tree.parent(free))])
            climb = leaves.cells[owner] != around
            taken, owner = around[climb], owner[climb]
        return Pieces(np.concatenate(cells), np.concatenate(owners))

    @cached_property
    def bounds(self) -> Floats:
        """Least x, least y, greatest x, greatest y of the pieces in the equal-area plane; float64[4, pieces]."""
        import shapely

        tree = self.leaves.tree
        if isinstance(tree, RECTANGULAR):
            return self._bounds_of(self.pieces.cells)
        bounds: Floats = np.ascontiguousarray(shapely.bounds(self._flat).T)
        return bounds

    def near(self, low: Floats, high: Floats) -> NearPieces:
        """The pieces whose bounds meet a rectangle of the equal-area plane, in the order of pieces.

        In a quadtree the bounds of no other pieces are computed, unless those of all are known.
        """
        some = None if "bounds" in self.__dict__ else self._leaves_near(low, high)
        bounds = self.bounds if some is None else self._bounds_of(self.leaves.cells[some])
        west, south, east, north = bounds
        met = np.flatnonzero((west < high[0]) & (east > low[0]) & (south < high[1]) & (north > low[1]))
        if some is None:
            return NearPieces(met, self.pieces.owner[met], bounds[:, met])
        owner = some[met]
        return NearPieces(owner - np.searchsorted(self._nowhere, owner), owner, bounds[:, met])

    @cached_property
    def _nowhere(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.leaves.cells == NOWHERE)

    def _leaves_near(self, low: Floats, high: Floats) -> NDArray[np.int64] | None:
        """Positions of leaves among which are all that meet a rectangle; None where that is not found out sooner."""
        leaves, tree = self.leaves, self.leaves.tree
        if not isinstance(tree, Quadtree) or not leaves.places_in_order:
            return None
        width = MARGIN * np.ptp(self._bounds_of(tree.root).reshape(2, 2), axis=0)
        low, high, cells = low - width, high + width, tree.root
        for _ in range(tree.depth):
            if len(cells) > FEW:
                break
            cells = tree.children(cells)
            west, south, east, north = self._bounds_of(cells)
            cells = cells[(west < high[0]) & (east > low[0]) & (south < high[1]) & (north > low[1])]
        starts, ends = tree.span(cells)
        first, last = (each[leaves.order] for each in leaves.spans) if len(self._nowhere) else leaves.spans
        begin, end = np.searchsorted(last, starts, "left"), np.searchsorted(first, ends, "right")
        end = np.maximum(end, begin)
        begin[1:] = np.maximum(begin[1:], end[:-1])  # a large leaf may hold several of the cells
        sizes = np.maximum(end - begin, 0)
        steps = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        found = np.repeat(begin, sizes) + steps
        return found if not len(self._nowhere) else np.sort(leaves.order[found])

    def _bounds_of(self, cells: Cells) -> Floats:
        """Bounds of rectangular cells in the equal-area plane; float64[4, cells]."""
        west, south, east, north = self.leaves.tree.bounds(cells)  # type: ignore[attr-defined]
        corners = ([west, south], [east, north])
        return np.vstack([self.flat(np.column_stack(corner)).T for corner in corners])

    @property
    def owns_one_piece_each(self) -> bool:
        """Whether each place is its own piece, a rectangle, so that what it owns is the area of that."""
        return self.rectangles and not self.leaves.nested

    @cached_property
    def areas(self) -> Floats:
        """Square metres of each piece in the equal-area plane."""
        import shapely

        west, south, east, north = self.bounds
        areas: Floats = (east - west) * (north - south) if self.rectangles else shapely.area(self._flat)
        return areas

    def areas_of(self, near: NearPieces) -> Floats:
        """Square metres of some pieces."""
        if not self.rectangles:
            return self.areas[near.pieces]
        west, south, east, north = near.bounds
        areas: Floats = (east - west) * (north - south)
        return areas

    @cached_property
    def owned(self) -> Floats:
        """Square metres of all pieces of each cell in the equal-area plane."""
        return np.bincount(self.pieces.owner, self.areas, self.leaves.size).astype(float)

    def shapes(self, near: NearPieces) -> NDArray[Any]:
        """The outlines of some pieces in the equal-area plane."""
        import shapely

        shapes: NDArray[Any] = shapely.box(*near.bounds) if self.rectangles else self._flat[near.pieces]
        return shapes

    @cached_property
    def _flat(self) -> NDArray[Any]:
        import shapely

        flat: NDArray[Any] = shapely.transform(self.leaves.tree.outlines(self.pieces.cells), self.flat)
        return flat

    @property
    def rectangles(self) -> bool:
        """Whether every piece is a rectangle of longitude and latitude, so that its bounds are all of it."""
        return isinstance(self.leaves.tree, RECTANGULAR)

    def outlines(self, positions: NDArray[np.int64]) -> NDArray[Any]:
        """What some of the places own, as shapely polygons in longitude and latitude; empty if nothing."""
        import shapely

        tree, (cells, owner) = self.leaves.tree, self.pieces
        wanted = np.flatnonzero(np.isin(owner, positions))
        wanted = wanted[np.argsort(owner[wanted], kind="stable")]
        shapes = tree.outlines(cells[wanted])
        starts = np.flatnonzero(np.diff(owner[wanted], prepend=-1))
        several = np.diff(starts, append=len(wanted)) > 1
        joined = shapes[starts]
        for i in np.flatnonzero(several):
            end = starts[i + 1] if i + 1 < len(starts) else len(wanted)
            joined[i] = shapely.union_all(shapes[starts[i] : end])
        joined[self.km2[owner[wanted[starts]]] == 0] = shapely.Polygon()
        outlines: NDArray[Any] = joined[np.searchsorted(owner[wanted[starts]], positions)]
        return outlines

    @cached_property
    def extent(self) -> tuple[float, float, float, float]:
        """West, south, east and north of all places together, in degrees."""
        import shapely

        tree, cells = self.leaves.tree, self.leaves.cells[self.places]
        if isinstance(tree, RECTANGULAR):
            west, south, east, north = tree.bounds(cells)
        else:
            west, south, east, north = shapely.bounds(tree.outlines(cells)).T
        return float(np.nanmin(west)), float(np.nanmin(south)), float(np.nanmax(east)), float(np.nanmax(north))
