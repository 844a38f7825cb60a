"""Overlay lines for orientation: coasts, districts, streets, from a user's file."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.draw.themes import LIGHT, Theme
from hazemap.draw.viewport import Viewport, longitude, sheet
from hazemap.errors import FileError, HazemapWarning, InputError
from hazemap.gdal.vector_files import read_shapes

if TYPE_CHECKING:
    from geopandas import GeoDataFrame
    from matplotlib.axes import Axes

FINEST = 1 / 4000  # of the view's width: bends smaller than this are not drawn


def lines_in(outlines: "Path | str | GeoDataFrame", view: Viewport) -> list[NDArray[np.float64]]:
    """The lines and the edges of the areas that lie in the view, each float64[points, 2] on the sheet.

    Any coordinate system is turned into longitude and latitude; without one they must be that already.
    Points are left out. `FileError` for a file that cannot be read, `InputError` for coordinates that
    are not degrees, `HazemapWarning` where nothing lies in the view.
    """
    import shapely

    edges = _edges(outlines)
    west, south, east, north = view.degrees
    x, y = (east - west) / 50, (north - south) / 50
    lines = []
    for turn in (-360, 0, 360):  # a view may reach over the antimeridian
        if west - x < 180 + turn and east + x > -180 + turn:
            inside = shapely.clip_by_rect(edges, west - x - turn, south - y, east + x - turn, north + y)
            simple = shapely.simplify(inside, longitude(view.width * FINEST), preserve_topology=False)
            for line in shapely.get_parts(shapely.line_merge(simple)):
                points = shapely.get_coordinates(line)
                if len(points) > 1:
                    lines.append(np.stack(sheet(points[:, 0] + turn, points[:, 1]), axis=1))
    if not lines:
        warnings.warn(
            "no line of the outlines lies in the picture; check that they show this area",
            HazemapWarning,
            stacklevel=3,
        )
    return lines


def lines_around(
    outlines: "Path | str | GeoDataFrame", extent: tuple[float, float, float, float], margin: float, finest: float
) -> list[list[list[float]]]:
    """The lines and the edges of areas around west, south, east, north: points of longitude and latitude.

    So much (`margin`) of its sides is around the extent, and bends smaller than `finest` of its width are left out.
    `InputError` where no line is there; other errors as for `lines_in`.
    """
    import shapely

    west, south, east, north = extent
    x, y = margin * (east - west), margin * (north - south)
    inside = shapely.clip_by_rect(_edges(outlines), west - x, south - y, east + x, north + y)
    simple = shapely.simplify(inside, finest * (east - west), preserve_topology=False)
    lines = [shapely.get_coordinates(line) for line in shapely.get_parts(shapely.line_merge(simple))]
    found = [np.round(points, 6).tolist() for points in lines if len(points) > 1]
    if not found:
        raise InputError("no line of the outlines lies around this map; check that they show this area")
    return found


def _edges(outlines: "Path | str | GeoDataFrame") -> NDArray[Any]:
    """Lines, and the boundaries of areas, in longitude and latitude; points are left out."""
    import shapely

    geometries = _degrees(outlines)
    kinds = shapely.get_dimensions(geometries)
    return np.concatenate([shapely.boundary(geometries[kinds == 2]), geometries[kinds == 1]])


def _degrees(outlines: "Path | str | GeoDataFrame") -> NDArray[Any]:
    """The geometries in longitude and latitude, single ones, none of them empty."""
    import shapely

    frame: Any = outlines
    if isinstance(outlines, str | Path):
        try:
            frame = read_shapes(outlines)
        except FileError as error:
            raise FileError(f"the outlines {outlines} cannot be read: {error}") from error
    if frame.crs is not None:
        from pyproj.exceptions import ProjError

        try:
            frame = frame.to_crs("OGC:CRS84")
        except ProjError:
            raise InputError("no way is known from the reference system of the outlines to degrees") from None
    geometries: NDArray[Any] = shapely.force_2d(np.asarray(frame.geometry.values, dtype=object))
    geometries = shapely.get_parts(geometries[~(shapely.is_missing(geometries) | shapely.is_empty(geometries))])
    while (shapely.get_type_id(geometries) >= 4).any():  # collections may hold multi-parts
        geometries = shapely.get_parts(geometries)
    if len(geometries):
        west, south, east, north = shapely.total_bounds(geometries)
        if max(-west, east) > 360 or max(-south, north) > 90.001:
            raise InputError(
                "outlines without a coordinate system must be in degrees of longitude and latitude;"
                " found other numbers: store the coordinate system with them"
            )
    return geometries


def draw_lines(axes: "Axes", lines: list[NDArray[np.float64]], width: float, theme: Theme = LIGHT) -> None:
    """Thin lines with a halo, dark on pale or pale on dark, so that they are seen on all cells (gid `outlines`)."""
    from matplotlib.collections import LineCollection

    for colour, points, alpha in ((theme.halo, 2.4 * width, 0.45), (theme.line, width, 0.85)):
        collection = LineCollection(
            lines,
            colors=colour,
            linewidths=points,
            alpha=alpha,
            zorder=3,
            gid="outlines",
            capstyle="round",
            joinstyle="round",
        )
        axes.add_collection(collection, autolim=False)
