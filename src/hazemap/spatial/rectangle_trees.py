"""Trees of rectangles of base cells (*pixels*) of a quadtree: split in two recursively, or grids of grids.

`BinaryPartition` cuts rectangles wherever that is best (kd-trees and homogeneous trees). `TwoLevelGrid` splits a square
into equal parts, and each of these again as finely as its people allow.
"""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import MOST_CELLS, NOWHERE, Cells, Columns, Growing, Redrawn, Tree
from hazemap.errors import InputError
from hazemap.field_types import EqualByFields, check_fields, own_array
from hazemap.machine_code.arrays import Floats, Ints, consecutive
from hazemap.spatial.quadtree import Quadtree, latitudes
from hazemap.spatial.web_mercator import longitude, mercator_rectangles


class Rectangles(NamedTuple):
    """Lines between pixels, counted from the west and from the north; int64[rectangles] each."""

    west: Ints
    north: Ints
    east: Ints
    south: Ints


@runtime_checkable
class Cuttable(Tree, Redrawn, Growing, Protocol):
    """A tree of rectangles of pixels that is cut while it is asked. Its `base` has `pixels`."""

    def rectangles(self, cells: Cells) -> Rectangles:
        """The pixels of each cell."""

    def cut(self, cells: Cells, axis: NDArray[Any], at: NDArray[Any]) -> "Cuttable":
        """The same tree with more cells cut: in a direction (0 west from east, 1 north from south), on a line."""


def bounds(square: Quadtree, edges: Rectangles) -> tuple[Floats, Floats, Floats, Floats]:
    """West, south, east and north in degrees, to the last bit those of the quadtree's own cells."""
    share = 0.5**square.depth
    west, east = (longitude(square.left + square.side * (_floats(line) * share)) for line in (edges.west, edges.east))
    north, south = (
        latitudes(square.top + square.side * (_floats(line) * share)) for line in (edges.north, edges.south)
    )
    return west, south, east, north


class PixelTree(ABC):
    """A tree of rectangles of pixels: what follows from the rectangles of its cells."""

    base: Quadtree

    @abstractmethod
    def rectangles(self, cells: Cells) -> Rectangles:
        """The pixels of each cell."""

    def bounds(self, cells: Cells) -> tuple[Floats, Floats, Floats, Floats]:
        """West, south, east and north of each cell in degrees; neighbours share an edge to the last bit."""
        return bounds(self.base, self.rectangles(cells))

    def area(self, cells: Cells) -> Floats:
        """Geodesic area of each cell on the WGS 84 ellipsoid, in square metres."""
        edges, pixel = self.rectangles(cells), self.base.side * 0.5**self.base.depth
        width, height = _floats(edges.east - edges.west) * pixel, _floats(edges.south - edges.north) * pixel
        return mercator_rectangles(self.base.top + _floats(edges.north) * pixel, width, height)

    def outlines(self, cells: Cells) -> NDArray[Any]:
        """Each cell as a rectangle in longitude and latitude."""
        import shapely

        boxes: NDArray[Any] = shapely.box(*self.bounds(cells))
        return boxes


def _floats(lines: Ints) -> Floats:
    return np.asarray(lines, dtype=np.float64)


DEEPEST = 42
"""Levels of every such tree: cells that are not cut stand there as their own only descendants."""

FRAME = np.uint64(44)
"""Bits of a cell's number that say which way was taken from the root of its frame; those above name the frame."""

ACROSS, DOWN = 0, 1
"""The axis of a cut: between west and east, or between north and south."""

_PATH_NAME = re.compile(r"(?:(0|[1-9][0-9]{0,5})\.)?(root|[01]{1,42})")
_ONE, _PATHS = np.uint64(1), np.uint64((1 << 44) - 1)
_PAINTED = 16  # up to this many pixels for each one asked about, a picture of all pixels is quicker than descending


class Nodes(NamedTuple):
    """Every cell of a tree of cuts that was cut or came of a cut, by number: children follow each other."""

    cells: Cells
    child: Ints  # the place of the first of two children; -1 where there is no cut
    axis: NDArray[np.int8]
    at: Ints
    rectangles: Rectangles


