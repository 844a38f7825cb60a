"""What Natural Earth knows of a rectangle: land, lakes, rivers, borders and places, at the scale that fits it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.base_map.packed_tiles import Outlines, PackedTiles
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import Box

SOURCE = "Natural Earth, public domain"
WIDEST = {"10m": 6.0, "50m": 75.0, "110m": float("inf")}
"""Degrees of the longer side of a rectangle up to which each scale is drawn."""

DECIMALS = {"10m": 4, "50m": 4, "110m": 3}
MARGIN = 0.1
"""Of the sides of a rectangle: what is kept around it on each side."""

AREAS, LINES = ("land", "lakes"), ("rivers", "borders", "states")
Points = NDArray[np.float64]
"""float64[points, 2], degrees of longitude and latitude."""

Area = tuple[Points, ...]
"""An outer ring and its holes; each ring ends where it begins."""

Edges = tuple[float, float, float, float]
"""West, south, east and north in degrees; a view over the antimeridian goes on beyond ±180."""


class Place(NamedTuple):
    """A city, town or village; rank 0 is the most important, 10 the least."""

    lon: float
    lat: float
    name: str
    rank: int


@dataclass(frozen=True, eq=False)
class BaseMap:
    """The base map of a rectangle with its margin. `borders` are of countries, `states` of what is within them.

    `land` and `lakes` are areas; what is neither land nor a lake is sea. Borders are where they are in fact, which may
    not be where somebody claims them to be.

    >>> around_new_york = base_map(Box(-74.3, 40.4, -73.7, 41.0))
    >>> around_new_york.scale, around_new_york.places[0].name
    ('10m', 'New York')
    """

    scale: str
    land: tuple[Area, ...]
    lakes: tuple[Area, ...]
    rivers: tuple[Points, ...]
    borders: tuple[Points, ...]
    states: tuple[Points, ...]
    places: tuple[Place, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain lists in degrees, as a page reads them.

        `land` and `lakes` are coordinates of a GeoJSON MultiPolygon, `rivers`, `borders` and `states` those of a
        MultiLineString; `places` are [lon, lat, name, rank], the most important ones first.
        """
        decimals = DECIMALS[self.scale]
        areas = {name: [[_rounded(ring, decimals) for ring in area] for area in getattr(self, name)] for name in AREAS}
        lines = {name: [_rounded(line, decimals) for line in getattr(self, name)] for name in LINES}
        places = [[round(p.lon, decimals), round(p.lat, decimals), p.name, p.rank] for p in self.places]
        return {"scale": self.scale, **areas, **lines, "places": places, "source": SOURCE}


def base_map(box: Box | Edges, margin: float = MARGIN) -> BaseMap:
    """The base map of a box, and of `margin` times its sides around it; nothing is drawn of mid-ocean.

    Edges in place of a `Box` may lie beyond ±180°, as those of a view over the antimeridian do. `InputError` for
    edges that are no rectangle.
    """
    west, south, east, north = (box.west, box.south, box.east, box.north) if isinstance(box, Box) else box
    if not (-540 <= west < east <= 540 and south < north and margin >= 0):
        raise InputError(
            f"a base map is of west < east and south < north in degrees; found {(west, south, east, north)}"
        )
    longest = max(east - west, north - south)
    scale = next(scale for scale, widest in WIDEST.items() if longest <= widest)
    across, up = margin * (east - west), margin * (north - south)
    edges = (west - across, max(south - up, -90.0), east + across, min(north + up, 90.0))
    tiles = packed(scale)
    areas = {name: _areas(tiles, name, edges) for name in AREAS}
    lines = {name: _lines(tiles, name, edges) for name in LINES}
    return BaseMap(
        scale, areas["land"], areas["lakes"], lines["rivers"], lines["borders"], lines["states"], _places(tiles, edges)
    )


@lru_cache(maxsize=len(WIDEST))
def packed(scale: str) -> PackedTiles:
    """The data of one scale: 10m, 50m or 110m (1 : 10 … 110 million)."""
    return PackedTiles.read((resources.files("hazemap.base_map") / f"natural_earth_{scale}.tiles").read_bytes())


