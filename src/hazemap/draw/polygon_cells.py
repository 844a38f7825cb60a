"""Cells of any tree on the sheet, as the polygons of their outlines: hexagons, districts."""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells, Tree
from hazemap.draw.cell_shapes import HAIRLINE, MOST_VECTORS, Palette
from hazemap.draw.map_projection import sheet
from hazemap.draw.viewport import Viewport, ViewportBounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SEAM = 0.4  # points: each polygon is drawn this much over its edge, or paper would shine through between them
MOST_PADDING = 4  # times the corners that the rings have
Rings = NDArray[Any]  # float64[rings, corners, 2], or an array of float64[corners, 2] of different lengths


@dataclass(frozen=True, eq=False)
class PolygonCells:
    """Cells by their outlines. An outline that the antimeridian cuts in two is two pieces of one cell.

    Holes in outlines are painted over; no tree has any.
    """

    tree: Tree
    cells: Cells

    @cached_property
    def pieces(self) -> tuple[Rings, NDArray[np.int64], ViewportBounds]:
        """The outer ring of each polygon (metres of the sheet), its cell's position, its bounds; coarse first."""
        import shapely

        order = np.argsort(self.tree.level(self.cells), kind="stable")
        polygons, owner = shapely.get_parts(self.tree.outlines(self.cells[order]), return_index=True)
        there = ~shapely.is_empty(polygons)  # a rectangle beside its district has no ground
        polygons, owner = polygons[there], owner[there]
        rings = shapely.get_exterior_ring(polygons)
        degrees, ring = shapely.get_coordinates(rings, return_index=True)
        west, _, east, _ = shapely.bounds(polygons).T
        points = np.stack(sheet(degrees[:, 0] + _turned((west + east) / 2)[ring], degrees[:, 1]), axis=1)
        sizes = shapely.get_num_coordinates(rings)
        starts = np.cumsum(sizes) - sizes
        least, most = (edge.reduceat(points, starts, axis=0) for edge in (np.minimum, np.maximum))
        bounds = least[:, 0], least[:, 1], most[:, 0], most[:, 1]
        corners = np.empty(len(sizes), dtype=object)
        if len(sizes) * sizes.max() <= MOST_PADDING * len(points):
            # matplotlib is much faster with one array: short rings stand still on their last corner.
            steps = np.minimum(np.arange(sizes.max() - 1), sizes[:, None] - 2)
            corners = points[starts[:, None] + steps]
        else:
            corners[:] = [points[start : start + size - 1] for start, size in zip(starts, sizes, strict=True)]
        return corners, order[owner], bounds

    @cached_property
    def bounds(self) -> ViewportBounds:
        """West, south, east and north of each cell's widest piece, in metres of the sheet."""
        _, owner, bounds = self.pieces
        by_width = np.argsort(bounds[2] - bounds[0], kind="stable")
        widest = np.zeros(len(self.cells), dtype=np.int64)
        widest[owner[by_width]] = by_width  # the last write to a cell wins
        west, south, east, north = (edge[widest] for edge in bounds)
        return west, south, east, north

    def fill(self, axes: "Axes", view: Viewport, numbers: NDArray[np.float64], palette: Palette) -> None:
        """Polygons, fine ones over coarse ones.

        Where hexagons of several levels meet, their outlines leave slivers free. Hexagons of one level tile,
        so each sliver lies in an ancestor of a cell: those are painted first, in the mean colour of their cells.
        """
        colours = palette(numbers) / 255
        cell, above = self._ancestors
        if len(cell):
            ancestors, which = np.unique(above, return_inverse=True)
            west, south, east, north = self.bounds
            area = ((east - west) * (north - south))[cell]
            mixed = np.stack([np.bincount(which, area * part[cell]) for part in colours.T], axis=1)
            PolygonCells(self.tree, ancestors)._paint(axes, view, mixed / np.bincount(which, area)[:, None])
        self._paint(axes, view, colours)

    @cached_property
    def _ancestors(self) -> tuple[NDArray[np.int64], Cells]:
        """Pairs of a cell's position and a cell that it lies in; none where all cells are of one level."""
        levels = self.tree.level(self.cells)
        position, pairs = np.flatnonzero(levels > levels.min()), []
        above = self.cells[position]
        while len(position):
            above = self.tree.parent(above)
            pairs.append((position, above))
            higher = self.tree.level(above) > levels.min()
            position, above = position[higher], above[higher]
        if not pairs:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.uint64)
        return np.concatenate([p for p, _ in pairs]), np.concatenate([a for _, a in pairs])

    def _paint(self, axes: "Axes", view: Viewport, colours: NDArray[np.float64]) -> None:
        rings, owner = self._seen(view)
        self._draw(axes, rings, np.minimum(colours[owner], 1), SEAM, filled=True)

    def lines(self, axes: "Axes", view: Viewport, colours: NDArray[np.float64]) -> None:
        """Whole outlines."""
        rings, owner = self._seen(view)
        drawn = colours[owner, 3] > 0
        self._draw(axes, rings[drawn], colours[owner[drawn]], HAIRLINE, filled=False)

    def _seen(self, view: Viewport) -> tuple[Rings, NDArray[np.int64]]:
        rings, owner, bounds = self.pieces
        seen = view.touches(bounds)
        return rings[seen], owner[seen]

    @staticmethod
    def _draw(axes: "Axes", rings: Any, colours: NDArray[np.float64], width: float, filled: bool) -> None:
        from matplotlib.collections import PolyCollection

        axes.add_collection(
            PolyCollection(
                rings,
                facecolors=colours if filled else "none",
                edgecolors=colours,
                linewidths=width,
                rasterized=len(rings) > MOST_VECTORS,
                zorder=1 if filled else 2,
                gid="fills" if filled else "cells",
            ),
            autolim=False,
        )


def _turned(longitudes: NDArray[np.float64]) -> NDArray[np.float64]:
    """What to add so that pieces on both sides of the antimeridian lie side by side: 0 or 360 degrees."""
    ascending = np.sort(longitudes)
    gaps = np.diff(ascending)
    if not len(gaps) or gaps.max() <= 180:
        return np.zeros(len(longitudes))
    return np.where(longitudes <= ascending[gaps.argmax()], 360.0, 0.0)
