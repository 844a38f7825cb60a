"""How much of a map a picture shows: all that was declared, unless somebody asks for less."""

from enum import Enum
from math import copysign
from typing import Any

from hazemap.cellmap import CellMap
from hazemap.draw.density_surface import DensitySurface
from hazemap.draw.square_cells import SquareCells
from hazemap.draw.viewport import Viewport
from hazemap.spatial.bounding_box import MERCATOR_LATITUDE, Box

ROUNDING = 1e-6
"""Of a picture's sides: what sticks out of it by less is not cut off."""


ROOM = 0.02
"""Of the extent, on each side, around cells that are no squares."""


class MapExtent(Enum):
    """What a picture shows where no box is given: all of the map, or where people stand clear of the noise."""

    MAP = "map"
    PEOPLE = "people"


def framed(surface: DensitySurface, frame: MapExtent, box: Box | None) -> Viewport:
    """What a picture shows; a ribbon or a tower is widened, for legends need room."""
    if box is not None:
        return Viewport.of(box).shaped()
    if frame is MapExtent.PEOPLE:
        return surface.crowded.shaped()
    return surface.whole.shaped() if isinstance(surface.shapes, SquareCells) else surface.whole.padded(ROOM).shaped()


def shown_part(cellmap: CellMap, frame: MapExtent = MapExtent.MAP, box: Box | None = None) -> Any:
    """The region that a picture shows, a box or a polygon in degrees; None where it shows all of the map.

    What lies outside of it is not in the picture, so whoever draws one says how many that are. O(cells).
    """
    if box is None and frame is MapExtent.MAP:
        return None
    surface = DensitySurface.of(cellmap)
    view, whole = framed(surface, frame, box), surface.whole
    if view.holds(whole, ROUNDING):
        return None
    west, south, east, north = view.degrees
    south, north = (copysign(90, edge) if abs(edge) > MERCATOR_LATITUDE - ROUNDING else edge for edge in (south, north))
    if east - west >= 360:
        return Box(-180, south, 180, north)
    if west >= -180 and east <= 180:
        return Box(west, south, east, north)
    import shapely

    turned = [shapely.box(west + turn, south, east + turn, north) for turn in (-360, 0, 360)]
    return shapely.union_all(turned).intersection(shapely.box(-180, -90, 180, 90))
