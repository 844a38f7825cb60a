"""Tables of synthetic people, as the bytes of a CSV file: the input of an audit.

People are in the middles of the cells of a small square, far from their edges, or in their corners. An audit writes its
tables itself, so it knows what each line says of whom without reading it back.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Leaves
from hazemap.engines.memory import MemoryTable
from hazemap.spatial.bounding_box import Box
from hazemap.spatial.quadtree import Quadtree

BOX = "13.0,52.0,13.3,52.15"


@dataclass(frozen=True)
class Square:
    """The square around `BOX`, cut `depth` times: 4^depth places. Places follow each other along the cells' order.

    >>> Square(2).size, Square(2).lon.shape
    (16, (16,))
    """

    depth: int
    box: str = BOX
    corners: bool = False

    @property
    def cells(self) -> str:
        """As `--cells` has it."""
        return f"quadtree:{self.depth}"

    @property
    def size(self) -> int:
        """How many places."""
        return int(4**self.depth)

    @cached_property
    def leaves(self) -> Leaves:
        """The cell of each place."""
        return Leaves.at_level(Quadtree.around(Box.parse(self.box), self.depth), self.depth)

    @cached_property
    def _middles(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        tree = Quadtree.around(Box.parse(self.box), self.depth)
        west, south, east, north = tree.bounds(self.leaves.cells)
        if self.corners:
            return west, south
        return (west + east) / 2, (south + north) / 2

    @property
    def lon(self) -> NDArray[np.float64]:
        """Longitudes in degrees."""
        return self._middles[0]

    @property
    def lat(self) -> NDArray[np.float64]:
        """Latitudes in degrees."""
        return self._middles[1]


def quarters(box: str, depth: int) -> str:
    """Districts as GeoJSON: the cells of the square around a box, cut so often."""
    square = Square(depth, box)
    tree = square.leaves.tree
    west, south, east, north = (edge.tolist() for edge in cast(Quadtree, tree).bounds(square.leaves.cells))
    features = [
        {
            "type": "Feature",
            "properties": {"name": f"district {number}"},
            "geometry": {"type": "Polygon", "coordinates": [[[w, s], [e, s], [e, n], [w, n], [w, s]]]},
        }
        for number, (w, s, e, n) in enumerate(zip(west, south, east, north, strict=True))
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


DAY, MIDNIGHT = "2026-03-01", 1_772_323_200.0
"""When everything happens, in UTC; and when that day begins, in seconds since 1970."""

HEADER = b"user,lon,lat,weight,time,note\n"


@dataclass(frozen=True)
class CsvLine:
    """A line of a file: the bytes, and whose row it is and where, if the rules of CSV make a row of it."""

    text: bytes
    person: str
    lon: float
    lat: float
    weight: float = 1.0
    counts: bool = True
    hour: int = 8


@dataclass(frozen=True)
class File:
    """The bytes of a table, and its rows as the auditor means them."""

    lines: tuple[CsvLine, ...]

    @property
    def content(self) -> bytes:
        """The file."""
        return HEADER + b"".join(line.text for line in self.lines)

    @property
    def people(self) -> int:
        """How many people have a line in it."""
        return len({line.person for line in self.lines})

    @property
    def table(self) -> MemoryTable:
        """The rows, each person with a number of their own: what a release is about, read by nobody but the auditor."""
        rows = [line for line in self.lines if line.counts]
        codes = {name: code for code, name in enumerate(dict.fromkeys(row.person for row in rows))}
        columns = {
            "lon": np.array([row.lon for row in rows]),
            "lat": np.array([row.lat for row in rows]),
            "weight": np.array([row.weight for row in rows]),
            "value": np.array([row.weight for row in rows]),
            "mark": np.array([row.weight == 1 for row in rows]),
            "time": np.array([MIDNIGHT + 3600.0 * row.hour for row in rows]),
        }
        return MemoryTable(np.array([codes[row.person] for row in rows], dtype=np.int64), columns, 0)


@dataclass(frozen=True)
class NeighbouringTables:
    """Two files that differ in one person, made to be hard for a method: `there` has them, `gone` has not."""

    name: str
    there: File
    gone: File


def row(square: Square, person: str, place: int, weight: float = 1.0, note: str = "", hour: int = 8) -> CsvLine:
    """A plain line."""
    lon, lat = float(square.lon[place]), float(square.lat[place])
    text = f"{person},{lon!r},{lat!r},{weight:g},{DAY}T{hour:02}:00:00,{note}\n"
    return CsvLine(text.encode(), person, lon, lat, weight, hour=hour)


def background(square: Square, often: int = 1) -> list[CsvLine]:
    """People who are there in any case: a town, a village, and some alone; none in the last quarter of the places.

    Each has so many rows, all in one place and one hour.
    """
    size = square.size
    town, village, middle = size // 8, size // 3, size // 2
    places = chain([town] * 90, [town + 1] * 25, [village] * 40, range(0, middle, max(1, middle // 24)))
    everybody = [row(square, f"b{number}", place, hour=number % 24) for number, place in enumerate(places)]
    return [line for _ in range(often) for line in everybody]


def canary(square: Square, place: int, rows: int, weight: float = 1.0, name: str = "zz") -> list[CsvLine]:
    """One person with so many rows in one place."""
    return [row(square, name, place, weight) for _ in range(rows)]


FAR = CsvLine(b"zz,-70.000000,-33.000000,1,2026-03-01T08:00:00,\n", "zz", -70.0, -33.0)
"""Somebody who is far from all places."""


def alone(square: Square) -> NeighbouringTables:
    """One person in all, who is in a place or far from all of them: what a report of one person has to hide."""
    return NeighbouringTables("somebody, or nothing of them", File((row(square, "zz", square.size - 4),)), File((FAR,)))


def values(square: Square) -> NeighbouringTables:
    """Somebody whose values are all at one end of their bounds, or all at the other: neighbours for values-only."""
    base = background(square)
    ends = [canary(square, square.size - 4, 3, weight) for weight in (10.0, 0.0)]
    there, gone = (File((*base, *added)) for added in ends)
    return NeighbouringTables("somebody's values", there, gone)


def outside(square: Square) -> NeighbouringTables:
    """Somebody outside the map, who may be one of a number of people outside, and nothing else."""
    base = tuple(background(square))
    return NeighbouringTables("somebody outside", File((*base, FAR)), File(base))


def among_absent(square: Square) -> NeighbouringTables:
    """Somebody among two hundred people who are all far from the map: whoever of these drops out, sums are the same."""
    far = tuple(
        CsvLine(b"b%d,-70.000000,-33.000000,1,,\n" % number, f"b{number}", -70.0, -33.0) for number in range(200)
    )
    return NeighbouringTables(
        "somebody among absent people", File((*far, row(square, "zz", square.size - 4))), File(far)
    )


def reporting(square: Square) -> list[NeighbouringTables]:
    """Somebody in a place or far from all, among a crowd or among three: they report either way, of one row each."""
    town = background(square)
    return [
        NeighbouringTables(
            f"somebody among {len(crowd)} who report, or far away",
            File((*crowd, row(square, "zz", square.size - 4))),
            File((*crowd, FAR)),
        )
        for crowd in (town, town[:3])
    ]


def standard(square: Square, rule: str, most: int) -> list[NeighbouringTables]:
    """The neighbours that every method is tried with: somebody alone, far from all; and somebody more in the town.

    Each brings more rows than a rule leaves anybody (`most`), of a large weight; where cells are bounded, in as many
    cells as the rule leaves, next to each other. All others bring twice as many rows as the rule leaves them, too.
    """
    base = background(square, 1 if rule == "rows are people" else 2 * most)
    found = []
    for name, place in (("somebody alone", square.size - 4), ("somebody in the town", square.size // 8)):
        places = [place + step for step in range(most)] if rule.startswith("cells") else [place]
        rows = 1 if rule == "rows are people" else 3 * most
        added = [line for at in places for line in canary(square, at, rows, weight=1000.0)]
        found.append(NeighbouringTables(name, File((*base, *added)), File(tuple(base))))
    return found
