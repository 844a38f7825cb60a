"""Places the cells of a tree on the sheet: squares become pixels of an image, others polygons."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells, Tree
from hazemap.draw.viewport import CIRCUMFERENCE, Viewport, ViewportBounds, sheet
from hazemap.spatial.quadtree import Quadtree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Colours = NDArray[np.uint8]  # red, green, blue, alpha along the last axis
HAIRLINE = 0.35  # points, the width of the outline of a cell
MOST_VECTORS = 20_000  # shapes of one layer that an SVG or a PDF holds as shapes; more become an image in it
Palette = Callable[[NDArray[np.float64]], Colours]
BLOCK_LEVELS = 4  # images are cut at multiples of 2⁴ pixels, so that cells up to that size lie whole in them
MOST_PIXELS = 2000  # across the longer side of a panel: what a screen shows and print needs
ROWS_AT_ONCE = 128
SEAM = 0.4  # points: each polygon is drawn this much over its edge, or paper would shine through between them
MOST_PADDING = 4  # times the corners that the rings have
Rings = NDArray[Any]  # float64[rings, corners, 2], or an array of float64[corners, 2] of different lengths


class CellShapes(Protocol):
    """Cells on the sheet, in the order of the numbers that are drawn of them."""

    @property
    def tree(self) -> Tree:
        """Whose cells they are."""

    @property
    def cells(self) -> Cells:
        """The cells themselves."""

    @property
    def bounds(self) -> ViewportBounds:
        """West, south, east and north of each cell, in metres of the sheet."""

    def fill(self, axes: "Axes", view: Viewport, numbers: NDArray[np.float64], palette: Palette) -> None:
        """Paint each cell by its number; cells too small to be seen are averaged by area first."""

    def lines(self, axes: "Axes", view: Viewport, colours: NDArray[np.float64]) -> None:
        """Outline each cell as a hairline; float64[cells, 4], cells with alpha 0 are left out."""


def points_across(axes: "Axes") -> float:
    """The width of a panel on paper, in points."""
    figure = cast("Figure", axes.get_figure(root=True))
    return float(axes.get_window_extent().width / figure.dpi * 72)


@dataclass(frozen=True, eq=False)
class SquareCells:
    """Cells of a quadtree; `share` is the part of its area that each owns (nested cells take the rest)."""

    tree: Quadtree
    cells: Cells
    share: NDArray[np.float64]

    @cached_property
    def bounds(self) -> ViewportBounds:
        """West, south, east and north of each cell, in metres of the sheet."""
        x, y, side = self.tree.square(self.cells)
        return tuple(  # type: ignore[return-value]
            CIRCUMFERENCE * edge for edge in (x - 0.5, 0.5 - y - side, x + side - 0.5, 0.5 - y)
        )

    @cached_property
    def levels(self) -> NDArray[np.int64]:
        """The level of each cell."""
        return self.tree.level(self.cells)

    def fill(self, axes: "Axes", view: Viewport, numbers: NDArray[np.float64], palette: Palette) -> None:
        """One image with at least as many pixels as the panel has (or 2000), and less than twice as many."""
        panel = axes.get_window_extent()
        image, extent = self.raster(view, numbers, min(max(panel.width, panel.height), MOST_PIXELS))
        if image.size == 0:
            return
        colours = np.empty((*image.shape, 4), dtype=np.uint8)
        for start in range(0, len(image), ROWS_AT_ONCE):  # a palette needs many times the memory of its image
            rows = slice(start, start + ROWS_AT_ONCE)
            colours[rows] = palette(np.nan_to_num(image[rows], nan=0.0))
            colours[rows, :, 3] = np.where(np.isnan(image[rows]), 0, 255)
        axes.imshow(colours, extent=extent, origin="upper", interpolation="antialiased", aspect="auto", zorder=1)

    def raster(
        self, view: Viewport, numbers: NDArray[np.float64], pixels: float
    ) -> tuple[NDArray[np.float64], tuple[float, float, float, float]]:
        """The numbers as float64[rows, columns] from the north, NaN where no cell is; and its extent.

        Pixels are squares of one (possibly imaginary) level of the tree: at least `pixels` of them across the
        longer side of the view. Returns (west, east, south, north) in metres of the sheet as extent.
        """
        root = self.tree.side * CIRCUMFERENCE
        level = max(BLOCK_LEVELS, math.ceil(math.log2(pixels * root / max(view.width, view.height))))
        pixel = root / 2**level
        west, north = (self.tree.left - 0.5) * CIRCUMFERENCE, (0.5 - self.tree.top) * CIRCUMFERENCE
        block, last = 2**BLOCK_LEVELS, 2**level
        first_column, first_row = (
            max(math.floor(d / pixel / block) * block, 0) for d in (view.west - west, north - view.north)
        )
        end_column, end_row = (
            min(math.ceil(d / pixel / block) * block, last) for d in (view.east - west, north - view.south)
        )
        image = np.full((max(end_row - first_row, 0), max(end_column - first_column, 0)), np.nan)
        extent = (
            west + first_column * pixel,
            west + end_column * pixel,
            north - end_row * pixel,
            north - first_row * pixel,
        )
        if image.size:
            self._paint(image, numbers, level, first_column, first_row)
        return image, extent

    def _paint(
        self, image: NDArray[np.float64], numbers: NDArray[np.float64], level: int, column: int, row: int
    ) -> None:
        x, y, side = self.tree.square(self.cells)
        height, width = image.shape
        finer = np.zeros(len(self.cells), dtype=bool)
        for depth in np.unique(self.levels):  # coarse before fine: nested cells lie on top of their holders
            chosen = np.flatnonzero(self.levels == depth)
            columns, rows = (
                np.rint((edge[chosen] - start) / side[chosen]).astype(np.int64)
                for edge, start in ((x, self.tree.left), (y, self.tree.top))
            )
            if depth > level:
                finer[chosen] = True
                continue
            size = 1 << int(level - depth)
            columns, rows = columns * size - column, rows * size - row
            seen = (columns < width) & (columns + size > 0) & (rows < height) & (rows + size > 0)
            columns, rows, chosen = columns[seen], rows[seen], chosen[seen]
            if size <= 2**BLOCK_LEVELS:
                steps = np.arange(size)
                image[(rows[:, None] + steps)[:, :, None], (columns[:, None] + steps)[:, None, :]] = numbers[
                    chosen, None, None
                ]
            else:
                for top, left, number in zip(rows.tolist(), columns.tolist(), numbers[chosen], strict=True):
                    image[max(top, 0) : top + size, max(left, 0) : left + size] = number
        if finer.any():
            self._average(image, numbers, np.flatnonzero(finer), level, column, row)

    def _average(
        self,
        image: NDArray[np.float64],
        numbers: NDArray[np.float64],
        fine: NDArray[np.int64],
        level: int,
        column: int,
        row: int,
    ) -> None:
        """Cells smaller than a pixel: the mean over the parts of the pixel that they own, and what is below."""
        x, y, side = self.tree.square(self.cells[fine])
        pixel = self.tree.side / 2**level
        columns, rows = (
            np.floor((edge + side / 2 - start) / pixel).astype(np.int64) - first
            for edge, start, first in ((x, self.tree.left, column), (y, self.tree.top, row))
        )
        height, width = image.shape
        seen = (columns >= 0) & (columns < width) & (rows >= 0) & (rows < height)
        place, fine = (rows * width + columns)[seen], fine[seen]
        part = (side[seen] / pixel) ** 2 * self.share[fine]
        covered = np.bincount(place, part, image.size)
        summed = np.bincount(place, part * numbers[fine], image.size)
        below, touched = image.ravel(), covered > 0
        rest = np.where(np.isnan(below), 0.0, np.maximum(1 - covered, 0))
        mean = (summed + rest * np.nan_to_num(below))[touched] / (covered + rest)[touched]
        below[touched] = mean

    def lines(self, axes: "Axes", view: Viewport, colours: NDArray[np.float64]) -> None:
        """Where squares tile the root: western and northern edges, as the others are those of neighbours."""
        from matplotlib.collections import LineCollection

        drawn = view.touches(self.bounds) & (colours[:, 3] > 0)
        west, south, east, north = self.bounds
        corners = np.stack([west, south, west, north, east, north, east, south, west, south], axis=1)
        tiling = bool((self.share == 1).all()) and math.isclose(float((0.25**self.levels).sum()), 1)
        lines = list(corners[drawn, : 6 if tiling else 10].reshape(int(drawn.sum()), -1, 2))
        shades = colours[drawn]
        if tiling and lines:
            left, bottom, right, top = west.min(), south.min(), east.max(), north.max()
            lines.append(np.array([[left, bottom], [right, bottom], [right, top]]))
            shades = np.vstack([shades, shades[shades[:, 3].argmax()]])
        axes.add_collection(
            LineCollection(
                lines,
                colors=shades,
                linewidths=HAIRLINE,
                rasterized=len(lines) > MOST_VECTORS,
                zorder=2,
                gid="cells",
            ),
            autolim=False,
        )


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


def shapes_of(tree: Tree, cells: Cells, share: NDArray[np.float64] | None = None) -> CellShapes:
    """Cells of any tree; `share` is the part of its area that each owns, by default all of it."""
    if isinstance(tree, Quadtree):
        return SquareCells(tree, cells, np.ones(len(cells)) if share is None else share)
    return PolygonCells(tree, cells)
