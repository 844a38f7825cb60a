"""Squares of Web Mercator, each split in four: the tree that aligns with every web map."""

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Columns
from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.machine_code.arrays import Floats
from hazemap.spatial.bounding_box import MERCATOR_LATITUDE, Box, coordinates
from hazemap.spatial.web_mercator import every_other_bit, latitude, longitude, mercator_rectangles, spread
from hazemap.vdaf.compiled_loops import compiler_is_loaded

FEW = 32
"""So few numbers are not looked through for equal ones."""

MOST_ROWS = 1 << 16
"""Up to this many different latitudes, computing them one by one is faster than loading numba."""

DEEPEST = 24
FINEST_SIDE = 2.0**-44  # a few micrometres: smaller squares have edges that doubles cannot tell apart
GRAIN = 2**32  # `around` rounds outwards to this grid (1 cm), so that its numbers are short
LARGEST_GRID = 12
AT_ONCE = 1 << 15
"""Cells that are looked at together: few enough for a processor's cache."""


@dataclass(frozen=True)
class Quadtree:
    """A square in unit Web-Mercator coordinates, cut in four, depth times.

    x grows east, y grows south; the world is left 0, top 0, side 1. The root is cell 1; each level adds two
    bits, x | y << 1, as quadkeys do. So `c >> 2` is the parent and the base cells of a cell are one range in
    Z-order. A cell owns its western and northern edge, the root all its edges. A square around a box has
    cells for points beside the box too: who wants none of those filters the rows.

    >>> tree = Quadtree.world(depth=3)
    >>> paris = tree.cell_at({"lon": np.array([2.35]), "lat": np.array([48.85])}, level=3)
    >>> tree.names(paris), tree.names(tree.parent(paris))
    (['120'], ['12'])
    """

    left: float
    top: float
    side: float
    depth: int

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.depth <= DEEPEST:
            raise InputError(f"the depth of a quadtree must be 0 to {DEEPEST}; found {self.depth}")
        inside = self.left >= 0 and self.top >= 0 and self.side > 0
        if not (inside and self.left + self.side <= 1 and self.top + self.side <= 1):
            raise InputError(
                "the square of a quadtree must lie in the world, 0 <= left, top and left + side, top + side <= 1;"
                f" found {self.left}, {self.top}, {self.side}"
            )
        if self.side / 2**self.depth < FINEST_SIDE:
            raise InputError(
                f"depth {self.depth} would cut a square of side {self.side:g} finer than a few micrometres;"
                " use a smaller depth"
            )

    @classmethod
    def world(cls, depth: int) -> "Quadtree":
        """The square of every web map; its cells are the usual tiles."""
        return cls(0.0, 0.0, 1.0, depth)

    @classmethod
    def around(cls, box: Box, depth: int) -> "Quadtree":
        """The smallest square (to 1 cm) that holds the box, centred on it or shifted into the world."""
        if box.south >= MERCATOR_LATITUDE or box.north <= -MERCATOR_LATITUDE:
            raise InputError(f"Web Mercator reaches only ±{MERCATOR_LATITUDE:.2f} degrees; found the box {box}")
        spread = [0.5 + degrees / 360 for degrees in (box.west, box.east)]
        fall = [
            0.5 - math.asinh(math.tan(math.radians(degrees))) / (2 * math.pi)
            for degrees in (min(box.north, MERCATOR_LATITUDE), max(box.south, -MERCATOR_LATITUDE))
        ]
        first_x, first_y = (max(math.floor(edges[0] * GRAIN), 0) for edges in (spread, fall))
        last_x, last_y = (min(math.ceil(edges[1] * GRAIN), GRAIN) for edges in (spread, fall))
        # Rounding may have moved an edge onto the grid from just beyond it.
        first_x -= longitude(first_x / GRAIN) > box.west
        last_x += longitude(last_x / GRAIN) < box.east
        first_y -= first_y > 0 and latitude(first_y / GRAIN) < box.north
        last_y += last_y < GRAIN and latitude(last_y / GRAIN) > box.south
        side = max(last_x - first_x, last_y - first_y)
        left, top = (
            min(max((first + last - side) // 2, 0), GRAIN - side)
            for first, last in ((first_x, last_x), (first_y, last_y))
        )
        return cls(left / GRAIN, top / GRAIN, side / GRAIN, depth)

    @property
    def root(self) -> Cells:
        """The whole square: cell 1."""
        return np.ones(1, dtype=np.uint64)

    def children(self, cells: Cells) -> Cells:
        """North-west, north-east, south-west and south-east of each cell."""
        quarters: Cells = (_numbers(cells)[:, None] << np.uint64(2)) | np.arange(4, dtype=np.uint64)
        return quarters.ravel()

    def parent(self, cells: Cells) -> Cells:
        """The square that each cell is a quarter of."""
        return _numbers(cells) >> np.uint64(2)

    def neighbours(self, cells: Cells) -> Cells:
        """The squares west, east, north and south of each cell, uint64[cells, 4]; `NOWHERE` beyond the root.

        The bits of a column are every other bit of a number: with the bits between them set, a carry runs through.
        """
        one = np.uint64(1)
        first = one << (2 * self.level(cells)).astype(np.uint64)
        place = _numbers(cells) - first
        columns = (first - one) // np.uint64(3)
        found = []
        for own, other in ((columns, columns << one), (columns << one, columns)):
            mine, step = place & own, one if own is columns else one << one
            before = np.where(mine != 0, first | (mine - step) & own | place & other, NOWHERE)
            after = np.where(mine != own, first | ((mine | other) + step) & own | place & other, NOWHERE)
            found += [before, after]
        return np.stack(found, axis=1)

    def level(self, cells: Cells) -> NDArray[np.int64]:
        """The level: the first cell of level l is 4^l, the last 2 · 4^l − 1; −1 for other numbers."""
        numbers = _numbers(cells)
        level = _level_of_all(numbers)
        if level is not None:
            return np.full(numbers.shape, level)
        # The exponent of a float: exact for cells, which have at most 50 bits; what has more is too deep anyway.
        exponents: NDArray[np.int64] = (numbers.astype(np.float64).view(np.int64) >> 52) - 1023
        levels = np.maximum(exponents, -1)
        return np.where(levels & 1, -1, levels >> 1)

    def span(self, cells: Cells) -> tuple[Cells, Cells]:
        """First and last base cell in each cell."""
        numbers, one = _numbers(cells), np.uint64(1)
        one_level = _level_of_all(numbers)
        levels = self.level(cells) if one_level is None else np.array([one_level])
        rise = (2 * (self.depth - levels)).astype(np.uint64)
        first = numbers << rise
        return first, first + ((one << rise) - one)

    def cell_at(self, columns: Columns, level: int) -> Cells:
        """The cell of each row at this level; `NOWHERE` outside the root, beyond Web Mercator, or for NaN."""
        from hazemap.spatial.pixel_kernels import squares

        if not 0 <= level <= self.depth:
            raise InputError(f"this quadtree has levels 0 to {self.depth}; found {level}")
        lon, lat = coordinates(columns)
        cells: Cells = squares(lon, lat, self.left, self.top, self.side, self.depth, level)
        return cells

    def pixels(self, base: Cells) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Column and row of each base cell, counted from the west and the north; -1, -1 for `NOWHERE`."""
        from hazemap.spatial.pixel_kernels import columns_and_rows

        return columns_and_rows(base, self.depth)

    def square(self, cells: Cells) -> tuple[Floats, Floats, Floats]:
        """Left, top and side of each cell in unit Web-Mercator coordinates."""
        column, row, share = self._place(cells)
        x, y = (start + self.side * (edge * share) for start, edge in ((self.left, column), (self.top, row)))
        return x, y, self.side * share

    def bounds(self, cells: Cells) -> tuple[Floats, Floats, Floats, Floats]:
        """West, south, east and north of each cell in degrees; neighbours share an edge to the last bit."""
        column, row, share = self._place(cells)
        west, east = (longitude(self.left + self.side * (edge * share)) for edge in (column, column + 1))
        north, south = (latitudes(self.top + self.side * (edge * share)) for edge in (row, row + 1))
        return west, south, east, north

    def grid(self, level: int) -> Cells:
        """All cells of a level as a picture: uint64[rows, columns], the first row in the north."""
        if not 0 <= level <= min(self.depth, LARGEST_GRID):
            raise InputError(f"a grid has level 0 to {min(self.depth, LARGEST_GRID)}; found {level}")
        places = spread(np.arange(2**level, dtype=np.uint64))
        cells: Cells = np.uint64(4**level) | places[None, :] | (places[:, None] << np.uint64(1))
        return cells

    def area(self, cells: Cells) -> Floats:
        """Geodesic area of each cell on the WGS 84 ellipsoid, in square metres."""
        numbers = _numbers(cells)
        one_level = _level_of_all(numbers)
        level = self.level(cells) if one_level is None else np.broadcast_to(np.int64(one_level), numbers.shape)
        deepest = max(int(level.max(initial=0)), 0)
        if len(numbers) < 2 << deepest:
            return self._areas(level, _row(numbers))
        every = np.arange(1, 2 << deepest)  # a row of cells has one area: row r of level l has the place 2^l + r
        levels = np.log2(every).astype(np.int64)
        table = np.append(np.nan, self._areas(levels, every - (1 << levels)))
        areas = np.empty(len(numbers))
        for start in range(0, len(numbers), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            place = (1 << np.maximum(level[some], 0)) + _row(numbers[some])
            areas[some] = table[np.where(level[some] < 0, 0, place)]
        return areas

    def _areas(self, level: NDArray[np.int64], row: NDArray[np.int64]) -> Floats:
        share = 0.5 ** level.astype(np.float64)
        side = self.side * share
        return mercator_rectangles(self.top + self.side * (row * share), side, side)

    def outlines(self, cells: Cells) -> NDArray[Any]:
        """Each cell as a rectangle in longitude and latitude."""
        import shapely

        boxes: NDArray[Any] = shapely.box(*self.bounds(cells))
        return boxes

    def names(self, cells: Cells) -> list[str]:
        """Quadkeys for the world, `root-` and digits for any other square; `root` for the root itself."""
        numbers, levels = _numbers(cells), self.level(cells)
        if ((levels < 0) | (levels > self.depth)).any():
            raise InputError(f"only cells of levels 0 to {self.depth} have names; found other numbers")
        names = np.full(len(numbers), "root", dtype=object)
        for level in np.unique(levels[levels > 0]):
            chosen = levels == level
            shifts = np.arange(2 * (int(level) - 1), -1, -2, dtype=np.uint64)
            digits = ((numbers[chosen, None] >> shifts) & np.uint64(3)).astype(np.uint32) + ord("0")
            names[chosen] = [self._prefix + name for name in digits.view(f"U{level}").ravel().tolist()]
        result: list[str] = names.tolist()
        return result

    def named(self, names: list[str]) -> Cells:
        """The cells with these names."""
        pattern = re.compile(f"(?:root|{self._prefix}([0-3]{{1,{max(self.depth, 1)}}}))")
        cells = np.empty(len(names), dtype=np.uint64)
        for i, name in enumerate(names):
            match = pattern.fullmatch(name)
            digits = (match[1] or "") if match else ""
            if match is None or len(digits) > self.depth:
                raise InputError(
                    f"a cell of this quadtree is 'root' or {self._prefix!r} and 1 to {self.depth} digits 0-3;"
                    f" found {name!r:.60}"
                )
            cells[i] = int("1" + digits, 4)
        return cells

    def named_in(self, lengths: NDArray[np.int64], letters: NDArray[np.uint8]) -> Cells | None:
        """The same of names that stand one after another; None where one is no name, or names the root."""
        lead = np.frombuffer(self._prefix.encode(), np.uint8)
        shortest, longest = int(lengths.min(initial=1 << 32)), int(lengths.max(initial=0))
        if not len(lead) < shortest <= longest <= len(lead) + self.depth:
            return np.empty(0, np.uint64) if not len(lengths) else None
        if shortest == longest:
            rows, cells = letters.reshape(-1, longest), np.empty(len(lengths), dtype=np.uint64)
            for start in range(0, len(rows), AT_ONCE):
                found = _digits(rows[start : start + AT_ONCE], lead)
                if found is None:
                    return None
                cells[start : start + AT_ONCE] = found
            return cells
        cells, starts = np.empty(len(lengths), dtype=np.uint64), np.cumsum(lengths) - lengths
        for length in np.flatnonzero(np.bincount(lengths)).tolist():
            own = np.flatnonzero(lengths == length)
            found = _digits(letters[starts[own][:, None] + np.arange(length)], lead)
            if found is None:
                return None
            cells[own] = found
        return cells

    @property
    def _prefix(self) -> str:
        """The mark that tells the digits of another square from a quadkey."""
        return "" if (self.left, self.top, self.side) == (0, 0, 1) else "root-"

    def _place(self, cells: Cells) -> tuple[Floats, Floats, Floats]:
        """Column and row of each cell in the grid of its level, and the share of the root's side it has."""
        numbers, one_level = _numbers(cells), _level_of_all(_numbers(cells))
        levels = self.level(cells) if one_level is None else np.array([one_level])
        lead = np.left_shift(1, np.maximum(levels, 0))  # the root's own bit is not a coordinate
        column = every_other_bit(numbers).astype(np.float64) - lead
        row = every_other_bit(numbers >> np.uint64(1)).astype(np.float64)
        return column, row, np.broadcast_to(0.5 ** levels.astype(np.float64), numbers.shape)


def latitudes(y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Degrees of unit y, each to the last bit as `latitude` has it."""
    if not compiler_is_loaded():
        if y.size <= FEW:
            return np.array([latitude(each) for each in y.tolist()])
        different = np.sort(y)  # cells of a map have few rows
        different = different[np.append(True, different[1:] != different[:-1])]
        if len(different) <= MOST_ROWS:
            return np.array([latitude(each) for each in different.tolist()])[np.searchsorted(different, y)]
    from hazemap.spatial import pixel_kernels

    return pixel_kernels.latitudes(y)


def _numbers(cells: Cells) -> Cells:
    return np.asarray(cells, dtype=np.uint64)


def _level_of_all(numbers: Cells) -> int | None:
    """The level of cells of a grid; None for others."""
    least, most = (int(numbers.min()), int(numbers.max())) if numbers.size else (0, 0)
    level = (least.bit_length() - 1) // 2
    return level if least and 4**level <= least <= most < 2 * 4**level else None


def _row(numbers: Cells) -> NDArray[np.int64]:
    """The row of each cell in the grid of its level, counted from the north."""
    rows: NDArray[np.int64] = every_other_bit(numbers >> np.uint64(1)).astype(np.int64)
    return rows


def _digits(rows: NDArray[np.uint8], lead: NDArray[np.uint8]) -> Cells | None:
    """The cells with these names of one length, uint8[cells, letters]: after `lead` come digits from 0 to 3.

    Eight letters are looked at together, as a number: the last ones, those before them, and so on.
    """
    size, letters = len(rows), rows.shape[1]
    if letters < 8:
        padded = np.zeros((size, 8), dtype=np.uint8)
        padded[:, 8 - letters :] = rows
        rows = padded
    rows, cells = np.ascontiguousarray(rows), np.zeros(size, dtype=np.uint64)
    name = np.full(letters, ord("0"), dtype=np.uint8)
    name[: len(lead)] = lead
    free = np.full(letters, 3, dtype=np.uint8)
    free[: len(lead)] = 0
    for end in range(letters, 0, -8):
        start = max(end - 8, 0)
        eight = np.ndarray(size, ">u8", rows, start, (rows.shape[1],)).astype(np.uint64)
        if end < 8 <= letters:
            eight >>= np.uint64(8 * (8 - end))
        eight ^= _as_number(name[start:end])
        if (eight & ~_as_number(free[start:end])).any():
            return None
        eight |= eight >> np.uint64(6)
        eight &= np.uint64(0x000F000F000F000F)
        eight |= eight >> np.uint64(12)
        eight &= np.uint64(0x000000FF000000FF)
        eight |= eight >> np.uint64(24)
        eight &= np.uint64(0xFFFF)
        cells |= eight << np.uint64(2 * (letters - end))
    return cells | np.uint64(1 << 2 * (letters - len(lead)))


def _as_number(letters: NDArray[np.uint8]) -> np.uint64:
    """At most eight letters as a big-endian number."""
    return np.uint64(int.from_bytes(letters.tobytes(), "big"))
