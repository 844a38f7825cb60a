"""A grid of grids: a square split into equal parts, each split again as finely as its people allow."""

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hazemap.cells import MOST_CELLS, NOWHERE, Cells, Columns
from hazemap.errors import InputError
from hazemap.field_types import EqualByFields, check_fields, own_array
from hazemap.machine_code.arrays import Ints, consecutive
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_tree import PixelTree, Rectangles

NAME = re.compile(r"root|(0|[1-9][0-9]{0,7})-(0|[1-9][0-9]{0,7})(?:-(0|[1-9][0-9]{0,7})-(0|[1-9][0-9]{0,7}))?")


@dataclass(frozen=True, eq=False)
class TwoLevelGrid(EqualByFields, PixelTree):
    """The square of a quadtree, cut into first × first blocks, block i into second[i] × second[i] parts.

    A tree of depth 2, with any numbers where a quadtree has powers of two (Qardaji, Yang and Li 2013). It is drawn over
    the quadtree's base cells: cuts lie on the nearest line between pixels before where equal parts would have them, so
    a table that has counted the pixels need not read its rows again. Blocks and the parts of a block stand row by row
    from the north-west, `second` is int64[first²]. The root is cell 1, then come the blocks, then the parts of the
    first block, of the second, … so spans are ranges. A name is column-row of the block, then column-row in it.

    >>> tree = TwoLevelGrid(Quadtree.world(depth=10), 3, np.array([1, 1, 1, 2, 1, 1, 1, 1, 1]))
    >>> nairobi = tree.cell_at({"lon": np.array([36.8]), "lat": np.array([-1.3])}, 1)
    >>> tree.names(nairobi), tree.names(tree.children(tree.named(["0-1"])))
    (['1-1'], ['0-1-0-0', '0-1-1-0', '0-1-0-1', '0-1-1-1'])
    """

    base: Quadtree
    first: int
    second: Ints

    def __post_init__(self) -> None:
        check_fields(self)
        own_array(self, "second", np.int64)
        second, blocks, pixels = self.second, self.first * self.first, 1 << self.base.depth
        if self.first < 1 or second.shape != (blocks,) or second.min() < 1:
            raise InputError(
                f"a two-level grid needs a positive whole number for each block; found {second.shape} numbers "
                f"for {blocks} blocks"
            )
        if second.max() > MOST_CELLS or float((second.astype(float) ** 2).sum()) > MOST_CELLS:
            raise InputError(f"a two-level grid has at most {MOST_CELLS:,} cells; cut it less finely")
        if int(second.max()) > pixels // self.first:
            raise InputError(
                f"a square of {pixels} × {pixels} base cells has no {self.first} × {int(second.max())} parts: cut it "
                "less finely, or take a deeper quadtree"
            )

    @classmethod
    def regular(cls, square: Quadtree, parts: int) -> "TwoLevelGrid":
        """One grid of parts × parts over the root of a quadtree; no block is cut again."""
        return cls(square, parts, np.ones(parts * parts, dtype=np.int64))

    def cut(self, second: Ints) -> "TwoLevelGrid":
        """The same blocks, cut in other ways."""
        return TwoLevelGrid(self.base, self.first, second)

    @property
    def depth(self) -> int:
        """Always 2: blocks, and their parts."""
        return 2

    @property
    def root(self) -> Cells:
        """The whole square: cell 1."""
        return np.ones(1, dtype=np.uint64)

    @cached_property
    def leaves(self) -> Cells:
        """The parts, in ascending order."""
        return np.arange(self._start[0], self._start[-1]).astype(np.uint64)

    def positions(self, base: Cells) -> Ints:
        """For each base cell of the quadtree, which of `leaves` holds it; -1 for `NOWHERE`: O(cells)."""
        from hazemap.spatial.pixel_kernels import columns_and_rows, parts_at

        x, y = columns_and_rows(base, self.base.depth)
        found: Ints = parts_at(x, y, 1 << self.base.depth, self.first, self.second, self._start - self._start[0])
        return found

    def children(self, cells: Cells) -> Cells:
        """The blocks of the root, or the parts of each block."""
        level, at = self.level(cells), _whole(cells)
        block = np.clip(at - 2, 0, self._blocks - 1)
        begin = np.where(level == 0, 2, self._start[block])
        number = np.where(level == 0, self._blocks, np.where(level == 1, self.second[block] ** 2, 0))
        return consecutive(begin, number).astype(np.uint64)

    def parent(self, cells: Cells) -> Cells:
        """The block of each part; the root for a block."""
        part = self.level(cells) == 2
        return np.where(part, self._block(cells) + 2, 1).astype(np.uint64)

    def level(self, cells: Cells) -> Ints:
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
        if not 0 <= level <= 2:
            raise InputError(f"a two-level grid has levels 0 to 2; found {level}")
        found = self.positions(self.base.cell_at(columns, self.base.depth))
        cells = np.append(self.leaves, NOWHERE)[found]
        for _ in range(2 - level):
            cells[found >= 0] = self.parent(cells[found >= 0])
        return cells

    def rectangles(self, cells: Cells) -> Rectangles:
        """The pixels of each cell."""
        level, block = self.level(cells), self._block(cells)
        row, column = np.divmod(block, self.first)
        parts = np.where(level == 2, self.second[block], 1)
        y, x = np.divmod(np.where(level == 2, _whole(cells) - self._start[block], 0), parts)
        wide = np.where(level == 0, self.first, 1)
        west, east = self._lines(column, wide, x, parts)
        north, south = self._lines(row, wide, y, parts)
        return Rectangles(west, north, east, south)

    def names(self, cells: Cells) -> list[str]:
        """`root`, column-row of a block, or column-row of the block and column-row in it."""
        level = self.level(cells)
        if ((level < 0) | (level > 2)).any():
            raise InputError("some of these numbers are not cells of this grid")
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
    def _start(self) -> Ints:
        """The first part of each block, and one past the last part of all."""
        return 2 + self._blocks + np.concatenate([[0], np.cumsum(self.second**2)])

    @property
    def _blocks(self) -> int:
        return self.first * self.first

    def _block(self, cells: Cells) -> Ints:
        """The block that each part lies in, or that a block is; 0 for the root."""
        at = _whole(cells)
        part = np.searchsorted(self._start, at, side="right") - 1
        return np.clip(np.where(at < self._start[0], at - 2, part), 0, self._blocks - 1)

    def _lines(self, block: Ints, wide: Ints, part: Ints, parts: Ints) -> tuple[Ints, Ints]:
        """Start and end of a block's part in one direction; `wide` blocks are cut together."""
        pixels = 1 << self.base.depth
        begin, end = (np.floor_divide(edge * pixels, self.first) for edge in (block, block + wide))
        before, after = (begin + np.floor_divide(edge * (end - begin), parts) for edge in (part, part + 1))
        return before, after


def _whole(cells: Cells) -> Ints:
    return np.asarray(cells, dtype=np.uint64).astype(np.int64)
