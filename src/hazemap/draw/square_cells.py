"""Quadtree cells on the sheet."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells
from hazemap.draw.cell_shapes import HAIRLINE, MOST_VECTORS, Palette
from hazemap.draw.map_projection import CIRCUMFERENCE
from hazemap.draw.viewport import Viewport, ViewportBounds
from hazemap.spatial.quadtree import Quadtree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BLOCK_LEVELS = 4  # images are cut at multiples of 2⁴ pixels, so that cells up to that size lie whole in them

MOST_PIXELS = 2000  # across the longer side of a panel: what a screen shows and print needs
ROWS_AT_ONCE = 128


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
