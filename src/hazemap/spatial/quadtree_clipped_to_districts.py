"""Squares of a web map clipped to districts: what is counted before it is known how districts will be split."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Columns
from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.machine_code.arrays import Ints
from hazemap.spatial.district_layers import BETWEEN
from hazemap.spatial.districts import PATH_BITS, Districts
from hazemap.spatial.quadtree import Quadtree

DEEPEST = 21
"""Levels of squares at most: their numbers fit beside that of a district."""

_ONE, _PATHS = np.uint64(1), (np.uint64(1) << PATH_BITS) - np.uint64(1)


@dataclass(frozen=True)
class DistrictQuadtree:
    """Districts whose leaves are cut further by the squares of a quadtree: a base cell is a square in a leaf.

    A district square is its district's number with that of the square in place of the 1: district << 44 | square. So
    the levels are those of the districts, then those of the quadtree, and a point has both at once. A square that a
    border runs through is several district squares; one beside its district is a district square without ground (area
    0) and people.

    >>> import geopandas, shapely
    >>> halves = [shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1)]
    >>> states = geopandas.GeoDataFrame({"name": ["West", "East"]}, geometry=halves, crs="EPSG:4326")
    >>> tree = DistrictQuadtree(Districts.of(states), Quadtree.world(depth=6))
    >>> tree.names(tree.cell_at({"lon": np.array([0.5, 1.5]), "lat": np.array([0.5, 0.5])}, tree.depth))
    ['West > 122222', 'East > 122222']
    """

    districts: Districts
    square: Quadtree

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.square.depth <= DEEPEST:
            raise InputError(f"districts can be cut by at most {DEEPEST} levels of squares; found {self.square.depth}")

    @property
    def depth(self) -> int:
        """The levels of the districts and of the squares."""
        return self.districts.depth + self.square.depth

    @property
    def root(self) -> Cells:
        """All districts together."""
        return self.districts.root

    def children(self, cells: Cells) -> Cells:
        """The districts in each district; the quarters of a leaf or of a district square."""
        cells = np.asarray(cells, dtype=np.uint64)
        upper = self.level(cells) < self.districts.depth
        born = [self.districts.children(cells[i : i + 1]) for i in np.flatnonzero(upper)]
        quarters = (cells & ~_PATHS)[:, None] | self.square.children(cells & _PATHS).reshape(-1, 4)
        if not upper.any():
            return np.asarray(quarters.ravel())
        whole = iter(born)
        return np.concatenate([next(whole) if above else own for above, own in zip(upper, quarters, strict=True)])

    def parent(self, cells: Cells) -> Cells:
        """The district square that each is a quarter of, or the district around."""
        cells = np.asarray(cells, dtype=np.uint64)
        found = (cells & ~_PATHS) | (cells & _PATHS) >> np.uint64(2)
        upper = cells & _PATHS == _ONE
        found[upper] = self.districts.parent(cells[upper])
        return found

    def level(self, cells: Cells) -> Ints:
        """The level of the district, plus that of the square; -1 for numbers that are no cells."""
        cells = np.asarray(cells, dtype=np.uint64)
        district, inner = self.districts.level(_district(cells)), self.square.level(cells & _PATHS)
        real = (inner == 0) | ((inner > 0) & (inner <= self.square.depth) & (district == self.districts.depth))
        return np.where((district >= 0) & real, district + inner, -1)

    def span(self, cells: Cells) -> tuple[Cells, Cells]:
        """The squares in each; the first in a district begins where the district's span does, the last ends there."""
        cells = np.asarray(cells, dtype=np.uint64)
        begin, end = self.districts.span(_district(cells))
        first, last = self.square.span(cells & _PATHS)
        lowest, highest = self.square.span(self.square.root)
        district, inner = cells & ~_PATHS, cells & _PATHS != _ONE
        first = np.where(inner & (first != lowest), district | first, begin)
        last = np.where(inner & (last != highest), district | last, end)
        return first, last

    def cell_at(self, columns: Columns, level: int) -> Cells:
        """The cell of each row; `NOWHERE` in no district, outside the square, or for NaN."""
        if not 0 <= level <= self.depth:
            raise InputError(f"this tree has levels 0 to {self.depth}; found {level}")
        depth = self.districts.depth
        district = self.districts.cell_at(columns, min(level, depth))
        square = self.square.cell_at(columns, max(level - depth, 0))
        there = (district != NOWHERE) & (square != NOWHERE)
        return np.where(there, (district & ~_PATHS) | square, NOWHERE)

    def area(self, cells: Cells) -> NDArray[np.float64]:
        """Square metres of each; 0 for a district square without ground."""
        cells = np.asarray(cells, dtype=np.uint64)
        found, inner = np.empty(len(cells)), cells & _PATHS != _ONE
        found[~inner] = self.districts.area(cells[~inner])
        found[inner] = self.districts.areas_inside(_district(cells[inner]), self._boxes(cells[inner]))
        return found

    def outlines(self, cells: Cells) -> NDArray[Any]:
        """The part of each square in the district, perhaps empty."""
        cells = np.asarray(cells, dtype=np.uint64)
        found, inner = np.empty(len(cells), dtype=object), cells & _PATHS != _ONE
        found[~inner] = self.districts.outlines(cells[~inner])
        found[inner] = self.districts.parts(_district(cells[inner]), self._boxes(cells[inner]))
        return found

    def _boxes(self, cells: Cells) -> NDArray[np.float64]:
        return np.column_stack(self.square.bounds(cells & _PATHS))

    def names(self, cells: Cells) -> list[str]:
        """The path to the district, then the digits of the square."""
        cells = np.asarray(cells, dtype=np.uint64)
        if (self.level(cells) < 0).any():
            raise InputError("some of these numbers are not cells of this tree")
        paths, digits = self.districts.names(_district(cells)), self.square.names(cells & _PATHS)
        return [path if inner == "root" else path + BETWEEN + inner for path, inner in zip(paths, digits, strict=True)]

    def named(self, names: list[str]) -> Cells:
        """The cells with these names."""
        whole = zip(names, self.districts.known(names), strict=True)
        parts = [(name, "root") if known else name.rpartition(BETWEEN)[::2] for name, known in whole]
        district = self.districts.named([path for path, _ in parts]) & ~_PATHS
        cells: Cells = district | self.square.named([digits for _, digits in parts])
        if (self.level(cells) < 0).any():
            found = names[int(np.argmax(self.level(cells) < 0))]
            raise InputError(f"only the finest districts can be cut into squares; found {found!r}")
        return cells

    def pixels(self, base: Cells) -> tuple[Ints, Ints]:
        """Column and row of the square of each base cell; -1, -1 for `NOWHERE`."""
        from hazemap.spatial.pixel_kernels import columns_and_rows

        return columns_and_rows(base & _PATHS, self.square.depth)

    def frames(self, districts: Cells) -> Ints:
        """The least rectangles of squares (west, north, east, south) that hold all of each district; int64[n, 4]."""
        west, south, east, north = self.districts.bounds(districts).T
        corners = [{"lon": lon, "lat": lat} for lon, lat in ((west, north), (east, south))]
        cells = [self.square.cell_at(corner, self.square.depth) for corner in corners]
        if any((found == NOWHERE).any() for found in cells):
            raise InputError(
                "a district reaches beyond the square that is to cut it, such as a pole beyond Web Mercator"
            )
        (left, top), (right, bottom) = (self.pixels(found) for found in cells)
        return np.column_stack([left, top, right + 1, bottom + 1])


def _district(cells: Cells) -> Cells:
    """The district that each cell is, or is part of."""
    return (np.asarray(cells, dtype=np.uint64) & ~_PATHS) | _ONE
