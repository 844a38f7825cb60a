"""What somebody who makes a page adds to it: lines over the map, and the part of it that is shown at first."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hazemap.errors import InputError
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.plane import PlaneBox, plane_of

if TYPE_CHECKING:
    from geopandas import GeoDataFrame

    from hazemap.releases.base_release import BaseRelease

AROUND = 1.0
"""Of the sides of a map: so much of the outlines is on either side of it, as of the base map."""
FINEST = 1 / 20_000
"""Of the width of a map: bends smaller than this are not drawn."""


def page_view(release: "BaseRelease", outlines: "Path | str | GeoDataFrame | None", box: Box | None) -> dict[str, Any]:
    """Both as a page is told them; `InputError` for a box beside the map, and for outlines of a plane."""
    found: dict[str, Any] = {}
    plane = plane_of(release.cells.tree)
    if outlines is not None:
        if plane is not None:
            raise InputError("outlines are of longitude and latitude, and this map is of a plane: leave them out")
        from hazemap.draw.overlay_lines import lines_around

        found["outlines"] = lines_around(outlines, release.ground.extent, AROUND, FINEST)
    if box is not None:
        if isinstance(box, PlaneBox) != (plane is not None):
            raise InputError(f"a box of this map is in {'its plane' if plane else 'degrees'}")
        sides = box.west, box.south, box.east, box.north
        if plane is None and not _meet(sides, release.ground.extent):
            raise InputError(f"the box {box} shows nothing of this map")
        found["box"] = list(sides)
    return found


def _meet(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
