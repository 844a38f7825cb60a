"""Squares of any plane: the pixels of a screen, the metres of a floor, the coordinates of a map projection.

Everything that counts works on numbers of cells, so a plane's squares are a quadtree's. Only the ground of a square
differs: its edges, its area and its unit.
"""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Columns
from hazemap.errors import FileError, InputError
from hazemap.machine_code.arrays import Floats
from hazemap.spatial.bounding_box import Box, coordinates
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.web_mercator import spread

PIXELS = "px"
UNITS = (PIXELS, "mm", "cm", "m", "km", "ft")
LARGEST = 1e9
"""A coordinate of a plane is at most this far from 0: then edges of cells are told apart."""


@dataclass(frozen=True)
class PlaneBox(Box):
    """A rectangle of a plane, in its own unit: least x, least y, greatest x, greatest y.

    >>> str(PlaneBox.parse("0,0,1000,800"))
    '0,0,1000,800'
    """

    def __post_init__(self) -> None:
        edges = np.array([self.west, self.south, self.east, self.north], dtype=float)
        if not (np.abs(edges) <= LARGEST).all() or not (self.west < self.east and self.south < self.north):
            raise InputError(
                f"a box of a plane is x,y,x,y with the lesser x and y first, at most {LARGEST:g} from 0; found {self}"
            )


@dataclass(frozen=True)
class Plane:
    """In which coordinates a map is: a unit of length, with y downwards on a screen; or an EPSG code.

    >>> Plane.parse("1000,800").box, Plane.parse("40,30,m").unit
    (PlaneBox(west=0.0, south=0.0, east=1000.0, north=800.0), 'm')
    """

    unit: str
    crs: str = ""
    box: PlaneBox | None = None

    @classmethod
    def parse(cls, text: str) -> "Plane":
        """From WIDTH,HEIGHT[,UNIT], or from EPSG:NUMBER."""
        if re.fullmatch(r"EPSG:[1-9][0-9]{3,5}", text, re.ASCII):
            return cls(_unit_of(text), text)
        found = re.fullmatch(r"([0-9.]{1,20}),([0-9.]{1,20})(?:,([a-z]{1,2}))?", text, re.ASCII)
        unit = (found[3] or PIXELS) if found else ""
        try:
            box = PlaneBox(0.0, 0.0, float(found[1]), float(found[2])) if found and unit in UNITS else None
        except ValueError:
            box = None
        if box is None:
            raise InputError(
                f"a plane is WIDTH,HEIGHT,UNIT with one of the units {', '.join(UNITS)} (pixels where none is named), "
                f"or a reference system such as EPSG:2154; found {text!r:.60}"
            )
        return cls(unit, "", box)

    @property
    def down(self) -> bool:
        """Whether y grows downwards, as on screens."""
        return self.unit == PIXELS

    @property
    def finest(self) -> float:
        """The default width of the finest squares: about a pixel, or 10 cm on a floor."""
        return 10.0 if self.crs and self.unit == "m" else 0.1 if self.unit == "m" else 1.0

    def __str__(self) -> str:
        return self.crs or f"a plane in {self.unit}"