@dataclass(frozen=True, eq=False)
class BinaryPartition(EqualByFields, PixelTree):
    """Binary trees of rectangles over the base cells, the *pixels*, of a quadtree; one tree in each frame.

    `frames` are the pixels of the roots, int64[frames, 4] (west, north, east, south; of one frame, all of the square).
    `cells` names every cell that is cut, ascending; `axis` says in which direction, int8[cells], and `at` on which
    line between pixels, counted from the west or the north, int64[cells]. Several frames may overlap, so
    `positions_in` takes the frame of each pixel.

    Cell frame << 44 | path: the root's path is 1, and path p is cut into 2p (west or north) and 2p + 1. So numbers
    stay what they are when the tree grows, and so do spans: every tree is 42 levels deep, and a cell that is not cut
    is its own only child, again and again. A name is the way from the root, 0 and 1.

    >>> tree = BinaryPartition.uncut(Quadtree.world(depth=10))
    >>> tree = tree.cut(np.array([1], dtype=np.uint64), np.array([0]), np.array([300]))
    >>> nairobi = tree.cell_at({"lon": np.array([36.8]), "lat": np.array([-1.3])}, 1)
    >>> tree.names(nairobi), tree.leaves >> np.uint64(41)
    (['1'], array([2, 3], dtype=uint64))
    """

    base: Quadtree
    frames: Ints
    cells: Cells
    axis: NDArray[np.int8]
    at: Ints
    travels_once = True  # see `codec`: a run asks of one tree again and again

    def __post_init__(self) -> None:
        check_fields(self)
        for name, kind in (("frames", np.int64), ("cells", np.uint64), ("axis", np.int8), ("at", np.int64)):
            own_array(self, name, kind)
        pixels = 1 << self.base.depth
        if self.frames.ndim != 2 or self.frames.shape[1:] != (4,) or not 0 < len(self.frames) < 1 << 19:
            raise InputError(
                f"frames must be west, north, east and south of 1 to 524,287 roots; found {self.frames.shape}"
            )
        west, north, east, south = self.frames.T
        if not ((west >= 0) & (north >= 0) & (west < east) & (north < south) & (east <= pixels)).all():
            raise InputError(f"the frames of a tree of cuts must lie in the {pixels} × {pixels} pixels of its square")
        if south.max() > pixels or not self.cells.shape == self.axis.shape == self.at.shape == (len(self.cells),):
            raise InputError("every cut needs a cell, an axis and a place, and every frame must lie in the square")
        if (self.cells[1:] <= self.cells[:-1]).any() or not np.isin(self.axis, (ACROSS, DOWN)).all():
            raise InputError(
                "cells to cut must be distinct and in ascending order, and each must be cut across (0) or down (1)"
            )
        _ = self.nodes

    @classmethod
    def uncut(cls, square: Quadtree) -> "BinaryPartition":
        """The square of a quadtree, not cut yet."""
        side = 1 << square.depth
        none = np.zeros(0, dtype=np.int64)
        return cls(square, np.array([[0, 0, side, side]]), none.astype(np.uint64), none.astype(np.int8), none)

    def cut(self, cells: Cells, axis: NDArray[Any], at: NDArray[Any]) -> "BinaryPartition":
        """The same tree with more cells cut, in any order; a cut may lie in the half that another one makes."""
        every, order = np.concatenate([self.cells, cells]), np.argsort(np.concatenate([self.cells, cells]))
        axis, at = np.concatenate([self.axis, axis]), np.concatenate([self.at, at])
        grown = BinaryPartition(self.base, self.frames, every[order], axis[order], at[order])
        self.__dict__.pop("nodes", None)  # a tree that has grown is seldom asked again, and a run keeps all of them
        return grown

    def extends(self, other: object) -> bool:
        """Whether this tree is the other one, with perhaps more cuts: then every cell of that is the same cell here."""
        if not isinstance(other, BinaryPartition) or not self._same_ground(other):
            return False
        at = np.searchsorted(self.cells, other.cells)
        if len(other.cells) and at.max() >= len(self.cells):
            return False
        pairs = ((self.cells, other.cells), (self.axis, other.axis), (self.at, other.at))
        return all(np.array_equal(mine[at], theirs) for mine, theirs in pairs)

    def renumbered(self, other: "BinaryPartition") -> tuple[Cells, Cells]:  # noqa: ARG002 - whichever it is
        """None: a pixel stays below the cell that it was in, and the span of that has all numbers below it."""
        none = np.zeros(0, dtype=np.uint64)
        return none, none

    @property
    def depth(self) -> int:
        """Always 42, so that numbers stay what they are while a tree grows."""
        return DEEPEST

    @property
    def root(self) -> Cells:
        """One cell a frame."""
        roots: Cells = (np.arange(len(self.frames), dtype=np.uint64) << FRAME) | _ONE
        return roots

    @cached_property
    def nodes(self) -> Nodes:
        """All cells that were cut or came of a cut, with their rectangles: O(cells · log cells)."""
        from hazemap.spatial.pixel_kernels import rectangles_of

        frame, path = self.cells & ~_PATHS, self.cells & _PATHS
        halves = np.concatenate([frame | path << _ONE, frame | path << _ONE | _ONE])
        cells = np.sort(np.concatenate([self.root, halves]))
        cut = np.searchsorted(cells, self.cells)
        if (cells[np.minimum(cut, len(cells) - 1)] != self.cells).any():
            raise InputError("some of the numbers to cut are not cells of this tree")
        if len(self.cells) and path_length(cells).max() > DEEPEST:
            raise InputError(f"a tree of cuts has at most {DEEPEST} levels; cut it less often")
        child, axis, at = np.full(len(cells), -1), np.zeros(len(cells), np.int8), np.zeros(len(cells), np.int64)
        child[cut] = np.searchsorted(cells, frame | path << _ONE)
        axis[cut], at[cut] = self.axis, self.at
        lines = np.zeros((4, len(cells)), dtype=np.int64)
        lines[:, np.searchsorted(cells, self.root)] = self.frames.T
        if not rectangles_of(np.arange(len(cells)), child, axis, at, *lines):
            raise InputError("every cut must lie inside the cell that it cuts")
        return Nodes(cells, child, axis, at, Rectangles(*lines))

    @cached_property
    def ends(self) -> Cells:
        """The cells that are not cut, in the order of their spans."""
        found = self.nodes.cells[self.nodes.child < 0]
        return found[np.argsort(_deep(found))]

    @cached_property
    def leaves(self) -> Cells:
        """The base cells, in ascending order: what cells that are not cut are called at the deepest level."""
        return _deep(self.ends)

    def positions(self, base: Cells) -> Ints:
        """For each base cell of the quadtree, which of `leaves` holds it in the only frame; -1 for none."""
        if len(self.frames) != 1:
            raise InputError(f"a pixel may be in each of {len(self.frames)} frames: ask `positions_in`")
        from hazemap.spatial.pixel_kernels import columns_and_rows

        x, y = columns_and_rows(base, self.base.depth)
        return self.positions_in(np.zeros(len(base), dtype=np.int64), x, y)

    def positions_in(self, frame: Ints, x: Ints, y: Ints) -> Ints:
        """For each pixel of a frame which of `leaves` holds it; -1 outside the frame: O(pixels · depth)."""
        from hazemap.spatial.pixel_kernels import descended, painted, seen

        nodes, side = self.nodes, 1 << self.base.depth
        place = np.full(len(nodes.cells), -1)
        place[np.searchsorted(nodes.cells, self.ends)] = np.arange(len(self.ends))
        if len(self.frames) == 1 and side * side <= _PAINTED * len(x):
            uncut = nodes.child < 0
            return seen(painted(side, place[uncut], *(lines[uncut] for lines in nodes.rectangles)), x, y)
        start = np.searchsorted(nodes.cells, self.root)[frame]
        found = place[descended(x, y, start, nodes.child, nodes.axis, nodes.at)]
        west, north, east, south = self.frames[frame].T
        return np.where((west <= x) & (x < east) & (north <= y) & (y < south), found, -1)

    def children(self, cells: Cells) -> Cells:
        """The halves of each cell; itself, a level deeper, where it is not cut."""
        cells = np.asarray(cells, dtype=np.uint64)
        frame, path = cells & ~_PATHS, cells & _PATHS
        halves = np.stack([frame | path << _ONE, frame | path << _ONE | _ONE], axis=1)
        cut = np.isin(cells, self.cells)
        found: Cells = halves.ravel()[np.stack([np.ones(len(cells), bool), cut], axis=1).ravel()]
        return found

    def parent(self, cells: Cells) -> Cells:
        """The cell that each is half of."""
        cells = np.asarray(cells, dtype=np.uint64)
        halved: Cells = (cells & ~_PATHS) | ((cells & _PATHS) >> _ONE)
        return halved

    def level(self, cells: Cells) -> Ints:
        """The number of cuts above; below 0 for numbers that are not cells."""
        cells = np.asarray(cells, dtype=np.uint64)
        levels = path_length(cells)
        known = (cells & _PATHS > 0) & (cells >> FRAME < len(self.frames)) & (levels <= DEEPEST)
        end = self._end(np.where(known, cells, _ONE))
        apart = levels - path_length(end)
        up, down = np.maximum(-apart, 0).astype(np.uint64), np.maximum(apart, 0).astype(np.uint64)
        same_way = ((end & _PATHS) >> up) << down == cells & _PATHS
        return np.where(known & same_way & (end >> FRAME == cells >> FRAME), levels, -1)

    def span(self, cells: Cells) -> tuple[Cells, Cells]:
        """First and last number that stand for each cell: what its descendants would be if all were cut."""
        real = self._real(cells)
        rise = (DEEPEST - path_length(real)).astype(np.uint64)
        first = _deep(real)
        return first, first + (_ONE << rise) - _ONE

    def cell_at(self, columns: Columns, level: int) -> Cells:
        """The cell of each row at this level; `NOWHERE` outside the frame, or for NaN."""
        if not 0 <= level <= DEEPEST:
            raise InputError(f"a tree of cuts has levels 0 to {DEEPEST}; found {level}")
        found = self.positions(self.base.cell_at(columns, self.base.depth))
        deep = np.append(self.leaves, NOWHERE)[found]
        cells: Cells = (deep & ~_PATHS) | ((deep & _PATHS) >> np.uint64(DEEPEST - level))
        return cells

    def rectangles(self, cells: Cells) -> Rectangles:
        """The pixels of each cell."""
        cells = np.asarray(cells, dtype=np.uint64)
        at = np.searchsorted(self.nodes.cells, cells)
        if (self.nodes.cells[np.minimum(at, len(self.nodes.cells) - 1)] != cells).any():  # deeper names of some
            at = np.searchsorted(self.nodes.cells, self._real(cells))
        return Rectangles(*(lines[at] for lines in self.nodes.rectangles))

    def names(self, cells: Cells) -> list[str]:
        """The way from the root, 0 and 1; with several frames, the number of the frame and a point before it."""
        cells = np.asarray(cells, dtype=np.uint64)
        if (self.level(cells) < 0).any():
            raise InputError("some of these numbers are not cells of this tree")
        ways = [bin(path)[3:] or "root" for path in (cells & _PATHS).tolist()]
        if len(self.frames) == 1:
            return ways
        return [f"{frame}.{way}" for frame, way in zip((cells >> FRAME).tolist(), ways, strict=True)]

    def named(self, names: list[str]) -> Cells:
        """The cells with these names."""
        matches = [_PATH_NAME.fullmatch(name) for name in names]
        numbers = [
            0 if match is None else int(match[1] or 0) << 44 | int("1" + match[2].replace("root", ""), 2)
            for match in matches
        ]
        cells = np.array(numbers, dtype=np.uint64)
        strange = (self.level(cells) < 0) if len(cells) else np.zeros(0, bool)
        if strange.any():
            found = names[int(np.argmax(strange))]
            raise InputError(f"a cell of this tree is 'root' or the way to it, such as '0110'; found {found!r}")
        return cells

    def _same_ground(self, other: "BinaryPartition") -> bool:
        return self.base == other.base and np.array_equal(self.frames, other.frames)

    def _real(self, cells: Cells) -> Cells:
        """The cell itself, or the uncut cell that it is a deeper name of."""
        cells = np.asarray(cells, dtype=np.uint64)
        end = self._end(cells)
        return np.where(path_length(cells) > path_length(end), end, cells)

    def _end(self, cells: Cells) -> Cells:
        """The first uncut cell in each cell, or the one around it."""
        return self.ends[np.clip(np.searchsorted(self.leaves, _deep(cells), "right") - 1, 0, None)]


def path_length(cells: Cells) -> Ints:
    """The place of the leading bit of each path: how many cuts lie above."""
    return np.frexp((cells & _PATHS).astype(np.float64))[1].astype(np.int64) - 1


def _deep(cells: Cells) -> Cells:
    """The first number at the deepest level below each cell."""
    rise = np.clip(DEEPEST - path_length(cells), 0, None).astype(np.uint64)
    deep: Cells = (cells & ~_PATHS) | ((cells & _PATHS) << rise)
    return deep


_GRID_NAME = re.compile(r"root|(0|[1-9][0-9]{0,7})-(0|[1-9][0-9]{0,7})(?:-(0|[1-9][0-9]{0,7})-(0|[1-9][0-9]{0,7}))?")


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
            match = _GRID_NAME.fullmatch(name)
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
