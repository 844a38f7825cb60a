"""Coordinates of a row: two columns, a geometry in WGS 84 or another reference system, or an H3 cell.

Points in well-known binary (ISO and extended) are read as the bytes they are: 21 of them at fixed places. A MULTIPOINT
of one point is that point, 9 bytes further on. A library that reads every shape follows collections in collections as
deep as a row has them, and that can end the process.

A cell is the centre of the hexagon that it lies in: whatever finds hexagons of points (`spatial.h3_hexagons`) finds
those of cells, for the centre of a hexagon lies in it.
"""

import re
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.arrow_arrays import floats, numbers, texts, valid
from hazemap.machine_code.arrays import Bools, Bytes, Ints

LonLat = tuple[NDArray[np.float64], NDArray[np.float64]]


class Points(Protocol):
    """How to read the longitude and latitude of rows."""

    @property
    def sql(self) -> tuple[str, ...]:
        """The columns to read."""

    def lonlat(self, columns: list[Any]) -> LonLat:
        """Longitude and latitude in WGS 84, from these columns as Arrow arrays; NaN where there is none."""


@dataclass(frozen=True)
class TwoColumns:
    """Longitude and latitude in degrees, each a column of its own."""

    sql: tuple[str, str]

    def lonlat(self, columns: list[Any]) -> LonLat:
        """Longitude and latitude; NaN where there is none."""
        lon, lat = (floats(column) for column in columns)
        return lon, lat


@dataclass(frozen=True)
class WellKnownBinary:
    """Points in the encoding of GeoParquet."""

    sql: tuple[str]

    def lonlat(self, columns: list[Any]) -> LonLat:
        """Both coordinates of each point; NaN for anything else."""
        return coordinates_of(columns[0])


@dataclass(frozen=True)
class Reprojected:
    """Points in another reference system than WGS 84."""

    points: Points
    crs: str

    @property
    def sql(self) -> tuple[str, ...]:
        """The columns to read."""
        return self.points.sql

    def lonlat(self, columns: list[Any]) -> LonLat:
        """Longitude and latitude; NaN where there is none."""
        from pyproj import Transformer

        x, y = self.points.lonlat(columns)
        lon, lat = Transformer.from_crs(self.crs, "OGC:CRS84", always_xy=True).transform(x, y, errcheck=False)
        usable = np.isfinite(lon) & np.isfinite(lat)  # pyproj answers infinity where it has none
        return np.where(usable, lon, np.nan), np.where(usable, lat, np.nan)


_POINTS = (1, 1001, 2001, 3001)
"""A point, with a height, with a measure, with both."""

_SEVERAL, _COUNT = (4, 1004, 2004, 3004), 4
"""Several points, and the bytes of their number."""

_REFERENCE, _MORE = 0x20000000, 0xC0000000
"""Flags of the extended form: a reference system follows the type; there is a height or a measure."""

_HEAD, _SYSTEM, _COORDINATES = 5, 4, 16


