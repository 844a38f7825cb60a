"""A grid of grids: a square cut into equal parts, each cut again as finely as it deserves."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import MOST_CELLS, Cells, Columns
from hazemap.domains.boxes import coordinates
from hazemap.domains.geodesy import mercator_rectangles
from hazemap.domains.quadtree import FINEST_SIDE, Quadtree
from hazemap.errors import InputError

NAME = re.compile(r"root|(0|[1-9][0-9]{0,7})-(0|[1-9][0-9]{0,7})(?:-(0|[1-9][0-9]{0,7})-(0|[1-9][0-9]{0,7}))?")


class Edges(NamedTuple):
    """The edges of some cells, counted in blocks from the west and from the north."""

    west: NDArray[np.float64]
    north: NDArray[np.float64]
    east: NDArray[np.float64]
    south: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Grids:
    """A square in unit Web-Mercator coordinates, cut into first × first blocks, block i into second[i] × second[i].

    A tree of depth 2, with any numbers where a quadtree has powers of two (Qardaji, Yang and Li 2013). Blocks and the
    parts of a block stand row by row from the north-west, `second` is int64[first²]. The root is cell 1, then come the
    blocks, then the parts of the first block, of the second, … so spans are ranges. A cell owns its western and
    northern edge, the root all its edges. A name is column-row of the block, then column-row in it.

    >>> tree = Grids(0.0, 0.0, 1.0, 3, np.array([1, 1, 1, 2, 1, 1, 1, 1, 1]))
    >>> nairobi = tree.cell_at({"lon": np.array([36.8]), "lat": np.array([-1.3])}, 1)
    >>> tree.names(nairobi), tree.names(tree.children(tree.named(["0-1"])))
    (['1-1'], ['0-1-0-0', '0-1-1-0', '0-1-0-1', '0-1-1-1'])
    """

    left: float
    top: float
    side: float
    first: int
    second: NDArray[np.int64]

    def __post_init__(self) -> None:
        Quadtree(self.left, self.top, self.side, 0)
        second = np.array(self.second, dtype=np.int64)
        second.setflags(write=False)
        object.__setattr__(self, "second", second)
        blocks = self.first * self.first
        if self.first < 1 or second.shape != (blocks,) or second.min() < 1:
            raise InputError(
                f"a grid of grids has a whole number above 0 for each of its blocks; found {second.shape} numbers "
                f"for {blocks} blocks"
            )
        if second.max() > MOST_CELLS or float((second.astype(float) ** 2).sum()) > MOST_CELLS:
            raise InputError(f"a grid of grids has at most {MOST_CELLS:,} cells; cut it less finely")
        if self.side / (self.first * int(second.max())) < FINEST_SIDE:
            raise InputError(
                "the cells of this grid of grids would be finer than a few micrometres; cut it less finely"
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Grids):
            return NotImplemented
        return self._square == other._square and np.array_equal(self.second, other.second)

    def __hash__(self) -> int:
        return hash((self._square, self.second.tobytes()))

    @classmethod
    def regular(cls, square: Quadtree, parts: int) -> "Grids":
        """One grid of parts × parts over the root of a quadtree; no block is cut again."""
        return cls(square.left, square.top, square.side, parts, np.ones(parts * parts, dtype=np.int64))

    def cut(self, second: NDArray[np.int64]) -> "Grids":
        """The same blocks, cut in other ways."""
        return Grids(self.left, self.top, self.side, self.first, second)

    @property
    def depth(self) -> int:
        """Always 2: blocks, and their parts."""
        return 2

    @property
    def root(self) -> Cells:
        """The whole square: cell 1."""
        return np.ones(1, dtype=np.uint64)

    def children(self, cells: Cells) -> Cells:
        """The blocks of the root, or the parts of each block."""
        level, at = self.level(cells), _whole(cells)
        block = np.clip(at - 2, 0, self._blocks - 1)
        begin = np.where(level == 0, 2, self._start[block])
        number = np.where(level == 0, self._blocks, np.where(level == 1, self.second[block] ** 2, 0))
        ends = np.cumsum(number)
        inner = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - number, number)
        children: Cells = (np.repeat(begin, number) + inner).astype(np.uint64)
        return children

    def parent(self, cells: Cells) -> Cells:
        """The block of each part; the root for a block."""
        part = self.level(cells) == 2
        return np.where(part, self._block(cells) + 2, 1).astype(np.uint64)

    def level(self, cells: Cells) -> NDArray[np.int64]:
        """0 for the root, 1 for a block, 2 for a part; below 0 or above 2 for numbers that are no cells."""
        levels = np.searchsorted(np.array([1, 2, 2 + self._blocks, self._start[-1]]), _whole(cells), side="right") - 1
        return levels.astype(np.int64)

    def span(self, cells: Cells) -> tuple[Cells, Cells]:
        """First and last part in each cell."""
        level, at = self.level(cells), _whole(cells)
        block = np.clip(at - 2, 0, self._blocks - 1)
        first = np.choose(np.clip(level, 0, 2), [self._start[0], self._start[block], at])
        last = np.choose(np.clip(level, 0, 2), [self._start[-1] - 1, self._start[block + 1] - 1, at])
        return first.astype(np.uint64), last.astype(np.uint64)

    def cell_at(self, columns: Columns, level: int) -> Cells:
        """The cell of each row at this level; `NOWHERE` outside the root, or for NaN."""
        from hazemap.domains.blocks import blocks_and_parts

        if not 0 <= level <= 2:
            raise InputError(f"a grid of grids has levels 0 to 2; found {level}")
        lon, lat = coordinates(columns)
        cells: Cells = blocks_and_parts(lon, lat, self.left, self.top, self.side, self.second, self._start, level)
        return cells

    def bounds(
        self, cells: Cells
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """West, south, east and north of each cell in degrees; the parts of a block share edges to the last bit."""
        from hazemap.domains.mercator import latitudes, longitudes

        edges = self._edges(cells)
        west, east = longitudes(self._x(edges.west)), longitudes(self._x(edges.east))
        return west, latitudes(self._y(edges.south)), east, latitudes(self._y(edges.north))

    def area(self, cells: Cells) -> NDArray[np.float64]:
        """Geodesic area of each cell on the WGS 84 ellipsoid, in square metres."""
        edges = self._edges(cells)
        width, height = edges.east - edges.west, edges.south - edges.north
        block = self.side / self.first
        return mercator_rectangles(self._y(edges.north), width * block, height * block)

    def outlines(self, cells: Cells) -> NDArray[Any]:
        """Each cell as a rectangle in longitude and latitude."""
        import shapely

        boxes: NDArray[Any] = shapely.box(*self.bounds(cells))
        return boxes

    def names(self, cells: Cells) -> list[str]:
        """`root`, column-row of a block, or column-row of the block and column-row in it."""
        level = self.level(cells)
        if ((level < 0) | (level > 2)).any():
            raise InputError("only the root, blocks and parts have names; found other numbers")
        block = self._block(cells)
        inner = np.where(level == 2, _whole(cells) - self._start[block], 0)
        row, column = np.divmod(block, self.first)
        y, x = np.divmod(inner, self.second[block])
        kinds = ("root", "{}-{}", "{}-{}-{}-{}")
        numbers = zip(level.tolist(), column.tolist(), row.tolist(), x.tolist(), y.tolist(), strict=True)
        return [kinds[kind].format(*place) for kind, *place in numbers]

    def named(self, names: list[str]) -> Cells:
        """The cells with these names."""
        found = np.empty(len(names), dtype=np.uint64)
        for i, name in enumerate(names):
            match = NAME.fullmatch(name)
            column, row, x, y = (
                (-1 if number is None else int(number) for number in match.groups()) if match else (0,) * 4
            )
            block = row * self.first + column
            if match is None or max(column, row) >= self.first or (x >= 0 and max(x, y) >= self.second[block]):
                raise InputError(
                    f"a cell of this grid is 'root', a block such as '3-0' or a part such as '3-0-1-1'; found {name!r}"
                )
            whole = 1 if column < 0 else block + 2 if x < 0 else self._start[block] + y * self.second[block] + x
            found[i] = whole
        return found

    @cached_property
    def _start(self) -> NDArray[np.int64]:
        """The first part of each block, and one past the last part of all."""
        return 2 + self._blocks + np.concatenate([[0], np.cumsum(self.second**2)])

    @property
    def _blocks(self) -> int:
        return self.first * self.first

    @property
    def _square(self) -> tuple[float, float, float, int]:
        return (self.left, self.top, self.side, self.first)

    def _block(self, cells: Cells) -> NDArray[np.int64]:
        """The block that each part lies in, or that a block is; 0 for the root."""
        at = _whole(cells)
        part = np.searchsorted(self._start, at, side="right") - 1
        return np.clip(np.where(at < self._start[0], at - 2, part), 0, self._blocks - 1)

    def _edges(self, cells: Cells) -> Edges:
        level, block = self.level(cells), self._block(cells)
        row, column = np.divmod(block, self.first)
        parts = np.where(level == 2, self.second[block], 1)
        y, x = np.divmod(np.where(level == 2, _whole(cells) - self._start[block], 0), parts)
        wide = np.where(level == 0, self.first, 1)
        return Edges(column + x / parts, row + y / parts, column + (x + wide) / parts, row + (y + wide) / parts)

    def _x(self, column: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(self.left + self.side * (column / self.first))

    def _y(self, row: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(self.top + self.side * (row / self.first))


def _whole(cells: Cells) -> NDArray[np.int64]:
    return np.asarray(cells, dtype=np.uint64).astype(np.int64)
