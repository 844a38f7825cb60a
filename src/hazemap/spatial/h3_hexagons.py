"""H3 hexagons: cells of similar size, under the numbers that kepler.gl and deck.gl use.

The cell of a point is found many times faster than by H3 itself, which is asked once a cell. H3 lays a lattice of
hexagons over each face of an icosahedron, seen from the centre of the earth (gnomonic), and names a point by its face
and its place in that lattice alone. So all points of one place have the name of one of them. The place is a few
products and a rounding; the name is remembered. Points so near an edge that rounding may decide are asked for one by
one, so every answer is H3's own.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations
from math import asin, cos, pi, radians, sin, sqrt
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import NOWHERE, Cells, Columns
from hazemap.errors import InputError
from hazemap.field_types import check_fields
from hazemap.machine_code.arrays import Floats
from hazemap.machine_code.hash_index import HashIndex
from hazemap.machine_code.parallel_map import in_chunks
from hazemap.spatial.bounding_box import Box, coordinates
from hazemap.vdaf.compiled_loops import once_compiled

PENTAGONS = np.array([4, 14, 24, 38, 49, 58, 63, 72, 83, 97, 107, 117])  # base cells (H3 specification)
TURN = asin(sqrt(3 / 28))  # by which every second resolution is turned against the one before

MOST = 1 << 19
"""Names cached for a resolution, in 32 MiB at most."""

FEW = 1 << 10
"""Points that show whether caching helps, which it does not if nearly every one is in a cell of its own."""


@cache
def lattice(resolution: int) -> "H3Lattice":
    """The one of a resolution, which everybody in this process shares."""
    return H3Lattice(resolution)


class H3Lattice:
    """The hexagons of one resolution on all twenty faces, and the names of those that were met so far.

    >>> hexagon = H3Lattice(9).locate(np.array([2.35, 2.35, np.nan]), np.array([48.85, 48.85, 1.0]))
    >>> [f"{cell:015x}" for cell in hexagon.tolist()]
    ['891fb46624bffff', '891fb46624bffff', '000000000000000']
    """

    def __init__(self, resolution: int) -> None:
        self._resolution = resolution
        self._axes = _axes(resolution)
        self._known = KnownCells(HashIndex(np.empty(0, dtype=np.uint64)), np.array([NOWHERE]))
        self._waiting: list[tuple[Cells, Cells]] = []
        self._lock = Lock()

    def locate(self, lon: Floats, lat: Floats) -> Cells:
        """The cell of each point, uint64[points]; `NOWHERE` off the globe and for NaN.

        O(points): some 100 ns for each point in a cell that was met before, and 400 for any other.
        """
        known = self._known
        if not self._of_use(known, lon, lat):
            return _named(lon, lat, self._resolution)
        keys = once_compiled(_places_loop)(lon, lat, self._axes)
        at = known.keys.of(keys)
        cells = known.cells[at]
        asked = np.flatnonzero((at < 0) & (keys != OFF))
        if asked.size:
            cells[asked] = _named(lon[asked], lat[asked], self._resolution)
            self._remember(keys[asked], cells[asked])
        return cells

    def _of_use(self, known: "KnownCells", lon: Floats, lat: Floats) -> bool:
        """Whether the first of many points are in places that are known, or in some more than once."""
        if len(lon) <= FEW:
            return True
        keys = once_compiled(_places_loop)(lon[:FEW], lat[:FEW], self._axes)
        new = keys[known.keys.of(keys) < 0]
        return 2 * len(new) < FEW or (len(known.cells) <= MOST and len(np.unique(new)) < len(new) - 1)

    def _remember(self, keys: Cells, cells: Cells) -> None:
        """Keep the names of these places, half as many as are known at a time; others may be reading the old ones."""
        sure = keys != UNSURE
        with self._lock:
            known = self._known
            if len(known.cells) > MOST or not sure.any():
                return
            self._waiting.append((keys[sure], cells[sure]))
            if 2 * sum(len(keys) for keys, _ in self._waiting) < len(known.cells):
                return
            every = [(known.keys.numbers, known.cells[:-1]), *self._waiting]
            keys, first = np.unique(np.concatenate([keys for keys, _ in every]), return_index=True)
            cells = np.concatenate([cells for _, cells in every])[first]
            self._known = KnownCells(HashIndex(keys), np.append(cells, NOWHERE))
            self._waiting = []


class KnownCells(NamedTuple):
    """Places in the lattice, and the cells there; the last one, which unknown places get, is no cell."""

    keys: HashIndex
    cells: Cells


OFF, UNSURE = np.uint64(0), np.uint64(1)  # points off the globe, and those that H3 has to be asked for


def _named(lon: Floats, lat: Floats, resolution: int) -> Cells:
    """H3's own answer; `NOWHERE` for points off the globe."""
    from h3ronpy.vector import coordinates_to_cells

    there = (np.abs(lon) <= 180) & (np.abs(lat) <= 90)  # NaN compares false
    if there.all():
        return np.asarray(coordinates_to_cells(lat, lon, resolution), dtype=np.uint64)
    cells = np.full(len(lon), NOWHERE)
    cells[there] = _named(lon[there], lat[there], resolution)
    return cells