@dataclass(frozen=True)
class PlaneQuadtree(Quadtree):
    """A square of a plane, cut in four, depth times. (left, top, side) is (0, 0, 1): the square itself.

    `x`, `y` are its least coordinates and `size` its side in the unit of the plane. Columns grow with x; rows with y
    where that is `down`wards, else against it. A cell owns the edges where its columns and rows begin, the square all.

    >>> tree = PlaneQuadtree.over(Plane.parse("1000,800"), PlaneBox(0, 0, 1000, 800), 2)
    >>> cells = tree.cell_at({"lon": np.array([10.0, 999.0]), "lat": np.array([10.0, 10.0])}, 1)
    >>> tree.names(cells), tree.area(cells)
    (['root-0', 'root-1'], array([250000., 250000.]))
    """

    x: float
    y: float
    size: float
    unit: str
    crs: str
    down: bool

    def __post_init__(self) -> None:
        Quadtree.__post_init__(self)
        if (self.left, self.top, self.side) != (0, 0, 1):
            raise InputError("the square of a plane is its own unit: left 0, top 0, side 1")
        if self.unit not in UNITS or (self.crs and not re.fullmatch(r"EPSG:[1-9][0-9]{3,5}", self.crs, re.ASCII)):
            raise InputError(f"a plane is in one of {', '.join(UNITS)}, or in an EPSG code; found {self.unit!r:.20}")
        if not (0 < self.size <= 2 * LARGEST and max(abs(self.x), abs(self.y)) <= 2 * LARGEST):
            raise InputError(f"the square of a plane lies at most {LARGEST:g} from 0")
        if self.size / 2**self.depth < 2.0**-44 * max(abs(self.x), abs(self.y), self.size):
            raise InputError(f"depth {self.depth} cuts this plane finer than numbers can tell: use a smaller depth")

    @classmethod
    def over(cls, plane: Plane, box: Box, depth: int | None = None) -> "PlaneQuadtree":
        """The smallest square that holds a box, from its least x, and from the y where rows begin."""
        size = float(max(box.east - box.west, box.north - box.south))
        y = float(box.south if plane.down else box.north - size)
        if depth is None:
            depth = int(np.clip(np.ceil(np.log2(size / plane.finest)), 0, 20))
        return cls(0.0, 0.0, 1.0, depth, float(box.west), y, size, plane.unit, plane.crs, plane.down)

    def cell_at(self, columns: Columns, level: int) -> Cells:
        """The cell of each row at this level; `NOWHERE` outside the square, or for NaN: O(rows)."""
        if not 0 <= level <= self.depth:
            raise InputError(f"this quadtree has levels 0 to {self.depth}; found {level}")
        x, y = coordinates(columns)
        least_y, most_y = self._edge_y(0.0), self._edge_y(1.0)
        inside = (self.x <= x) & (x <= self.x + self.size)
        inside &= (min(least_y, most_y) <= y) & (y <= max(least_y, most_y))
        column = self._nearest(np.where(inside, x, self.x), self._edge_x, 1.0)
        row = self._nearest(np.where(inside, y, least_y), self._edge_y, 1.0 if self.down else -1.0)
        place = spread(column) | (spread(row) << np.uint64(1))
        base = np.uint64(4**self.depth) | place
        cells: Cells = np.where(inside, base >> np.uint64(2 * (self.depth - level)), NOWHERE).astype(np.uint64)
        return cells

    def bounds(self, cells: Cells) -> tuple[Floats, Floats, Floats, Floats]:
        """Least x, least y, greatest x and greatest y of each cell; neighbours share an edge to the last bit."""
        left, top, side = self.square(cells)
        first, last = self._edge_y(top), self._edge_y(top + side)
        return self._edge_x(left), np.minimum(first, last), self._edge_x(left + side), np.maximum(first, last)

    def area(self, cells: Cells) -> Floats:
        """The area of each cell in squares of the plane's unit; as it is on the plane, not on the ground."""
        return np.asarray(self.size**2 * 0.25 ** np.maximum(self.level(cells), 0).astype(float))

    @property
    def _prefix(self) -> str:
        return "root-"

    def _edge_x(self, part: Any) -> Any:
        return self.x + self.size * part

    def _edge_y(self, part: Any) -> Any:
        """The start of rows at a part of the side."""
        return self.y + self.size * (part if self.down else 1 - part)

    def _nearest(self, at: Floats, edge: Any, sign: float) -> NDArray[np.uint64]:
        """The column or row of coordinates in the square: near an edge the edge itself decides."""
        count = 1 << self.depth
        found = np.clip(np.floor(sign * (at - edge(0.0)) / self.size * count), 0, count - 1)
        for _ in range(2):
            found = np.where((found > 0) & (sign * at < sign * edge(found / count)), found - 1, found)
            found = np.where((found < count - 1) & (sign * at >= sign * edge((found + 1) / count)), found + 1, found)
        places: NDArray[np.uint64] = found.astype(np.uint64)
        return places


class GroundUnit(NamedTuple):
    """The unit of areas: its size in the tree's own unit, and its name in words and in columns."""

    per: float
    name: str
    column: str


def plane_of(tree: Any) -> PlaneQuadtree | None:
    """The plane that a tree cuts; None for trees of the ground."""
    return tree if isinstance(tree, PlaneQuadtree) else None


def refuse_plane(tree: Any, suffix: str) -> None:
    """`FileError` for a format that can only be of the ground."""
    if plane_of(tree):
        raise FileError(
            f"a {suffix} holds longitudes and latitudes, or their web tiles, and this map is on a plane: save it as "
            ".parquet, or export it as .gpkg, .fgb or .csv"
        )


def ground_unit(tree: Any) -> GroundUnit:
    """Square kilometres on the ground and of projections in metres; else squares of the plane's own unit.

    >>> ground_unit(Quadtree.world(3)).name, ground_unit(PlaneQuadtree.over(Plane("px"), PlaneBox(0, 0, 9, 9))).name
    ('km²', 'px²')
    """
    plane = plane_of(tree)
    if plane is None or (plane.crs and plane.unit == "m"):
        return GroundUnit(1e6, "km²", "km2")
    return GroundUnit(1.0, f"{plane.unit}²", f"{plane.unit}2")


def reference_system(crs: str) -> Any:
    """The reference system of an EPSG code; `InputError` if it is unknown."""
    from pyproj import CRS
    from pyproj.exceptions import CRSError

    try:
        return CRS.from_user_input(crs)
    except CRSError as error:
        raise InputError(f"no reference system is called {crs}: {error!s:.120}") from error


def _unit_of(crs: str) -> str:
    """The unit of a reference system's axes; `InputError` if it is degrees or unknown."""
    units = {axis.unit_name for axis in reference_system(crs).axis_info}
    known = {"metre": "m", "kilometre": "km", "foot": "ft", "US survey foot": "ft"}
    if len(units) != 1 or not units <= known.keys():
        found = " and ".join(sorted(units))
        raise InputError(f"{crs} is in {found}: a plane needs metres or feet, and maps in degrees need no plane")
    return known[units.pop()]
