"""People with several places each, of whom all is known: what heatmaps of few people are made of and scored against."""

from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hazemap.engines.memory import MemoryTable
from hazemap.errors import InputError
from hazemap.lab.compare.ground_truth_maps import SMALL_DEPTH, GroundTruthMap, middles, places, square
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.planning.synthetic_city import normal, uniform
from hazemap.privacy.random_stream import Stream
from hazemap.spatial.quadtree import Quadtree


@dataclass(frozen=True, eq=False)
class Visits:
    """Who was where: the code of a person and a place in degrees for each visit; all places lie in the tree's square.

    >>> two = Visits("two", Quadtree.world(1), np.array([4, 4, 5]), np.array([1.0, -1, 1]), np.array([1.0, 1, 1]))
    >>> two.people, two.truth[0].tolist()
    (2, [0.25, 0.75])
    """

    name: str
    tree: Quadtree
    person: Ints
    lon: Floats
    lat: Floats
    origin: str = ""

    def __post_init__(self) -> None:
        if not self.person.shape == self.lon.shape == self.lat.shape or not len(self.person):
            raise InputError(f"the visits of {self.name} need a person, a longitude and a latitude each")
        if (self.cells == 0).any():
            raise InputError(f"visits of {self.name} lie outside its square")

    @cached_property
    def cells(self) -> NDArray[np.uint64]:
        """The pixel of each visit."""
        return self.tree.cell_at({"lon": self.lon, "lat": self.lat}, self.tree.depth)

    @cached_property
    def persons(self) -> Ints:
        """Everybody once."""
        return np.unique(self.person)

    @property
    def people(self) -> int:
        """How many they are."""
        return len(self.persons)

    @property
    def side(self) -> int:
        """Pixels along an edge."""
        return 1 << self.tree.depth

    @property
    def size(self) -> dict[str, int]:
        """Pixels along an edge, by their name in results."""
        return {"side": self.side}

    @property
    def extent(self) -> str:
        """The same in words."""
        return f"{self.side} × {self.side}"

    @property
    def table(self) -> MemoryTable:
        """What a curator holds."""
        return MemoryTable(self.person, {"lon": self.lon, "lat": self.lat})

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all that a score can depend on."""
        known = f"{square(self.tree)} {self.tree.depth} ".encode()
        columns = (self.person.astype("<i8"), self.lon.astype("<f8"), self.lat.astype("<f8"))
        return sha256(known + b"".join(column.tobytes() for column in columns)).hexdigest()

    @cached_property
    def truth(self) -> Floats:
        """The mean of everybody's own distribution over pixels, float64[side, side] of sum 1."""
        _, whose, visits = np.unique(self.person, return_inverse=True, return_counts=True)
        at = (self.cells - np.uint64(4**self.tree.depth)).astype(np.int64)
        mean = np.bincount(at, 1 / visits[whose], 4**self.tree.depth) / self.people
        found: Floats = mean[places(self.tree.depth)]
        return found

    def at(self, depth: int) -> "Visits":
        """The same visits in other pixels."""
        tree = Quadtree(*square(self.tree), depth)
        return Visits(self.name, tree, self.person, self.lon, self.lat, self.origin)

    def coarser(self, depth: int) -> "Visits":
        """As maps are seen in larger pixels."""
        return self.at(min(depth, self.tree.depth))

    def small(self) -> "Visits":
        """What a trial is tried on before it is timed."""
        return self.coarser(min(SMALL_DEPTH, self.tree.depth))

    def some(self, people: int, seed: bytes) -> "Visits":
        """All visits of so many people, drawn without replacement; of all of them if there are no more."""
        if people >= self.people:
            return self
        luck = Stream.fixed(b"a sample of visitors " + seed).words(self.people)
        chosen = np.isin(self.person, self.persons[np.argsort(luck)[:people]])
        return Visits(self.name, self.tree, self.person[chosen], self.lon[chosen], self.lat[chosen], self.origin)


def around_homes(place: GroundTruthMap, people: int, most: int, spread: float, seed: bytes) -> Visits:
    """So many of the people of a map as homes, and 1 to `most` places of each around it.

    A place lies a normal distance of standard deviation `spread` (of the map's side) from home in each direction, at
    the border if that is beyond it; every number of places is as likely.
    """
    stream = Stream.fixed(b"people and their places " + seed)
    homes = _points(place, stream, people)
    number = 1 + np.floor(uniform(stream, people) * most).astype(np.int64)
    person = np.repeat(np.arange(people), number)
    x, y = (home[person] + spread * normal(stream, len(person)) for home in homes)
    return laid(place.name, place.tree, person, x, y, place.origin)


def dealt(place: GroundTruthMap, people: int, sparsity: float, side: int, seed: bytes) -> Visits:
    """Points drawn from the people of a map until this part of side² pixels is touched, dealt to so many people.

    Everybody gets a point at least, so there are as many points as people or more.
    """
    stream = Stream.fixed(b"points of a sparsity " + seed)
    wanted, number = max(1, round(sparsity * side * side)), max(people, 1024)
    while True:
        x, y = _points(place, stream, number)
        pixel = np.floor(y * side).astype(np.int64) * side + np.floor(x * side).astype(np.int64)
        first = np.zeros(number, dtype=bool)
        first[np.unique(pixel, return_index=True)[1]] = True
        touched = np.cumsum(first)
        if touched[-1] >= wanted or number > 1 << 24:
            break
        number *= 4
    enough = max(people, int(np.searchsorted(touched, wanted)) + 1)
    person = np.concatenate([np.arange(people), np.floor(uniform(stream, number) * people).astype(np.int64)])[:enough]
    return laid(place.name, place.tree, person, x[:enough], y[:enough], place.origin)


def _points(place: GroundTruthMap, stream: Stream, number: int) -> tuple[Floats, Floats]:
    """Places of people drawn with replacement, anywhere in their pixels: x and y as parts of the side."""
    until = np.cumsum(place.counts.ravel())
    pixel = np.searchsorted(until, np.floor(uniform(stream, number) * until[-1]).astype(np.int64), "right")
    row, column = np.divmod(pixel, place.side)
    return (column + uniform(stream, number)) / place.side, (row + uniform(stream, number)) / place.side


def laid(name: str, tree: Quadtree, person: Ints, x: Floats, y: Floats, origin: str) -> Visits:
    """Visits from parts of a square, x to the east and y to the south; what lies beyond its border is moved to it."""
    fine = Quadtree(*square(tree), 20)
    last = (1 << 20) - 1
    column, row = (np.clip(np.floor(part * (1 << 20)), 0, last).astype(np.uint64) for part in (x, y))
    at = middles(fine, _interleaved(column, row) + np.uint64(4**20))
    return Visits(name, tree, person.astype(np.int64), at["lon"], at["lat"], origin)


def _interleaved(column: NDArray[Any], row: NDArray[Any]) -> NDArray[np.uint64]:
    """The number of a cell in Z-order."""
    number = np.zeros(len(column), dtype=np.uint64)
    for bit in np.arange(20, dtype=np.uint64):
        number |= (column >> bit & np.uint64(1)) << bit + bit
        number |= (row >> bit & np.uint64(1)) << bit + bit + np.uint64(1)
    return number
