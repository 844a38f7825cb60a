"""Rectangles split in two, recursively, wherever that is best: kd-trees and homogeneous trees."""

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Columns
from hazemap.errors import InputError
from hazemap.field_types import EqualByFields, check_fields, own_array
from hazemap.machine_code.arrays import Ints
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_tree import PixelTree, Rectangles

DEEPEST = 42
"""Levels of every such tree: cells that are not cut stand there as their own only descendants."""

FRAME = np.uint64(44)
"""Bits of a cell's number that say which way was taken from the root of its frame; those above name the frame."""

ACROSS, DOWN = 0, 1
"""The axis of a cut: between west and east, or between north and south."""

NAME = re.compile(r"(?:(0|[1-9][0-9]{0,5})\.)?(root|[01]{1,42})")
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
        matches = [NAME.fullmatch(name) for name in names]
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
