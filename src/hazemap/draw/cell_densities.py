"""What a picture takes from a cell map: density, uncertainty, and the visible part."""

from dataclasses import dataclass, replace
from functools import cached_property
from math import copysign
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cellmap import CellMap
from hazemap.draw.cell_painting import CellShapes, SquareCells, shapes_of
from hazemap.draw.viewport import MapExtent, Viewport
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import MERCATOR_LATITUDE, Box
from hazemap.spatial.plane import ground_unit, plane_of

OWNS_NOTHING = 1e-6  # of its area: what rounding leaves of a cell that nested cells cover
ROUNDING = 1e-6  # of a picture's sides: what sticks out of it by less is not cut off
ROOM = 0.02  # of the extent, on each side, around cells that are no squares


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
            raise InputError("a picture needs cells that are places on Earth; this cell map has none")
        if not np.isfinite(cellmap.values[places]).all():
            raise InputError("a picture needs finite numbers; this cell map holds others")
        cells, owned = leaves.cells[places], leaves.areas[places]
        share = np.clip(owned / leaves.tree.area(cells), 0, 1) if leaves.nested else np.ones(len(cells))
        areas = np.where(share > OWNS_NOTHING, owned, 0) / ground_unit(leaves.tree).per
        shapes = shapes_of(leaves.tree, cells, share)
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

    def framed(self, frame: MapExtent, box: Box | None) -> Viewport:
        """What a picture shows; a ribbon or a tower is widened, because legends need room."""
        plane = plane_of(self.shapes.tree)
        if box is not None:
            if not isinstance(box, Box):
                raise InputError(f"a picture shows a hazemap.Box (or hazemap.PlaneBox) of the map; found {box!r}")
            return Viewport.of(box, plane).shaped()
        return replace(self._framed(frame), plane=plane)

    def _framed(self, frame: MapExtent) -> Viewport:
        if frame is MapExtent.PEOPLE:
            return self.crowded.shaped()
        return (self.whole if isinstance(self.shapes, SquareCells) else self.whole.padded(ROOM)).shaped()

    @property
    def relative(self) -> NDArray[np.float64]:
        """Standard error over number: 0 where both are exactly 0, infinite for a number of 0 with noise."""
        exact = self.noise == 0
        found = self.density > 0
        return np.divide(self.noise, self.density, out=np.where(exact, 0.0, np.inf), where=found)


def shown_part(cellmap: CellMap, frame: MapExtent = MapExtent.MAP, box: Box | None = None) -> Any:
    """The region that a picture shows, a box or a polygon in degrees; None where it shows all of the map.

    A picture has to say how many people lie outside of it. O(cells).
    """
    if box is None and frame is MapExtent.MAP:
        return None
    surface = DensitySurface.of(cellmap)
    view, whole = surface.framed(frame, box), surface.whole
    return region_of(view, whole)


def region_of(view: Viewport, whole: Viewport) -> Any:
    """The region of a view, a box or a polygon in degrees or in a plane's unit; None where it holds the whole map."""
    if view.holds(whole, ROUNDING):
        return None
    if view.plane:
        return view.box
    west, south, east, north = view.degrees
    south, north = (copysign(90, edge) if abs(edge) > MERCATOR_LATITUDE - ROUNDING else edge for edge in (south, north))
    if east - west >= 360:
        return Box(-180, south, 180, north)
    if west >= -180 and east <= 180:
        return Box(west, south, east, north)
    import shapely

    turned = [shapely.box(west + turn, south, east + turn, north) for turn in (-360, 0, 360)]
    return shapely.union_all(turned).intersection(shapely.box(-180, -90, 180, 90))