def _areas(tiles: PackedTiles, layer: str, edges: Edges) -> tuple[Area, ...]:
    """Areas clipped to the edges; those of several tiles become one again."""
    import shapely

    found = _clipped(tiles, layer, edges, areas_of)
    if len(found) > 1:
        found = shapely.get_parts(shapely.union_all(found))
    found = found[shapely.get_dimensions(found) == 2]
    shells = shapely.get_exterior_ring(found)
    return tuple(
        (shapely.get_coordinates(shell), *(shapely.get_coordinates(hole) for hole in polygon.interiors))
        for polygon, shell in zip(found, shells, strict=True)
    )


def _lines(tiles: PackedTiles, layer: str, edges: Edges) -> tuple[Points, ...]:
    """Lines clipped to the edges; those that tiles cut in two are joined."""
    import shapely

    found = _clipped(tiles, layer, edges, lines_of)
    merged = shapely.get_parts(shapely.line_merge(shapely.multilinestrings(found[shapely.get_dimensions(found) == 1])))
    return tuple(shapely.get_coordinates(line) for line in merged)


def _clipped(
    tiles: PackedTiles, layer: str, edges: Edges, shapes: Callable[[Outlines, float, int], NDArray[Any]]
) -> NDArray[Any]:
    """Single geometries of a layer inside the edges."""
    import shapely

    parts = []
    for turn, column, row in _seen(tiles, edges):
        outlines = tiles.outlines(layer, column, row)
        if outlines is not None:
            clipped = shapely.clip_by_rect(shapes(outlines, turn, tiles.grid.steps), *edges)
            parts.append(shapely.get_parts(clipped[~shapely.is_empty(clipped)]))
    return np.concatenate(parts) if parts else np.array([], dtype=object)


def _seen(tiles: PackedTiles, edges: Edges) -> list[tuple[float, int, int]]:
    """How far to turn the globe, column and row of every tile that touches the edges."""
    west, south, east, north = edges
    seen = []
    for turn in (-720.0, -360.0, 0.0, 360.0, 720.0):
        first, last = max(west - turn, -180.0), min(east - turn, 180.0)
        if first < last:
            seen += [(turn, column, row) for column, row in tiles.grid.tiles(first, south, last, north)]
    return seen


def areas_of(outlines: Outlines, turn: float, steps: int) -> NDArray[Any]:
    """Polygons in degrees."""
    import shapely

    ring = np.repeat(np.arange(len(outlines.sizes)), outlines.sizes)
    rings = shapely.linearrings(outlines.points / steps + (turn, 0.0), indices=ring)
    polygons: NDArray[Any] = shapely.polygons(rings, indices=np.cumsum(~outlines.holes) - 1)
    return polygons


def lines_of(outlines: Outlines, turn: float, steps: int) -> NDArray[Any]:
    """Lines in degrees."""
    import shapely

    line = np.repeat(np.arange(len(outlines.sizes)), outlines.sizes)
    lines: NDArray[Any] = shapely.linestrings(outlines.points / steps + (turn, 0.0), indices=line)
    return lines


def _places(tiles: PackedTiles, edges: Edges) -> tuple[Place, ...]:
    """Places inside the edges, the most important ones first."""
    west, south, east, north = edges
    found = []
    for turn, column, row in _seen(tiles, edges):
        named = tiles.named_points("places", column, row)
        if named is not None:
            lon, lat = (named.points / tiles.grid.steps + (turn, 0.0)).T.tolist()
            found += [Place(*place) for place in zip(lon, lat, named.names, named.ranks.tolist(), strict=True)]
    inside = [place for place in found if west <= place.lon <= east and south <= place.lat <= north]
    return tuple(sorted(inside, key=lambda place: place.rank))


def _rounded(points: Points, decimals: int) -> list[list[float]]:
    rounded: list[list[float]] = np.round(points, decimals).tolist()
    return rounded