@cache
def _faces() -> tuple[Floats, Floats, Floats]:
    """Centres of the faces, and of each the two directions along it, towards a vertex and across: float64[20, 3] each.

    The directions are as long as makes a step from one hexagon of resolution 0 to the next 1: a vertex is two away.
    """
    from h3ronpy.vector import cells_to_coordinates

    found = cells_to_coordinates(np.uint64(0x08001FFFFFFFFFFF) | (PENTAGONS.astype(np.uint64) << np.uint64(45)))
    lon, lat = np.radians(np.asarray(found["lng"])), np.radians(np.asarray(found["lat"]))
    vertices = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)
    near = vertices @ vertices.T > 0.4  # neighbours are 63.4° apart
    corners = np.array([abc for abc in combinations(range(12), 3) if near[np.ix_(abc, abc)].all()])
    centres = vertices[corners].sum(axis=1)
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    vertex = vertices[corners[:, 0]]
    along = vertex / (vertex * centres).sum(axis=1, keepdims=True) - centres  # on the plane that touches the centre
    along *= 2 / (along**2).sum(axis=1, keepdims=True)
    return centres, along, np.cross(centres, along)


def _axes(resolution: int) -> Floats:
    """The centre and two directions of each face in steps of a resolution: float64[20, 3, 3]."""
    centres, along, across = _faces()
    angle = TURN if resolution % 2 else 0.0
    steps = sqrt(7) ** resolution
    x = steps * (cos(angle) * along + sin(angle) * across)
    y = steps * (cos(angle) * across - sin(angle) * along)
    return np.stack([centres, x, y], axis=1)


DEGREE = pi / 180
ROOT = sqrt(3)
WITHIN = cos(radians(20.9))  # nearer to a centre than that, no other is nearer
NEARER = 1e-9  # by so much a face has to be nearer than all others to be surely H3's choice
CENTRE = 1e-8  # squared radians: nearer to a centre, H3's own rounding is coarse
EDGE = 0.5 - 1e-4  # further from its middle, in steps, a point may be in the next hexagon by H3's rounding


def _places_loop(lon, lat, axes):  # type: ignore[no-untyped-def]  # pragma: no cover - compiled
    """A number for the face and place of each point."""
    keys = np.full(lon.size, UNSURE)
    face = 0
    for i in range(lon.size):
        if not (abs(lon[i]) <= 180 and abs(lat[i]) <= 90):
            keys[i] = OFF
            continue
        a, b = lon[i] * DEGREE, lat[i] * DEGREE
        flat = cos(b)
        vx, vy, vz = flat * cos(a), flat * sin(a), sin(b)
        near = vx * axes[face, 0, 0] + vy * axes[face, 0, 1] + vz * axes[face, 0, 2]
        if near < WITHIN:
            near, second = -1.0, -1.0
            for f in range(20):
                dot = vx * axes[f, 0, 0] + vy * axes[f, 0, 1] + vz * axes[f, 0, 2]
                if dot > near:
                    near, second, face = dot, near, f
                elif dot > second:
                    second = dot
            if near - second < NEARER:
                continue
        if 2 * (1 - near) < CENTRE:
            continue
        x = (vx * axes[face, 1, 0] + vy * axes[face, 1, 1] + vz * axes[face, 1, 2]) / near
        y = (vx * axes[face, 2, 0] + vy * axes[face, 2, 1] + vz * axes[face, 2, 2]) / near
        # cube coordinates of the lattice with steps (1, 0) and (1/2, √3/2), rounded: the one that is off most follows
        q, r = x - y / ROOT, 2 * y / ROOT
        s = -q - r
        u, v, w = np.floor(q + 0.5), np.floor(r + 0.5), np.floor(s + 0.5)
        off_q, off_r, off_s = abs(u - q), abs(v - r), abs(w - s)
        if off_q > off_r and off_q > off_s:
            u = -v - w
        elif off_r > off_s:
            v = -u - w
        dx, dy = x - (u + v / 2), y - v * (ROOT / 2)
        if max(abs(dx), abs(dx / 2 + dy * (ROOT / 2)), abs(dx / 2 - dy * (ROOT / 2))) > EDGE:
            continue
        place = (np.int64(u) + (1 << 26)) << 27 | (np.int64(v) + (1 << 26))
        keys[i] = np.uint64(face + 1) << np.uint64(55) | np.uint64(place)
    return keys


