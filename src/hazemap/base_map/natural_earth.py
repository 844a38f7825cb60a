"""What Natural Earth knows of a rectangle: land, lakes, rivers, borders and places, at the scale that fits it.

Its data are lines, areas and named places in tiles of one file, small and quick to read. A file is a line of JSON
(`TileGrid` and the number of entries), an index (`ENTRY` each) and the entries' bytes, each compressed by raw deflate.
An entry is what one layer has in one tile. Coordinates are whole steps from the south-west corner of the tile, 0 …
65,535. Of lines and areas an entry holds how many rings there are (uint32), the points of each (uint32), of each
whether it is a hole (uint8), and the differences from point to point, modulo 2¹⁶ and with the sign in the lowest bit:
the low bytes of all x, the high bytes of all x, then those of y. Of places it holds how many there are (uint32), x, y
(uint16), a rank (uint8) and the names, a line each. Numbers are little-endian.
"""

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import FileError, InputError
from hazemap.spatial.bounding_box import Box

ENTRY = np.dtype([("layer", "u1"), ("column", "<i2"), ("row", "<i2"), ("length", "<u4")])
MOST_STEPS = 2**16 - 1
RAW = -zlib.MAX_WBITS

Steps = NDArray[np.int64]
"""int64[points, 2]: x east and y north, in steps of the grid from 0°, 0°."""


class Outlines(NamedTuple):
    """Lines, or the rings of areas: all points one after another, how many each has, and whether it is a hole.

    An area's outer ring stands before its holes. Rings end where they begin.
    """

    points: Steps
    sizes: NDArray[np.int64]
    holes: NDArray[np.bool_]


class NamedPoints(NamedTuple):
    """Places: where they are, how much they matter (0 the most) and what they are called."""

    points: Steps
    ranks: NDArray[np.int64]
    names: tuple[str, ...]


@dataclass(frozen=True)
class TileGrid:
    """Square tiles of `side` degrees from 0°, 0°, and `steps` to a degree.

    >>> TileGrid("10m", 6, 10_000).tiles(-74.3, 40.4, -73.7, 41.0)
    [(-13, 6)]
    """

    scale: str
    side: int
    steps: int

    def __post_init__(self) -> None:
        if self.side * self.steps > MOST_STEPS:
            raise ValueError(f"a tile has at most {MOST_STEPS:,} steps; found {self.side * self.steps:,}")

    def tiles(self, west: float, south: float, east: float, north: float) -> list[tuple[int, int]]:
        """Column and row of the tiles that touch a rectangle in degrees."""
        first, last = (int(np.floor(edge / self.side)) for edge in (west, east))
        bottom, top = (int(np.floor(edge / self.side)) for edge in (south, north))
        return [(column, row) for row in range(bottom, top + 1) for column in range(first, last + 1)]


@dataclass(frozen=True, eq=False)
class PackedTiles:
    """A file of tiles, of which one entry at a time is unpacked."""

    grid: TileGrid
    layers: tuple[str, ...]
    index: NDArray[np.void]
    content: memoryview

    @classmethod
    def read(cls, file: bytes) -> "PackedTiles":
        """`FileError` for bytes that are no such file."""
        try:
            line, _, rest = file.partition(b"\n")
            head = json.loads(line)
            index = np.frombuffer(rest, ENTRY, head["entries"])
            content = memoryview(rest)[index.nbytes :]
            found = cls(TileGrid(**head["grid"]), tuple(head["layers"]), index, content)
            if int(index["length"].sum()) != len(content):
                raise ValueError("it is cut off")
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(f"the base map cannot be read: {error}") from error
        return found

    @cached_property
    def _places(self) -> dict[tuple[str, int, int], tuple[int, int]]:
        """Where the bytes of each entry begin and end."""
        ends = np.cumsum(self.index["length"].astype(np.int64))
        starts = ends - self.index["length"]
        keys = zip(self.index["layer"].tolist(), self.index["column"].tolist(), self.index["row"].tolist(), strict=True)
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        return {(self.layers[layer], column, row): span for (layer, column, row), span in zip(keys, spans, strict=True)}

    @property
    def keys(self) -> list[tuple[str, int, int]]:
        """Layer, column and row of every entry."""
        return list(self._places)

    def outlines(self, layer: str, column: int, row: int) -> Outlines | None:
        """The lines or areas of a layer in a tile; None where it has none."""
        span = self._places.get((layer, column, row))
        return (
            None
            if span is None
            else _outlines(zlib.decompress(self.content[slice(*span)], RAW), self._corner(column, row))
        )

    def named_points(self, layer: str, column: int, row: int) -> NamedPoints | None:
        """The places of a layer in a tile; None where it has none."""
        span = self._places.get((layer, column, row))
        return (
            None
            if span is None
            else _named_points(zlib.decompress(self.content[slice(*span)], RAW), self._corner(column, row))
        )

    def _corner(self, column: int, row: int) -> Steps:
        return np.array([column, row]) * self.grid.side * self.grid.steps


