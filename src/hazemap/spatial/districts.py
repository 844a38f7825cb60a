"""Named polygons from coarse to fine: a country, its states, their counties, the cities in these."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Columns
from hazemap.errors import InputError
from hazemap.field_types import check_fields, own_array
from hazemap.machine_code.arrays import consecutive
from hazemap.spatial.bounding_box import coordinates
from hazemap.spatial.district_layers import BETWEEN, GRAIN, DistrictLayer, clipped, left_over, nested
from hazemap.spatial.ordered_polygons import Polygons, pack, unpack

if TYPE_CHECKING:
    from geopandas import GeoDataFrame

PATH_BITS = np.uint64(44)
"""A cell is a district's place in the order << 44 | 1: trees that cut a district further use the lower bits."""

MOST_DISTRICTS = (1 << 20) - 1

_ONE = np.uint64(1)
_PATH = (_ONE << PATH_BITS) - _ONE


@dataclass(frozen=True, eq=False)
class Districts:
    """A tree of named polygons under one root; `of` makes one from files.

    Districts stand in preorder, each before those in it: `labels` are their names, `levels` (int64) how deep they are,
    `shapes` their polygons (`polygons.pack`), empty for the root and for what is left over of a district. A point
    belongs to the finest district that holds it, and to all that this one lies in, whatever their own polygons say:
    so children tile their parent, and two files need not agree on a border. On a border the first district in the
    order owns a point. What no district holds is `NOWHERE`. A name is the path to a district from the first level on.

    >>> import geopandas, shapely
    >>> boxes = [shapely.box(0, 0, 2, 2), shapely.box(2, 0, 3, 2)]
    >>> states = geopandas.GeoDataFrame({"name": ["East", "West"]}, geometry=boxes[::-1], crs="EPSG:4326")
    >>> town = geopandas.GeoDataFrame({"name": ["Town"]}, geometry=[shapely.box(0, 0, 1, 1)], crs="EPSG:4326")
    >>> tree = Districts.of(states, town)
    >>> tree.names(tree.cell_at({"lon": np.array([0.5, 1.5, 2.5]), "lat": np.array([0.5, 0.5, 0.5])}, 2))
    ['West > Town', 'West > unincorporated', 'East > unincorporated']
    """

    labels: tuple[str, ...]
    levels: NDArray[np.int64]
    shapes: str

    travels_once = True  # see `codec`

    def __post_init__(self) -> None:
        check_fields(self)
        own_array(self, "levels", np.int64)
        levels, count = self.levels, len(self.labels)
        if levels.shape != (count,) or not 2 <= count <= MOST_DISTRICTS or len(self._shapes) != count:
            raise InputError(
                f"there must be 1 to {MOST_DISTRICTS - 1:,} below a root, each with a name, a level and a polygon; "
                f"found {count - 1:,} with {levels.size - 1:,} levels and {len(self._shapes) - 1:,} polygons"
            )
        steps = np.diff(levels)
        leaves = levels[np.append(steps <= 0, True)]
        if levels[0] != 0 or levels[1:].min() < 1 or steps.max() > 1 or (leaves < self.depth).any():
            raise InputError("each district must stand before those inside it, and all branches must be equally deep")
        odd = [label for label in self.labels if not label.strip() or BETWEEN.strip() in label or _halved(label)]
        if odd:
            raise InputError(f"the name of a district must be text without {BETWEEN.strip()!r}; found {odd[0]!a}")
        if len(self._place) < count:
            seen: set[str] = set()
            twice = next(path for path in self._paths if path in seen or seen.add(path))  # type: ignore[func-returns-value]
            raise InputError(
                f"two districts are called {twice!r}: choose a column of names in which those of one parent differ, "
                "or join two columns, such as name+kind"
            )

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Districts) and self._digest == other._digest)

    def __hash__(self) -> int:
        return hash(self._digest)

    @staticmethod
    def decoding_work(fields: Mapping[str, Any]) -> int:
        """Bytes that unpacking the polygons takes, about: see `codec.Limits`."""
        length = fields["shapes"].partition(":")[0]
        return 4 * int(length) if length.isascii() and length.isdecimal() and len(length) < 12 else 1 << 62

    @classmethod
    def of(cls, *layers: "DistrictLayer | str | os.PathLike[str] | GeoDataFrame", whole: str = "all") -> "Districts":
        """From layers of polygons, coarse to fine; `whole` is the name of the root, which is all of them together.

        `FileError` and `InputError` say what keeps files from being districts: overlaps within a layer, borders that
        cross themselves, two of one name, no parent. O(vertices), some seconds for 3,000 counties.
        """
        read = [(layer if isinstance(layer, DistrictLayer) else DistrictLayer(layer)).read() for layer in layers]
        found = nested(read, whole)
        return cls(found.labels, found.levels, pack(found.shapes))

    @property
    def depth(self) -> int:
        """The number of layers."""
        return int(self.levels.max())

    @property
    def root(self) -> Cells:
        """All districts together."""
        return self._cells(np.zeros(1, dtype=np.int64))

    def children(self, cells: Cells) -> Cells:
        """The districts one level deeper in each, in their order."""
        return self._cells(self._born[consecutive(self._begin[self._at(cells)], self.fan_out(cells))])

    def fan_out(self, cells: Cells) -> NDArray[np.int64]:
        """The number of children of each."""
        return np.diff(self._begin)[self._at(cells)]

    def parent(self, cells: Cells) -> Cells:
        """The district one level up; `NOWHERE` for the root."""
        above = self._parents[self._at(cells)]
        return np.where(above >= 0, self._cells(above), NOWHERE)

    def level(self, cells: Cells) -> NDArray[np.int64]:
        """The depth of each, 0 for the root; -1 for numbers that are not cells."""
        numbers = np.asarray(cells, dtype=np.uint64)
        place = np.minimum(numbers >> PATH_BITS, np.uint64(len(self.labels) + 1))
        return np.where(numbers & _PATH == _ONE, self._numbered[place], -1)

    def span(self, cells: Cells) -> tuple[Cells, Cells]:
        """From the end of the leaf before its first leaf to the end of its last leaf: spans tile."""
        at, leaves = self._at(cells), self._leaves
        first = np.searchsorted(leaves, at)  # a district stands before its first leaf
        last = leaves[np.searchsorted(leaves, self._until[at]) - 1]
        before = np.where(first > 0, leaves[np.maximum(first - 1, 0)], -1)
        return (before + 2).astype(np.uint64) << PATH_BITS, ((last + 2).astype(np.uint64) << PATH_BITS) - _ONE

    def cell_at(self, columns: Columns, level: int) -> Cells:
        """The district of each row at this level; `NOWHERE` where there is none, or for NaN."""
        if not 0 <= level <= self.depth:
            raise InputError(f"these districts have levels 0 to {self.depth}; found {level}")
        lon, lat = coordinates(columns)
        order, polygons = self._ordered
        owner = np.append(np.where(self._home[order] >= 0, self._above[level][self._home[order]], -1), -1)
        at = owner[polygons.first_holding(lon, lat)]  # -1, for none, is the last place
        return np.where(at >= 0, self._cells(at), NOWHERE)

    def area(self, cells: Cells) -> NDArray[np.float64]:
        """Square metres of each on the WGS 84 ellipsoid: those of its leaves."""
        until = np.concatenate([[0.0], np.cumsum(self._areas)])
        at = self._at(cells)
        leaf = self.levels[at] == self.depth
        return np.where(leaf, self._areas[at], until[self._until[at]] - until[at])

    def outlines(self, cells: Cells) -> NDArray[Any]:
        """The ground of each as a polygon or multipolygon: that of its leaves together."""
        import shapely

        found, known = np.empty(len(cells), dtype=object), self._outlined
        for i, at in enumerate(self._at(cells).tolist()):
            if at not in known:
                leaves = self._leaves[slice(*np.searchsorted(self._leaves, [at, self._until[at]]))]
                known[at] = shapely.union_all(self._ground[leaves], grid_size=GRAIN)
            found[i] = known[at]
        return found

    def parts(self, cells: Cells, boxes: NDArray[np.float64]) -> NDArray[Any]:
        """The part of each box (west, south, east, north) in its district; empty where `areas_inside` is 0."""
        import shapely

        parts: NDArray[Any] = shapely.box(*boxes.T)
        parts[self.areas_inside(cells, boxes) == 0] = shapely.Polygon()
        which, group = np.unique(cells, return_inverse=True)
        there = np.flatnonzero(~shapely.is_empty(parts))
        there = there[np.argsort(group[there], kind="stable")]
        ends = np.searchsorted(group[there], np.arange(len(which)), "right")

        def cut(number: int, ground: Any) -> None:
            own = there[ends[number - 1] if number else 0 : ends[number]]
            shapely.prepare(ground)
            crossed = own[~shapely.covers(ground, parts[own])]
            parts[crossed] = clipped(ground, boxes[crossed])

        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(os.cpu_count()) as pool:  # shapely lets other threads run
            list(pool.map(cut, range(len(which)), self.outlines(which)))
        return parts

    def areas_inside(self, cells: Cells, boxes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Square metres of what of each box lies in its district: see `Polygons.areas_inside`."""
        which, group = np.unique(cells, return_inverse=True)
        return Polygons(self.outlines(which)).areas_inside(group, boxes)

    def bounds(self, cells: Cells) -> NDArray[np.float64]:
        """West, south, east and north of all points of each, float64[cells, 4]: its polygons' and those inside it."""
        import shapely

        order, polygons = self._ordered
        bounds = np.full((len(self.labels), 4), [np.inf, np.inf, -np.inf, -np.inf])
        own = shapely.bounds(polygons.shapes)
        for home, edges in zip(self._home[order], own, strict=True):
            if home >= 0:
                bounds[home] = [*np.minimum(bounds[home, :2], edges[:2]), *np.maximum(bounds[home, 2:], edges[2:])]
        at = self._at(cells)
        lines = [bounds[begin:end] for begin, end in zip(at, self._until[at], strict=True)]
        return np.array([[*inner[:, :2].min(axis=0), *inner[:, 2:].max(axis=0)] for inner in lines]).reshape(-1, 4)

    def known(self, names: list[str]) -> list[bool]:
        """Whether these are names of districts."""
        return [name in self._place for name in names]

    def names(self, cells: Cells) -> list[str]:
        """The path to each, such as `California > Los Angeles`; the root by its own name."""
        at = self._at(cells)
        return [self._paths[i] for i in at.tolist()]

    def named(self, names: list[str]) -> Cells:
        """The districts with these paths."""
        strange = next((name for name in names if name not in self._place), None)
        if strange is not None:
            import difflib

            near = difflib.get_close_matches(strange, self._paths, 1)
            raise InputError(
                f"a district is named by its path, such as {self._paths[-1]!r}; found {strange!r}"
                + (f": perhaps {near[0]!r}?" if near else "")
            )
        return self._cells(np.array([self._place[name] for name in names], dtype=np.int64))

    @cached_property
    def finest(self) -> Cells:
        """The districts of the deepest level, in ascending order."""
        return self._cells(self._leaves)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """The number of districts of each level, int64[depth + 1]."""
        return np.bincount(self.levels, minlength=self.depth + 1)

    def _cells(self, at: NDArray[np.int64]) -> Cells:
        return ((at + 1).astype(np.uint64) << PATH_BITS) | _ONE

    def _at(self, cells: Cells) -> NDArray[np.int64]:
        """The place of each in the order."""
        if (self.level(cells) < 0).any():
            raise InputError("some of these numbers are not districts of this tree")
        return (np.asarray(cells, dtype=np.uint64) >> PATH_BITS).astype(np.int64) - 1

    @cached_property
    def _numbered(self) -> NDArray[np.int64]:
        """The levels, with -1 before the first and behind the last."""
        return np.concatenate([[-1], self.levels, [-1]])

    @cached_property
    def _digest(self) -> bytes:
        import shapely

        parts = [*self.labels, self.levels.tobytes(), *shapely.to_wkb(self._shapes, byte_order=1).tolist()]
        whole = hashlib.sha256()
        for part in parts:
            content = part.encode() if isinstance(part, str) else part
            whole.update(len(content).to_bytes(8, "big") + content)
        return whole.digest()

    @cached_property
    def _shapes(self) -> NDArray[Any]:
        return unpack(self.shapes)

    @cached_property
    def _above(self) -> NDArray[np.int64]:
        """For each level the place of the district of that level that holds each (itself if it is of that level)."""
        above = np.full((self.depth + 1, len(self.labels)), -1)
        for level in range(self.depth + 1):
            here = np.where(self.levels == level, np.arange(len(self.levels)), -1)
            above[level] = np.where(self.levels >= level, np.maximum.accumulate(here), -1)
        return above

    @cached_property
    def _parents(self) -> NDArray[np.int64]:
        parents = self._above[np.maximum(self.levels - 1, 0), np.arange(len(self.levels))]
        parents[0] = -1
        return parents

    @cached_property
    def _born(self) -> NDArray[np.int64]:
        """All but the root, by their parents: those of a district are `_born[_begin[at]:_begin[at + 1]]`."""
        return 1 + np.argsort(self._parents[1:], kind="stable")

    @cached_property
    def _begin(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(np.bincount(self._parents[1:], minlength=len(self.labels)))])

    @cached_property
    def _until(self) -> NDArray[np.int64]:
        """One past the last district in each."""
        until = np.empty(len(self.levels), dtype=np.int64)
        for level in range(self.depth + 1):
            edges = np.append(np.flatnonzero(self.levels <= level), len(self.levels))
            here = np.flatnonzero(self.levels == level)
            until[here] = edges[np.searchsorted(edges, here, "right")]
        return until

    @cached_property
    def _leaves(self) -> NDArray[np.int64]:
        return np.flatnonzero(self.levels == self.depth)

    @cached_property
    def _home(self) -> NDArray[np.int64]:
        """The leaf of a point that a district's polygon holds and no finer one: -1 where nothing is left over."""
        import shapely

        home, bare = (
            np.where(self.levels == self.depth, np.arange(len(self.levels)), -1),
            shapely.is_empty(self._shapes),
        )
        for at in range(len(self.levels) - 1, 0, -1):
            if bare[at]:
                home[self._parents[at]] = home[at]
        return home

    @cached_property
    def _ordered(self) -> tuple[NDArray[np.int64], Polygons]:
        """The districts with polygons, finest first, and these."""
        import shapely

        order = np.lexsort((np.arange(len(self.levels)), -self.levels))
        order = order[~shapely.is_empty(self._shapes[order])]
        return order, Polygons(self._shapes[order])

    @cached_property
    def _ground(self) -> NDArray[Any]:
        """The ground that each leaf owns; entries of other districts are not to be read."""
        ground, left = self._shapes.copy(), left_over(self._shapes, self.levels)
        for at in self._ordered[0]:
            if self._home[at] >= 0:
                ground[self._home[at]] = left[at]
        return ground

    @cached_property
    def _outlined(self) -> dict[int, Any]:
        """A cache of outlines: those of leaves are there from the beginning."""
        return dict(zip(self._leaves.tolist(), self._ground[self._leaves], strict=True))

    @cached_property
    def _areas(self) -> NDArray[np.float64]:
        areas = np.zeros(len(self.levels))
        areas[self._leaves] = Polygons(self._ground[self._leaves]).areas()
        return areas

    @cached_property
    def _paths(self) -> tuple[str, ...]:
        paths = list(self.labels)
        for at in range(1, len(paths)):
            if self.levels[at] > 1:
                paths[at] = paths[self._parents[at]] + BETWEEN + paths[at]
        return tuple(paths)

    @cached_property
    def _place(self) -> dict[str, int]:
        return {path: at for at, path in enumerate(self._paths)}


def _halved(text: str) -> bool:
    """Whether a text holds half a letter, as JSON may: no file could hold it."""
    return any("\ud800" <= letter <= "\udfff" for letter in text)
