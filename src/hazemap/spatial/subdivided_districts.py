"""Districts, some of them split into rectangles: states and counties above, homogeneous trees below.

What is counted before it is known how districts will be split are squares of a web map clipped to districts.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Columns
from hazemap.errors import InputError
from hazemap.field_types import EqualByFields, check_fields, own_array
from hazemap.machine_code.arrays import Ints, consecutive
from hazemap.spatial.district_layers import BETWEEN
from hazemap.spatial.districts import PATH_BITS, Districts
from hazemap.spatial.quadtree import Quadtree
from hazemap.spatial.rectangle_trees import DEEPEST, BinaryPartition, Rectangles, bounds, path_length

DEEPEST_SQUARES = 21
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
        if not 0 <= self.square.depth <= DEEPEST_SQUARES:
            raise InputError(
                f"districts can be cut by at most {DEEPEST_SQUARES} levels of squares; found {self.square.depth}"
            )

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


@dataclass(frozen=True, eq=False)
class SubdividedDistricts(EqualByFields):
    """A tree of districts, in which `dynamic` ones (ascending, none inside another) are roots of trees of cuts.

    Frame f of `cuts` is the district dynamic[f], so its cells are district << 44 | path as well; None while none is
    dynamic. Districts inside a dynamic one are no cells of this tree. Every district that could be cut but is not is
    its own only child, again and again, down to level 42. The tree may grow: more districts may become dynamic as long
    as none inside them was asked for, and more rectangles be cut; no number changes its meaning.

    >>> import geopandas, shapely
    >>> from hazemap.spatial.districts import Districts
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> halves = [shapely.box(0, 0, 1, 1), shapely.box(1, 0, 2, 1)]
    >>> states = geopandas.GeoDataFrame({"name": ["West", "East"]}, geometry=halves, crs="EPSG:4326")
    >>> tree = SubdividedDistricts.uncut(DistrictQuadtree(Districts.of(states), Quadtree.world(depth=12)))
    >>> east = tree.base.districts.named(["East"])
    >>> cut = tree.turned(east).cut(east, np.array([1]), np.array([2045]))
    >>> cut.names(cut.children(cut.children(cut.root)))
    ['West > 0', 'East > 0', 'East > 1']
    """

    base: DistrictQuadtree
    dynamic: Cells
    cuts: BinaryPartition | None

    travels_once = True  # see `codec`

    def __post_init__(self) -> None:
        check_fields(self)
        own_array(self, "dynamic", np.uint64)
        dynamic = self.dynamic
        frames = 0 if self.cuts is None else len(self.cuts.frames)
        if (self.cuts is not None and self.cuts.base != self.base.square) or frames != len(dynamic):
            raise InputError("there must be one frame for each dynamic district, inside the root square")
        if (self.base.districts.level(dynamic) < 0).any():
            raise InputError("some of these numbers are not districts of this tree")
        if (dynamic[1:] <= self._last[:-1]).any():
            raise InputError("districts to cut must be in ascending order, and none may lie inside another")

    @classmethod
    def uncut(cls, district_squares: DistrictQuadtree) -> "SubdividedDistricts":
        """The districts, none of them dynamic."""
        return cls(district_squares, np.zeros(0, dtype=np.uint64), None)

    def turned(self, districts: Cells) -> "SubdividedDistricts":
        """The same tree with more districts dynamic, not cut yet; their frames hold all of them."""
        if not len(districts):
            return self
        dynamic = np.concatenate([self.dynamic, np.asarray(districts, dtype=np.uint64)])
        order = np.argsort(dynamic)
        frames = self.base.frames(districts)
        if self.cuts is None:
            none: NDArray[Any] = np.zeros(0, dtype=np.int64)
            return SubdividedDistricts(
                self.base, dynamic[order], BinaryPartition(self.base.square, frames[order], none, none, none)
            )
        place = np.argsort(order).astype(np.uint64)  # where each frame goes
        cells = place[(self.cuts.cells >> PATH_BITS).astype(np.int64)] << PATH_BITS | self.cuts.cells & _PATHS
        by = np.argsort(cells)
        frames = np.concatenate([self.cuts.frames, frames])[order]
        cuts = BinaryPartition(self.base.square, frames, cells[by], self.cuts.axis[by], self.cuts.at[by])
        return SubdividedDistricts(self.base, dynamic[order], cuts)

    def cut(self, cells: Cells, axis: NDArray[Any], at: NDArray[Any]) -> "SubdividedDistricts":
        """The same tree with more cells of dynamic districts cut; see `BinaryPartition.cut`."""
        return SubdividedDistricts(self.base, self.dynamic, self._forest.cut(self._inner(cells), axis, at))

    def extends(self, other: object) -> bool:
        """Whether this tree is the other one, with perhaps more districts dynamic and more cuts."""
        if not isinstance(other, SubdividedDistricts):
            return False
        if id(other) not in self._before:  # who is asked about is kept, so its id stays its own
            self._before[id(other)] = other, self._extends(other)
        return self._before[id(other)][1]

    def renumbered(self, other: "SubdividedDistricts") -> tuple[Cells, Cells]:
        """The spans of the districts that became dynamic since; all of their points had and have numbers in these."""
        return self.base.districts.span(self.dynamic[~_among(self.dynamic, other.dynamic)])

    @cached_property
    def _before(self) -> "dict[int, tuple[SubdividedDistricts, bool]]":
        """A cache: whether this tree extends others."""
        return {}

    def _extends(self, other: "SubdividedDistricts") -> bool:
        if self.base != other.base or not _among(other.dynamic, self.dynamic).all():
            return False
        return other.cuts is None or other._grown(self.dynamic, self._forest)

    def _grown(self, dynamic: Cells, cuts: BinaryPartition) -> bool:
        """Whether a forest, in which frame f is the district dynamic[f], has all the cuts of this tree."""
        mine = self._outer(self._forest.cells)
        theirs = dynamic[(cuts.cells >> PATH_BITS).astype(np.int64)] & ~_PATHS | cuts.cells & _PATHS
        at = np.minimum(np.searchsorted(theirs, mine), max(len(theirs) - 1, 0))
        if not len(mine):
            return True
        same = len(theirs) and np.array_equal(theirs[at], mine)
        return bool(
            same and np.array_equal(cuts.axis[at], self._forest.axis) and np.array_equal(cuts.at[at], self._forest.at)
        )

    @property
    def depth(self) -> int:
        """Always 42, so that numbers stay what they are while a tree grows."""
        return DEEPEST

    @property
    def root(self) -> Cells:
        """All districts together."""
        return self.base.root

    @cached_property
    def ends(self) -> Cells:
        """The cells that are not cut, in the order of their spans."""
        finest, last = self.base.districts.finest, self._last
        around = np.searchsorted(self.dynamic, finest, "right") - 1
        found = finest[(around < 0) | (finest > np.append(last, 0)[around])]
        if self.cuts is not None:
            found = np.concatenate([found, self._outer(self.cuts.ends)])
        return found[np.argsort(self._deep(found))]

    @cached_property
    def leaves(self) -> Cells:
        """The base cells, in ascending order: what cells that are not cut are called at the deepest level."""
        return self._deep(self.ends)

    def positions(self, base: Cells) -> Ints:
        """For each district square which of `leaves` holds it; -1 for `NOWHERE`: O(district squares · cuts above) or
        less.
        """
        found = np.full(len(base), -1)
        frame = self._frames_of(base)
        held, others = np.flatnonzero(frame >= 0), np.flatnonzero((frame < 0) & (base != NOWHERE))
        found[others] = np.searchsorted(self.leaves, self._deep((base[others] & ~_PATHS) | _ONE))
        if self.cuts is not None:
            from hazemap.spatial.pixel_kernels import descended

            nodes = self.cuts.nodes
            place = np.full(len(nodes.cells), -1)
            uncut = np.flatnonzero(nodes.child < 0)
            place[uncut] = np.searchsorted(self.leaves, self._deep(self._outer(nodes.cells[uncut])))
            start = np.searchsorted(nodes.cells, self.cuts.root)
            x, y = self.base.pixels(base[held])
            found[held] = place[descended(x, y, start[frame[held]], nodes.child, nodes.axis, nodes.at)]
        return found

    def _frames_of(self, base: Cells) -> Ints:
        """The dynamic district of each district square; -1 for none."""
        found = np.full(len(base), -1)
        if (base[1:] >= base[:-1]).all():
            first, last = self.base.districts.span(self.dynamic)
            runs = np.searchsorted(base, first).tolist(), np.searchsorted(base, last, "right").tolist()
            for number, (begin, end) in enumerate(zip(*runs, strict=True)):
                found[begin:end] = number
            return found
        frame: Ints = np.asarray(np.searchsorted(self.dynamic, (base & ~_PATHS) | _ONE, "right") - 1)
        held = np.asarray(frame >= 0)
        held[held] = base[held] <= self._last[frame[held]]
        return np.where(held, frame, -1)

    def children(self, cells: Cells) -> Cells:
        """The districts in each, the halves of a cell that was cut, or the cell itself a level deeper."""
        cells = np.asarray(cells, dtype=np.uint64)
        halves = np.stack([cells & ~_PATHS | (cells & _PATHS) << _ONE] * 2, axis=1)
        halves[:, 1] |= _ONE
        upper = self._static(cells)
        number = np.where(_among(cells, self._cut), 2, 1)
        number[upper] = self.base.districts.fan_out(cells[upper])
        found = np.empty(number.sum(), dtype=np.uint64)
        owner, inner = np.repeat(np.arange(len(cells)), number), consecutive(np.zeros_like(number), number)
        found[upper[owner]] = self.base.districts.children(cells[upper])
        lower = ~upper[owner]
        found[lower] = halves[owner[lower], inner[lower]]
        return found

    def parent(self, cells: Cells) -> Cells:
        """The cell that each is half of, or the district around."""
        cells = np.asarray(cells, dtype=np.uint64)
        found = cells & ~_PATHS | (cells & _PATHS) >> _ONE
        upper = cells & _PATHS == _ONE
        found[upper] = self.base.districts.parent(cells[upper])
        return found

    def level(self, cells: Cells) -> Ints:
        """The number of districts and cuts above; -1 for numbers that are not cells."""
        cells = np.asarray(cells, dtype=np.uint64)
        district, path = (cells & ~_PATHS) | _ONE, cells & _PATHS
        above = self.base.districts.level(district)
        around = np.searchsorted(self.dynamic, district, "right") - 1
        hidden = (around >= 0) & (district <= np.append(self._last, NOWHERE)[around])
        hidden &= district != np.append(self.dynamic, NOWHERE)[around]
        known = (above >= 0) & ~hidden & (path > 0) & (above + path_length(cells) <= DEEPEST)
        end = self._end(np.where(known & (path != _ONE), cells, self.ends[0]))
        apart = path_length(cells) - path_length(end)
        up, down = np.maximum(-apart, 0).astype(np.uint64), np.maximum(apart, 0).astype(np.uint64)
        same_way = (end & ~_PATHS == cells & ~_PATHS) & (((end & _PATHS) >> up) << down == path)
        return np.where(known & ((path == _ONE) | same_way), above + path_length(cells), -1)

    def span(self, cells: Cells) -> tuple[Cells, Cells]:
        """The range of its descendants if all were cut; at the ends of a district, all of the district's."""
        cells = np.asarray(cells, dtype=np.uint64)
        district = (cells & ~_PATHS) | _ONE
        begin, end = self.base.districts.span(district)
        real = self._real(cells)
        path, length = real & _PATHS, path_length(real).astype(np.uint64)
        rise = (DEEPEST - self.base.districts.level(district)).astype(np.uint64) - length
        low = path << rise
        leftmost, rightmost = path == _ONE << length, path + _ONE == _ONE << (length + _ONE)
        first = np.where(leftmost, begin, cells & ~_PATHS | low)
        last = np.where(rightmost, end, (cells & ~_PATHS | low) + (_ONE << rise) - _ONE)
        return first, last

    def cell_at(self, columns: Columns, level: int) -> Cells:
        """The cell of each row at this level; `NOWHERE` in no district, or for NaN."""
        if not 0 <= level <= DEEPEST:
            raise InputError(f"districts that are cut have levels 0 to {DEEPEST}; found {level}")
        found = self.positions(self.base.cell_at(columns, self.base.depth))
        which, at = np.unique(found, return_inverse=True)
        deep = np.append(self.leaves, NOWHERE)[which]
        cells, upper = deep & ~_PATHS | (deep & _PATHS) >> np.uint64(DEEPEST - level), deep & _PATHS
        upper = (upper >> np.uint64(DEEPEST - level) == 0) & (which >= 0)  # the district itself is deeper
        cells[upper] = (deep[upper] & ~_PATHS) | _ONE
        while (down := upper & (self.base.districts.level(cells) > level)).any():
            cells[down] = self.base.districts.parent(cells[down])
        return np.asarray(cells[at])

    def rectangles(self, cells: Cells) -> Rectangles:
        """The pixels of each cell of a dynamic district."""
        return self._forest.rectangles(self._inner(cells))

    def area(self, cells: Cells) -> NDArray[np.float64]:
        """Square metres of each on the WGS 84 ellipsoid; 0 for a rectangle beside its district."""
        real = self._real(np.asarray(cells, dtype=np.uint64))
        found, inner = np.empty(len(cells)), real & _PATHS != _ONE
        found[~inner] = self.base.districts.area(real[~inner])
        found[inner] = self.base.districts.areas_inside((real[inner] & ~_PATHS) | _ONE, self._boxes(real[inner]))
        return found

    def outlines(self, cells: Cells) -> NDArray[Any]:
        """The ground of each district, and what of each rectangle lies in its district."""
        real = self._real(np.asarray(cells, dtype=np.uint64))
        found, inner = np.empty(len(cells), dtype=object), real & _PATHS != _ONE
        found[~inner] = self.base.districts.outlines(real[~inner])
        found[inner] = self.base.districts.parts((real[inner] & ~_PATHS) | _ONE, self._boxes(real[inner]))
        return found

    def _boxes(self, cells: Cells) -> NDArray[np.float64]:
        """West, south, east and north of rectangles, before they are cut at the border of their district."""
        if not len(cells):
            return np.empty((0, 4))
        return np.column_stack(bounds(self.base.square, self.rectangles(cells)))

    def names(self, cells: Cells) -> list[str]:
        """The path to the district, then the way from its root, 0 and 1."""
        cells = np.asarray(cells, dtype=np.uint64)
        if (self.level(cells) < 0).any():
            raise InputError("some of these numbers are not cells of this tree")
        paths = self.base.districts.names((cells & ~_PATHS) | _ONE)
        ways = [bin(path)[3:] for path in (cells & _PATHS).tolist()]
        return [path + BETWEEN + way if way else path for path, way in zip(paths, ways, strict=True)]

    def named(self, names: list[str]) -> Cells:
        """The cells with these names."""
        numbers = []
        for name, known in zip(names, self.base.districts.known(names), strict=True):
            path, _, way = (name, "", "") if known else name.rpartition(BETWEEN)
            whole = known or (len(way) <= DEEPEST and bool(way) and set(way) <= {"0", "1"})
            cell = self.base.districts.named([path if whole else name])[0]
            numbers.append((cell & ~_PATHS) | np.uint64(int("1" + way, 2)))
        cells = np.array(numbers, dtype=np.uint64)
        if len(cells) and (strange := self.level(cells) < 0).any():
            raise InputError(f"this district has no such cut; found {names[int(np.argmax(strange))]!r}")
        return cells

    def place(self, name: str) -> tuple[Any, Cells] | None:
        """The outline of a district inside a dynamic one, which is no cell, and that one; None for any other name."""
        if not self.base.districts.known([name])[0]:
            return None
        district = self.base.districts.named([name])
        if self.level(district)[0] >= 0:
            return None
        around = self.dynamic[np.searchsorted(self.dynamic, district, "right") - 1]  # one district
        return self.base.districts.outlines(district)[0], around

    @property
    def _forest(self) -> BinaryPartition:
        if self.cuts is None:
            raise InputError("none of these districts is dynamic, so none can be cut into rectangles")
        return self.cuts

    @cached_property
    def _cut(self) -> Cells:
        """The cells that were cut."""
        return self._outer(self.cuts.cells) if self.cuts is not None else np.zeros(0, dtype=np.uint64)

    @cached_property
    def _last(self) -> Cells:
        """The last number of each dynamic district."""
        return self.base.districts.span(self.dynamic)[1]

    def _static(self, cells: Cells) -> NDArray[np.bool_]:
        """Whether cells are districts with districts in them."""
        upper = (cells & _PATHS == _ONE) & ~_among(cells, self.dynamic)
        upper[upper] = self.base.districts.level(cells[upper]) < self.base.districts.depth
        return np.asarray(upper)

    def _inner(self, cells: Cells) -> Cells:
        """Cells of dynamic districts as the forest calls them."""
        district = (np.asarray(cells, dtype=np.uint64) & ~_PATHS) | _ONE
        frame = np.searchsorted(self.dynamic, district)
        if not _among(district, self.dynamic).all():
            raise InputError("only dynamic districts can be cut into rectangles; found cells of others")
        return frame.astype(np.uint64) << PATH_BITS | np.asarray(cells, dtype=np.uint64) & _PATHS

    def _outer(self, cells: Cells) -> Cells:
        """Cells of the forest as this tree calls them."""
        district = self.dynamic[(cells >> PATH_BITS).astype(np.int64)]
        return district & ~_PATHS | cells & _PATHS

    def _real(self, cells: Cells) -> Cells:
        """The cell itself, or the uncut one that it is a deeper name of."""
        real, inner = cells.copy(), cells & _PATHS != _ONE
        end = self._end(cells[inner])
        real[inner] = np.where(path_length(cells[inner]) > path_length(end), end, cells[inner])
        return real

    def _end(self, cells: Cells) -> Cells:
        """The first uncut cell in each cell of a tree of cuts, or the one around it."""
        return self.ends[np.clip(np.searchsorted(self.leaves, self._deep(cells), "right") - 1, 0, None)]

    def _deep(self, cells: Cells) -> Cells:
        """The first number at the deepest level below each cell."""
        rise = DEEPEST - self.base.districts.level((cells & ~_PATHS) | _ONE) - path_length(cells)
        deep: Cells = cells & ~_PATHS | (cells & _PATHS) << rise.astype(np.uint64)
        return deep


def _among(cells: Cells, ascending: Cells) -> NDArray[np.bool_]:
    """Whether cells are among these; `np.isin` sorts them first."""
    if not len(ascending):
        return np.zeros(len(cells), dtype=np.bool_)
    found: NDArray[np.bool_] = ascending[np.minimum(np.searchsorted(ascending, cells), len(ascending) - 1)] == cells
    return found
