"""What a picture needs of a cell map: how dense each place is, and how sure that is."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import CellMap
from hazemap.draw.cell_shapes import CellShapes
from hazemap.draw.polygon_cells import PolygonCells
from hazemap.draw.square_cells import SquareCells
from hazemap.draw.viewport import Viewport
from hazemap.errors import InputError
from hazemap.spatial.quadtree import Quadtree

OWNS_NOTHING = 1e-6  # of its area: what rounding leaves of a cell that nested cells cover


@dataclass(frozen=True, eq=False)
class DensitySurface:
    """The places of a cell map (`NOWHERE` is not one), as float64[places].

    `values` are what is counted, negative ones as zero; `density` and `noise` are `values` and the standard
    error per square kilometre owned; `relative` is their quotient, infinite where nothing was found.
    """

    shapes: CellShapes
    values: NDArray[np.float64]
    density: NDArray[np.float64]
    noise: NDArray[np.float64]
    areas: NDArray[np.float64]  # square kilometres
    found: NDArray[np.float64]  # unbiased, and the standard error; 0 both where nothing is known
    error: NDArray[np.float64]

    @classmethod
    def of(cls, cellmap: CellMap) -> "DensitySurface":
        """From the released numbers alone."""
        places, leaves = cellmap.places, cellmap.cells
        if not places.any():
            raise InputError("a picture needs cells that are places; this cell map has none")
        if not np.isfinite(cellmap.values[places]).all():
            raise InputError("a picture needs finite numbers; this cell map holds others")
        cells, owned = leaves.cells[places], leaves.areas[places]
        share = np.clip(owned / leaves.tree.area(cells), 0, 1) if leaves.nested else np.ones(len(cells))
        areas = np.where(share > OWNS_NOTHING, owned, 0) / 1e6
        shapes = (
            SquareCells(leaves.tree, cells, share)
            if isinstance(leaves.tree, Quadtree)
            else PolygonCells(leaves.tree, cells)
        )
        values = np.maximum(cellmap.values[places], 0)
        density, noise = (
            np.divide(number, areas, out=np.zeros(len(cells)), where=areas > 0)
            for number in (values, cellmap.stddev[places])
        )
        unbiased, stddev = cellmap.unbiased[places], cellmap.stddev[places]
        known = np.isfinite(unbiased) & np.isfinite(stddev)
        found, error = np.where(known, unbiased, 0), np.where(known, stddev, 0)
        return cls(shapes, values, density, noise, areas, found, error)

    @cached_property
    def whole(self) -> Viewport:
        """All cells."""
        return Viewport.over(self.shapes.bounds)

    @cached_property
    def crowded(self) -> Viewport:
        """Where people are: see `Viewport.around`."""
        return Viewport.around(self.shapes.bounds, self.found, self.error)

    @property
    def relative(self) -> NDArray[np.float64]:
        """Standard error over number: 0 where both are exactly 0, infinite for a number of 0 with noise."""
        exact = self.noise == 0
        found = self.density > 0
        return np.divide(self.noise, self.density, out=np.where(exact, 0.0, np.inf), where=found)
