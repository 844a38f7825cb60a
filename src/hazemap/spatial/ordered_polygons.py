"""Polygons in an order: a point belongs to the first one that contains it, border included."""

import base64
import lzma
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.errors import InputError
from hazemap.spatial.web_mercator import ECCENTRICITY, SEMI_MINOR

if TYPE_CHECKING:
    from hazemap.spatial.point_in_polygon import LatitudeBands, PolygonSquares

MOST_SQUARES = 1 << 22
LARGEST = 1 << 30
"""No packed polygons are longer than this many bytes; a damaged length must not fill the memory."""

SPECK = 1e-6
"""A part of a box below this is no place."""

Shapes = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Polygons:
    """Valid shapely polygons and multipolygons in degrees; empty ones hold nothing. Edges are straight in degrees.

    A point on the border of several belongs to the first of them, so every point has one owner, and it is shapely's
    `intersects` that says so, to the last bit.

    >>> import shapely
    >>> both = Polygons(np.array([shapely.box(0, 0, 1, 1), shapely.box(0, 0, 4, 4)]))
    >>> both.first_holding(np.array([1.0, 1.5, 5.0]), np.array([0.5, 0.5, 0.5]))
    array([ 0,  1, -1])
    """

    shapes: Shapes

    def first_holding(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.int64]:
        """The position of the first polygon that holds each point; -1 for none, and for NaN."""
        from hazemap.spatial.point_in_polygon import IN_DOUBT, first_holding

        edges, bands, squares = self._edges[0], self._bands, self._squares
        found = np.empty(len(lon), dtype=np.int64)

        def fill(rows: slice) -> None:
            found[rows] = first_holding(edges, bands, squares, lon[rows], lat[rows])

        from hazemap.machine_code.parallel_map import in_chunks

        in_chunks(fill, len(lon))
        doubtful = np.flatnonzero(found == IN_DOUBT)
        found[doubtful] = 1 + self._exactly(lon[doubtful], lat[doubtful])
        return found - 1

    def areas(self) -> NDArray[np.float64]:
        """Square metres of each on the WGS 84 ellipsoid, holes left out: O(vertices)."""
        from hazemap.spatial.point_in_polygon import areas

        edges, owner = self._edges
        inner: NDArray[np.float64] = areas(edges, owner, len(self.shapes), ECCENTRICITY)
        return SEMI_MINOR**2 * inner

    def areas_inside(self, which: NDArray[np.int64], boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Square metres of what of each box (west, south, east, north) lies in its polygon, shapes[which].

        Exactly 0 below a millionth of the box, which is rounding. O(boxes · edges of their polygons).
        """
        from hazemap.spatial.point_in_polygon import areas_inside

        edges, owner = self._edges
        first = np.searchsorted(owner, np.arange(len(self.shapes) + 1))
        inside = SEMI_MINOR**2 * areas_inside(edges, first, which, boxes, ECCENTRICITY)
        west, south, east, north = np.radians(boxes.T)
        whole = SEMI_MINOR**2 * (east - west) * (np.sin(north) - np.sin(south))  # within 1 %
        return np.where(inside > SPECK * whole, inside, 0.0)

    def _exactly(self, lon: NDArray[np.float64], lat: NDArray[np.float64]) -> NDArray[np.int64]:
        """`first_holding`, by shapely: some microseconds a point."""
        import shapely

        found = np.full(len(lon), len(self.shapes))
        if len(lon):
            point, polygon = self._tree.query(shapely.points(lon, lat), predicate="intersects")
            np.minimum.at(found, point, polygon)
        return np.where(found < len(self.shapes), found, -1)

    @cached_property
    def _tree(self) -> Any:
        import shapely

        return shapely.STRtree(self.shapes)

    @cached_property
    def _edges(self) -> tuple[NDArray[np.float64], NDArray[np.int32]]:
        """All edges of all rings, float64[n, 4], and the polygon of each; shells run clockwise, holes do not."""
        import shapely

        parts, whose = shapely.get_parts(shapely.normalize(self.shapes), return_index=True)
        rings, part = shapely.get_rings(parts, return_index=True)
        points, ring = shapely.get_coordinates(rings, return_index=True)
        here = np.flatnonzero((ring[1:] == ring[:-1]) & (points[1:] != points[:-1]).any(axis=1))
        return np.hstack([points[here], points[here + 1]]), whose[part[ring[here]]].astype(np.int32)

    @cached_property
    def _bands(self) -> "LatitudeBands":
        from hazemap.spatial.point_in_polygon import LatitudeBands, banded

        return LatitudeBands(*banded(*self._edges, len(self.shapes)))

    @cached_property
    def _squares(self) -> "PolygonSquares":
        """Enough squares that a polygon has many, no more than fit in 16 MB."""
        import shapely

        from hazemap.spatial.point_in_polygon import PolygonSquares, SquareGrid, squared

        edges = self._edges[0]
        west, south, east, north = shapely.total_bounds(self.shapes).tolist() if len(edges) else (0.0, 0.0, 1.0, 1.0)
        wanted = min(max(16 * len(edges), 1 << 12), MOST_SQUARES)
        scale = (wanted / ((east - west) * (north - south))) ** 0.5
        columns, rows = (int(side * scale) + 1 for side in (east - west, north - south))
        frame = SquareGrid(west, south, scale, columns, rows)
        return PolygonSquares(frame, *squared(edges, self._bands, frame))


def pack(shapes: Shapes) -> str:
    """Polygons as text, to the last bit: a collection in WKB, compressed (3,000 counties: 0.6 MB)."""
    import shapely

    content = shapely.to_wkb(shapely.geometrycollections(shapes), byte_order=1, output_dimension=2)
    return f"{len(content)}:" + base64.b64encode(lzma.compress(content)).decode()


def unpack(text: str) -> Shapes:
    """The inverse of `pack`; `InputError` for anything else."""
    import shapely

    try:
        length, _, content = text.partition(":")
        if not 0 < int(length) <= LARGEST:
            raise ValueError("impossible length")
        unpacker = lzma.LZMADecompressor()
        wkb = unpacker.decompress(base64.b64decode(content, validate=True), int(length) + 1)
        if len(wkb) != int(length) or not unpacker.eof:
            raise ValueError("a length other than it declares")
        whole = shapely.from_wkb(wkb)
        shapes = np.asarray(shapely.get_parts(whole))
        if shapely.get_type_id(whole) != 7 or not np.isin(shapely.get_type_id(shapes), (3, 6)).all():
            raise ValueError("not a collection of polygons")
        if not (shapely.is_valid(shapes).all() and np.isfinite(shapely.get_coordinates(shapes)).all()):
            raise ValueError("rings that cross")
    except (ValueError, TypeError, lzma.LZMAError, shapely.errors.ShapelyError) as error:
        raise InputError("the polygons of these districts are damaged: hazemap did not write them so") from error
    return shapes
