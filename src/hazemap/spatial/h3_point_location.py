"""The H3 cell of a point, many times faster than by H3 itself, which is asked once a cell.

H3 lays a lattice of hexagons over each face of an icosahedron, seen from the centre of the earth (gnomonic), and names
a point by its face and its place in that lattice alone. So all points of one place have the name of one of them. The
place is a few products and a rounding; the name is remembered. Points so near an edge that rounding may decide are
asked for one by one, so every answer is H3's own.
"""

from functools import cache
from itertools import combinations
from math import asin, cos, pi, radians, sin, sqrt
from threading import Lock
from typing import NamedTuple

import numpy as np

from hazemap.cells import NOWHERE, Cells
from hazemap.machine_code.arrays import Floats
from hazemap.machine_code.hash_index import HashIndex
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