FINEST = 15
MOST_ROOTS = 1_000_000
# No point of a cell of resolution r, or of its descendants, is further from its centre than REACH / √7^r
# radians: 0.221 is the largest circumradius, 0.232 adds the wandering of all finer centres.
REACH = 0.25

SLIVER = 1e-6
"""Degrees (10 cm): a part that is thinner would be a line in files that keep seven decimals."""


@dataclass(frozen=True)
class Hexagons:
    """The H3 cells that may hold a point of a box, from the coarsest to the finest resolution.

    A cell is its H3 index: its digits are its path, so base cells inside a cell are one range of numbers.
    H3 does not nest on the ground (6 to 7 % of points leave their cell's parent): the cell of a row at any
    level is *defined* as the ancestor of its finest cell. `area` and `outlines` are those of the hexagon
    itself. A box does not cross the antimeridian, but its outermost cells may. A point beside the box may lie
    in a cell: who wants none of those filters the rows.

    >>> tree = Hexagons(Box(2.2, 48.8, 2.5, 48.9), coarsest=5, finest=9)
    >>> paris = tree.cell_at({"lon": np.array([2.35]), "lat": np.array([48.85])}, level=4)
    >>> tree.depth, tree.names(paris), tree.names(tree.parent(paris))
    (4, ['891fb46624bffff'], ['881fb46625fffff'])
    """

    box: Box
    coarsest: int
    finest: int

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 <= self.coarsest <= self.finest <= FINEST:
            raise InputError(
                f"H3 resolutions must be 0 to {FINEST}, the coarsest before the finest;"
                f" found {self.coarsest} and {self.finest}"
            )
        roots = cells_about(self.box, self.coarsest)
        if roots > MOST_ROOTS:
            good = max(r for r in range(self.coarsest) if r == 0 or cells_about(self.box, r) <= MOST_ROOTS)
            number = f"{float(f'{roots:.2g}'):,.0f}"
            raise InputError(
                f"resolution {self.coarsest} cuts the box {self.box} into about {number} hexagons at once;"
                f" start from resolution {good} or coarser (at most {MOST_ROOTS:,} hexagons)"
            )

    @staticmethod
    def decoding_work(fields: Mapping[str, Any]) -> int:
        """Bytes that finding the coarsest hexagons takes, about: see `codec.Limits`."""
        coarsest = min(max(fields["coarsest"], 0), FINEST)
        return 1_000 * int(cells_about(fields["box"], coarsest))

    @property
    def depth(self) -> int:
        """Resolutions below the coarsest."""
        return self.finest - self.coarsest

    @cached_property
    def root(self) -> Cells:
        """The cells of the coarsest resolution with a descendant near the box, in ascending order."""
        cells = _index(np.int64(0), np.arange(122, dtype=np.uint64) << np.uint64(45))
        for resolution in range(self.coarsest + 1):
            lon, lat = _centres(cells)
            cells = cells[self.box.distance(lon, lat) <= REACH / 7 ** (resolution / 2)]
            if resolution < self.coarsest:
                cells = _children(cells)
        cells.setflags(write=False)
        return cells

    @cached_property
    def _roots(self) -> HashIndex:
        return HashIndex(self.root)

    def children(self, cells: Cells) -> Cells:
        """The seven children of each cell, six of a pentagon, in ascending order."""
        return _children(np.asarray(cells, dtype=np.uint64))

    def parent(self, cells: Cells) -> Cells:
        """The cell one resolution coarser, by the index."""
        numbers = np.asarray(cells, dtype=np.uint64)
        return _index(_resolution(numbers) - 1, numbers)

    def neighbours(self, cells: Cells) -> Cells:
        """The hexagons around each cell, uint64[cells, 6]; `NOWHERE` for a pentagon's sixth and beyond the roots."""
        import pyarrow
        from h3ronpy import grid_disk

        numbers = np.asarray(cells, dtype=np.uint64)
        disks = pyarrow.array(grid_disk(pyarrow.array(numbers), 1))
        whose = np.repeat(np.arange(len(numbers)), np.diff(disks.offsets.to_numpy()))
        near = disks.flatten().to_numpy()
        real = (near != numbers[whose]) & np.isin(_index(np.int64(self.coarsest), near), self.root)
        whose, near = whose[real], near[real]
        found = np.full((len(numbers), 6), NOWHERE)
        found[whose, np.arange(len(near)) - np.searchsorted(whose, whose)] = near
        return found

    def level(self, cells: Cells) -> NDArray[np.int64]:
        """Resolutions below the coarsest; −1 for numbers that are not written as an index of their resolution."""
        numbers = np.asarray(cells, dtype=np.uint64)
        resolution = _resolution(numbers)
        return np.where(numbers == _index(resolution, numbers), resolution - self.coarsest, -1)

    def span(self, cells: Cells) -> tuple[Cells, Cells]:
        """The numbers of all descendants, and those beside them that name no cell, so that spans tile.

        Numbers with a digit 7, or 1 in a pentagon, go to the sibling before. The bits beyond the finest digit are
        1 in every base cell, so its span starts where they are 0.
        """
        numbers = np.asarray(cells, dtype=np.uint64)
        finest = _index(np.int64(self.finest), numbers)
        first = finest & ~_unused(_resolution(numbers))
        last, open_ = finest.copy(), np.ones(len(numbers), dtype=np.bool_)
        for resolution in range(self.finest, self.coarsest, -1):
            here = open_ & (_resolution(numbers) >= resolution)
            digit, sixth = _digit(numbers, resolution), here & (_digit(numbers, resolution) == 6)
            centre = here & (digit == 0) & _pentagon(_index(np.int64(resolution - 1), numbers))
            last[sixth] |= _one(resolution)  # 6 becomes 7, and so on with the digit before
            last[centre] |= _one(resolution)  # 0 becomes 1
            open_ &= ~here | sixth
        return first, last

    def cell_at(self, columns: Columns, level: int) -> Cells:
        """The cell of each row at this level; `NOWHERE` far from the box, off the globe, or for NaN."""
        if not 0 <= level <= self.depth:
            raise InputError(f"these hexagons have levels 0 to {self.depth}; found {level}")
        lon, lat = coordinates(columns)
        cells = np.empty(len(lon), dtype=np.uint64)
        self._roots  # noqa: B018 - made once, not in every thread

        def fill(rows: slice) -> None:
            cells[rows] = self._locate(lon[rows], lat[rows], level)

        in_chunks(fill, len(lon))
        return cells

    def area(self, cells: Cells) -> NDArray[np.float64]:
        """Square metres of each hexagon as H3 gives them: on the sphere of the earth's area."""
        from h3ronpy import cells_area_m2

        return np.asarray(cells_area_m2(np.asarray(cells, dtype=np.uint64)), dtype=np.float64)

    def outlines(self, cells: Cells) -> NDArray[Any]:
        """Each hexagon; one that crosses the antimeridian is a multipolygon."""
        import shapely
        from h3ronpy.vector import cells_to_wkb_polygons

        return cut_at_antimeridian(
            shapely.from_wkb(np.asarray(cells_to_wkb_polygons(np.asarray(cells, dtype=np.uint64))))
        )

    def names(self, cells: Cells) -> list[str]:
        """H3 indexes as everybody writes them: 15 hexadecimal digits."""
        return [f"{cell:015x}" for cell in np.asarray(cells, dtype=np.uint64).tolist()]

    def named(self, names: list[str]) -> Cells:
        """The cells with these names, if they are cells of this tree."""
        from h3ronpy import cells_valid

        for name in names:
            if not re.fullmatch("[0-9a-f]{15}", name):
                raise InputError(f"an H3 cell must be 15 lower-case hexadecimal digits; found {name!r}")
        cells = np.array([int(name, 16) for name in names], dtype=np.uint64)
        valid = np.asarray(cells_valid(cells, booleanarray=True), dtype=bool)
        resolution = _resolution(cells)
        valid &= (self.coarsest <= resolution) & (resolution <= self.finest)
        valid &= np.isin(_index(np.int64(self.coarsest), cells), self.root)
        if not valid.all():
            raise InputError(
                f"an H3 cell of this tree has resolution {self.coarsest} to {self.finest} and lies near the"
                f" box {self.box}; found {names[int(np.argmin(valid))]!r}"
            )
        return cells

    def _locate(self, lon: NDArray[np.float64], lat: NDArray[np.float64], level: int) -> Cells:
        base = lattice(self.finest).locate(lon, lat)
        ancestor = base if self.depth == 0 else _index(np.int64(self.coarsest), base)
        inside = self._roots.of(ancestor) >= 0
        cells = base if level == self.depth else _index(np.int64(self.coarsest + level), base)
        return np.where(inside, cells, NOWHERE)