def pack(
    grid: TileGrid, layers: Sequence[str], entries: Mapping[tuple[str, int, int], Outlines | NamedPoints]
) -> bytes:
    """The file of some entries, by layer, column and row; what `PackedTiles.read` reads."""
    index, content = np.zeros(len(entries), ENTRY), []
    for number, key in enumerate(sorted(entries, key=lambda key: (layers.index(key[0]), key[2], key[1]))):
        layer, column, row = key
        corner, entry = np.array([column, row]) * grid.side * grid.steps, entries[key]
        packer = zlib.compressobj(9, zlib.DEFLATED, RAW)
        raw = _of_outlines(entry, corner) if isinstance(entry, Outlines) else _of_named_points(entry, corner)
        content.append(packer.compress(raw) + packer.flush())
        index[number] = layers.index(layer), column, row, len(content[-1])
    head = json.dumps({"entries": len(entries), "grid": asdict(grid), "layers": list(layers)})
    return b"".join([head.encode(), b"\n", index.tobytes(), *content])


def _outlines(raw: bytes, corner: Steps) -> Outlines:
    count = int(np.frombuffer(raw, "<u4", 1)[0])
    sizes = np.frombuffer(raw, "<u4", count, 4).astype(np.int64)
    holes = np.frombuffer(raw, "u1", count, 4 + 4 * count).astype(bool)
    low_x, high_x, low_y, high_y = np.frombuffer(raw, "u1", -1, 4 + 5 * count).reshape(4, -1).astype(np.uint16)
    signed = np.stack([low_x | high_x << 8, low_y | high_y << 8], axis=1)
    differences = (signed >> 1) ^ -(signed & 1)
    return Outlines(np.cumsum(differences, axis=0, dtype=np.uint16).astype(np.int64) + corner, sizes, holes)


def _of_outlines(entry: Outlines, corner: Steps) -> bytes:
    local = _local(entry.points, corner)
    differences = np.diff(local, axis=0, prepend=np.zeros((1, 2), np.uint16)).view(np.int16)
    signed = ((differences << 1) ^ (differences >> 15)).view(np.uint16)
    planes = [part for axis in signed.T for part in (axis & 0xFF, axis >> 8)]
    head = np.array([len(entry.sizes), *entry.sizes], "<u4").tobytes() + entry.holes.astype("u1").tobytes()
    return head + b"".join(plane.astype("u1").tobytes() for plane in planes)


def _named_points(raw: bytes, corner: Steps) -> NamedPoints:
    count = int(np.frombuffer(raw, "<u4", 1)[0])
    points = np.frombuffer(raw, "<u2", 2 * count, 4).reshape(2, count).T.astype(np.int64) + corner
    ranks = np.frombuffer(raw, "u1", count, 4 + 4 * count).astype(np.int64)
    return NamedPoints(points, ranks, tuple(raw[4 + 5 * count :].decode().split("\n")))


def _of_named_points(entry: NamedPoints, corner: Steps) -> bytes:
    count, local = np.array([len(entry.names)], "<u4"), _local(entry.points, corner)
    ranks, names = entry.ranks.astype("u1"), "\n".join(entry.names)
    return count.tobytes() + local.T.astype("<u2").tobytes() + ranks.tobytes() + names.encode()


def _local(points: Steps, corner: Steps) -> NDArray[np.uint16]:
    local = points - corner
    if local.min() < 0 or local.max() > MOST_STEPS:
        raise ValueError("a point lies outside its tile")
    return local.astype(np.uint16)


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


class TownPlace(NamedTuple):
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
    places: tuple[TownPlace, ...]

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


def _places(tiles: PackedTiles, edges: Edges) -> tuple[TownPlace, ...]:
    """Places inside the edges, the most important ones first."""
    west, south, east, north = edges
    found = []
    for turn, column, row in _seen(tiles, edges):
        named = tiles.named_points("places", column, row)
        if named is not None:
            lon, lat = (named.points / tiles.grid.steps + (turn, 0.0)).T.tolist()
            found += [TownPlace(*place) for place in zip(lon, lat, named.names, named.ranks.tolist(), strict=True)]
    inside = [place for place in found if west <= place.lon <= east and south <= place.lat <= north]
    return tuple(sorted(inside, key=lambda place: place.rank))


def _rounded(points: Points, decimals: int) -> list[list[float]]:
    rounded: list[list[float]] = np.round(points, decimals).tolist()
    return rounded