def coordinates_of(column: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The x and y of each point in an Arrow array of binary; NaN for a row that is missing or anything else. O(rows).

    >>> import pyarrow
    >>> point = bytes([1, 1, 0, 0, 0]) + np.array([2.0, 48.0]).tobytes()
    >>> coordinates_of(pyarrow.array([point, b"point", None]))
    (array([ 2., nan, nan]), array([48., nan, nan]))
    """
    data, ends = texts(column)
    begins, lengths = ends[:-1].astype(np.int64), np.diff(ends).astype(np.int64)
    big, kind, start = _heads(data, begins, lengths)
    several = np.isin(kind, _SEVERAL) & (lengths >= start + _COUNT)
    if several.any():
        counts = _words(_gathered(data, begins + start, _COUNT), big)
        alone = np.where(several & (counts == 1), start + _COUNT, 0)
        begins, lengths = begins + alone, lengths - alone
        inner = _heads(data, begins, lengths)
        big, kind, start = (
            np.where(alone > 0, one, other) for one, other in zip(inner, (big, kind, start), strict=True)
        )
    there = np.isin(kind, _POINTS) & valid(column) & (lengths >= start + _COORDINATES)
    pairs = _gathered(data, begins + start, _COORDINATES)
    xy = np.where(big[:, None], pairs.view(">f8"), pairs.view("<f8"))
    xy[~there] = np.nan
    return xy[:, 0].copy(), xy[:, 1].copy()


def _heads(data: Bytes, begins: Ints, lengths: Ints) -> tuple[Bools, Ints, Ints]:
    """Whether each shape has its greatest byte first, its kind without flags (-1: none), and where the rest begins."""
    head = _gathered(data, begins, _HEAD)
    big = head[:, 0] == 0
    kind = _words(head[:, 1:].copy(), big)
    start = np.where(kind & _REFERENCE, _HEAD + _SYSTEM, _HEAD)
    whole = (head[:, 0] <= 1) & (lengths >= _HEAD)
    return big, np.where(whole, kind & ~(_REFERENCE | _MORE), -1), start


def _words(data: Bytes, big: Bools) -> Ints:
    """Numbers of four bytes each."""
    found: Ints = np.where(big, data.view(">u4")[:, 0], data.view("<u4")[:, 0]).astype(np.int64)
    return found


def _gathered(data: NDArray[np.uint8], begins: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
    """So many bytes from each place on; any, beyond the end."""
    found: NDArray[np.uint8] = data[np.minimum(begins[:, None] + np.arange(size), len(data) - 1)]
    return found


_HEXADECIMAL = re.compile("0?[0-9a-fA-F]{15}")
_DECIMAL = re.compile("[0-9]{18,19}")
_LONGEST = 64
"""Letters of a text that are looked at, blanks around it included: a cell has 15 to 19."""


@dataclass(frozen=True)
class CellColumn:
    """A column of H3 cells, as texts or as whole numbers of 64 bits, read at a resolution.

    A cell of that resolution stands for itself, a finer one for its ancestor there. A coarser one says too little: such
    a row is nowhere, like one without a cell and one with anything else than a cell. Each row is read for what it is
    itself.

    >>> import pyarrow
    >>> column = CellColumn(("h3",), resolution=6)
    >>> lon, lat = column.lonlat([pyarrow.array(["8642d9d6fffffff", "8742d9d68ffffff", "8542d9d7fffffff", "here"])])
    >>> lon.round(2), lat.round(2)
    (array([72.81, 72.81,   nan,   nan]), array([21.18, 21.18,   nan,   nan]))
    """

    sql: tuple[str]
    resolution: int

    def lonlat(self, columns: list[Any]) -> LonLat:
        """The centres of the hexagons; NaN where there is none. O(rows), and a little more for each distinct cell."""
        from h3ronpy import cells_valid, change_resolution
        from h3ronpy.vector import cells_to_coordinates

        cells = cells_of(columns[0])
        distinct, which = np.unique(cells, return_inverse=True)
        fine = ((distinct >> np.uint64(52)) & np.uint64(15)) >= self.resolution
        good = np.flatnonzero(np.asarray(cells_valid(distinct, booleanarray=True), dtype=bool) & fine)
        found = np.full((2, len(distinct)), np.nan)
        if good.size:
            hexagons = np.asarray(change_resolution(distinct[good], self.resolution), dtype=np.uint64)
            centres = cells_to_coordinates(hexagons)
            found[:, good] = np.asarray(centres["lng"]), np.asarray(centres["lat"])
        return found[0][which], found[1][which]


def cells_of(column: Any) -> NDArray[np.uint64]:
    """The numbers of an Arrow array of uint64 or of texts, hexadecimal or decimal; 0, which is no cell, for the rest.

    >>> import pyarrow
    >>> [hex(cell) for cell in cells_of(pyarrow.array([" 8642D9D6FFFFFFF", "604658404186652671", None])).tolist()]
    ['0x8642d9d6fffffff', '0x8642d9d6fffffff', '0x0']
    """
    import pyarrow

    if pyarrow.types.is_uint64(column.type):
        return np.where(valid(column), numbers(column, np.uint64), np.uint64(0))
    words = column.dictionary_encode()
    known = np.array([_cell(text) for text in words.dictionary.to_pylist()] + [0], dtype=np.uint64)
    rows = words.indices.fill_null(len(known) - 1)
    found: NDArray[np.uint64] = known[np.asarray(rows, dtype=np.int64)]
    return found


def _cell(text: str) -> int:
    """The number that a text stands for, below 2⁶⁴; 0 for any other text."""
    if len(text) > _LONGEST:
        return 0
    text = text.strip()
    if _HEXADECIMAL.fullmatch(text):
        return int(text, 16)
    return int(text) if _DECIMAL.fullmatch(text) and int(text) < 1 << 63 else 0