def cells_about(box: Box, resolution: int) -> float:
    """The number of cells of a resolution in a box: those inside and those along its edges."""
    square = 4 * np.pi / (2 + 120 * 7.0**resolution)
    width, height = np.radians(box.east - box.west), np.radians(box.north - box.south)
    edges = np.radians([box.south, box.north])
    inside = width * (np.sin(edges[1]) - np.sin(edges[0])) / square
    along = (width * np.cos(edges).sum() + 2 * height) / np.sqrt(square)
    return float(inside + along)


# An H3 index: mode 1 in bits 59 to 62, the resolution in bits 52 to 55, the base cell in bits 45 to 51, then
# fifteen digits of three bits each, coarse to fine; 7 stands for a digit that is not used.
MODE = np.uint64(1 << 59)
PATH = np.uint64((1 << 52) - 1)


def _resolution(cells: Cells) -> NDArray[np.int64]:
    return ((cells >> np.uint64(52)) & np.uint64(15)).astype(np.int64)


def _unused(resolution: NDArray[np.int64] | np.int64) -> Cells:
    """All bits of the digits finer than a resolution."""
    bits = np.asarray(3 * (15 - resolution)).astype(np.uint64)
    return (np.uint64(1) << bits) - np.uint64(1)


def _index(resolution: NDArray[np.int64] | np.int64, cells: Cells) -> Cells:
    """The same path at a coarser resolution, or at a finer one with the further digits left at 7."""
    level = np.asarray(resolution).astype(np.uint64) << np.uint64(52)
    return MODE | level | (cells & PATH) | _unused(resolution)


def _children(cells: Cells) -> Cells:
    finer = _resolution(cells) + 1
    step = np.uint64(1) << (3 * (15 - finer)).astype(np.uint64)
    path = _index(finer, cells) & ~(np.uint64(7) * step)
    digits = np.arange(7, dtype=np.uint64)
    born = path[:, None] | (digits * step[:, None])
    kept: Cells = born[~(_pentagon(cells)[:, None] & (digits == 1))]  # a pentagon has no first child
    return kept


def _pentagon(cells: Cells) -> NDArray[np.bool_]:
    """Whether cells are pentagons: the centres, at every resolution, of twelve base cells."""
    base = (cells >> np.uint64(45)) & np.uint64(127)
    used = cells & PATH & ~_unused(_resolution(cells)) & ~np.uint64(127 << 45)
    pentagons: NDArray[np.bool_] = np.isin(base, PENTAGONS) & (used == 0)
    return pentagons


def _one(resolution: int) -> np.uint64:
    """The last bit of the digit of a resolution."""
    return np.uint64(1 << 3 * (15 - resolution))


def _digit(cells: Cells, resolution: int) -> Cells:
    """The digit of a resolution."""
    return (cells // _one(resolution)) & np.uint64(7)


def _centres(cells: Cells) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    from h3ronpy.vector import cells_to_coordinates

    centres = cells_to_coordinates(cells)
    return np.asarray(centres["lng"]), np.asarray(centres["lat"])


def cut_at_antimeridian(polygons: NDArray[Any]) -> NDArray[Any]:
    """The same polygons (rings of points on the sphere, each edge shorter than 180°), within ±180 degrees.

    A ring that crosses the antimeridian becomes a multipolygon; one around a pole is closed along the pole. What only
    touches the antimeridian from beyond, or reaches over it by less than `SLIVER`, has one part.
    """
    import shapely

    west, _, east, _ = shapely.bounds(polygons).T
    whole = polygons.copy()
    for i in np.flatnonzero(east - west > 180):
        ring = shapely.get_coordinates(polygons[i])
        ring[:, 0] = np.unwrap(ring[:, 0], period=360)
        once = round((ring[-1, 0] - ring[0, 0]) / 360) * 360.0  # around a pole
        turns = [ring + np.array([by, 0]) for by in (once or 360.0) * np.arange(-1, 2)]
        if once:
            pole = np.copysign(90.0, ring[:, 1].mean())
            around = np.vstack([turns[0][:-1], ring[:-1], turns[2]])
            turns = [np.vstack([around, [[around[-1, 0], pole], [around[0, 0], pole], around[0]]])]
        turns = [shapely.polygons(each) for each in turns]
        parts = shapely.get_parts(shapely.get_parts(shapely.intersection(turns, shapely.box(-180, -90, 180, 90))))
        west, south, east, north = shapely.bounds(parts).T
        seen = (shapely.get_dimensions(parts) == 2) & (np.minimum(east - west, north - south) > SLIVER)
        whole[i] = shapely.union_all(parts[seen])
    return whole
