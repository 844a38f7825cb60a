"""A synthetic city for trials: a river, a sea, a centre, districts, arterial roads, a park.

Plans are tried on its people as a table of plots (`SyntheticTable`), demos on their rows over some weeks (`DemoCity`),
which stand on Dogger Bank, where nobody lives. Everything about it is public and seeded, so nothing here is noise:
floats decide. Places are on a square of `side`² plots, row 0 in the north. `CityInSlots` is
the city at each time.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.cells import Cells, Tree
from hazemap.errors import InputError
from hazemap.estimate.slot_maps import SlotMaps
from hazemap.files.atomic_write import whole
from hazemap.machine_code.arrays import Floats
from hazemap.privacy.random_stream import Stream
from hazemap.spatial.bounding_box import MERCATOR_LATITUDE, Box
from hazemap.spatial.h3_hexagons import Hexagons
from hazemap.spatial.quadtree import Quadtree, latitudes
from hazemap.spatial.web_mercator import longitude
from hazemap.tables.contribution_bounding import Bounding
from hazemap.tables.votes import Votes
from hazemap.temporal.time_slots import DAY, HOUR, Slots, Spans, local
from hazemap.values.timed_tree import PlacesAndSlots, TimedTree

Places = tuple[Floats, Floats]  # x grows east, y grows south, both from 0 to 1

CENTRE = (0.46, 0.44)
PARK = (0.53, 0.37, 0.028)
DISTRICTS, OFFICES, VENUES, RADIALS = 48, 14, 150, 7


def uniform(stream: Stream, size: int) -> Floats:
    """Numbers strictly between 0 and 1 from a stream's words."""
    numbers: Floats = ((stream.words(size) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return numbers


def normal(stream: Stream, size: int) -> Floats:
    """Normal numbers by Box and Muller (1958)."""
    radius, angle = np.sqrt(-2 * np.log(uniform(stream, size))), 2 * np.pi * uniform(stream, size)
    numbers: Floats = radius * np.cos(angle)
    return numbers


@dataclass(frozen=True, eq=False)
class Quarter:
    """A density over the plots for one activity, float64[side, side], of sum 1."""

    density: Floats

    @cached_property
    def _until(self) -> Floats:
        return np.cumsum(self.density.ravel())

    def places(self, stream: Stream, size: int) -> Places:
        """Independent places drawn from the density, anywhere within their plots."""
        side = len(self.density)
        plot = np.searchsorted(self._until, uniform(stream, size) * self._until[-1])
        row, column = np.divmod(np.minimum(plot, side * side - 1), side)
        return (column + uniform(stream, size)) / side, (row + uniform(stream, size)) / side

    def counts(self, stream: Stream, people: int) -> NDArray[np.int64]:
        """Draw the number of people on each plot: independent Poisson numbers, int64[side, side]."""
        wanted = people * self.density.ravel()
        luck, counts = uniform(stream, wanted.size), np.zeros(wanted.size, dtype=np.int64)
        many = wanted > 30
        counts[many] = np.rint(wanted[many] + np.sqrt(wanted[many]) * normal(stream, int(many.sum())))
        open_ = np.flatnonzero(~many & (luck > np.exp(-wanted)))
        chance = np.exp(-wanted[open_])
        below, number = chance.copy(), 0
        while len(open_):  # one more for all whose luck is not used up
            number += 1
            counts[open_] = number
            chance *= wanted[open_] / number
            below += chance
            left = (luck[open_] > below) & (number < 200)
            open_, chance, below = open_[left], chance[left], below[left]
        return counts.reshape(self.density.shape)


@dataclass(frozen=True, eq=False)
class City:
    """The places in which its people live, work, go out and travel.

    >>> city = City.built(Stream.fixed(b"doctest"), side=64)
    >>> bool(abs(city.homes.density.sum() - 1) < 1e-9)
    True
    """

    homes: Quarter
    offices: Quarter
    venues: Quarter
    streets: Quarter

    @classmethod
    def built(cls, stream: Stream, side: int = 1024) -> "City":
        """The city of a stream: O(side² · districts)."""
        ground = _Ground(side)
        homes, offices, venues = (ground.hills(_places(stream, *of)) for of in _KINDS)
        streets = ground.streets(uniform(stream, RADIALS))
        centre, core = ground.hill(*CENTRE, 0.06), ground.hill(*CENTRE, 0.018)
        land, anywhere = ground.land, np.ones((side, side))
        park = 1 - 0.97 * ground.park

        def quarter(*shares: tuple[float, Floats]) -> Quarter:
            density = sum((share / part.sum() * part for share, part in shares), np.zeros((side, side)))
            return Quarter(density / density.sum())

        return cls(
            quarter(
                *((share, part * land * park) for share, part in ((0.72, homes), (0.14, centre), (0.1, streets))),
                (0.04, anywhere * land),
            ),
            quarter(*((share, part * land * park) for share, part in ((0.5, core), (0.4, offices), (0.1, streets)))),
            quarter(*((share, part * land) for share, part in ((0.4, core), (0.5, venues), (0.1, ground.park)))),
            quarter((1.0, streets)),  # roads cross the river on bridges
        )

    @property
    def habits(self) -> "tuple[Habit, ...]":
        """Activities of a day, and their times."""
        return (
            Habit(0.4, self.homes, True, 1.0, 4.5),
            Habit(0.25, self.offices, True, 13.0, 2.5),
            Habit(0.2, self.venues, False, 20.0, 2.0),
            Habit(0.07, self.streets, False, 8.2, 1.0),
            Habit(0.08, self.streets, False, 17.5, 1.3),
        )

    @cached_property
    def day(self) -> Quarter:
        """Everyone, at any time of day: 40 % at home, 25 % at work, 20 % out, 15 % on the way."""
        parts = ((0.4, self.homes), (0.25, self.offices), (0.2, self.venues), (0.15, self.streets))
        return Quarter(sum((share * part.density for share, part in parts), np.zeros_like(self.homes.density)))


class Habit(NamedTuple):
    """The share of their rows that people have in a quarter: in a place of their `own`, or a new one each time.

    The hour is normal about the `usual` one, with a standard deviation of `spread`, over midnight too.
    """

    share: float
    quarter: Quarter
    own: bool
    usual: float
    spread: float


_KINDS = ((DISTRICTS, 0.19, 0.022), (OFFICES, 0.13, 0.009), (VENUES, 0.12, 0.0035))


def _places(stream: Stream, number: int, spread: float, size: float) -> Floats:
    """Hills around the centre, float64[number, 4]: x, y, width, weight (heavy tailed, Pareto 1.4)."""
    x, y = (middle + spread * normal(stream, number) for middle in CENTRE)
    width = size * np.exp(0.45 * normal(stream, number))
    weight = uniform(stream, number) ** (-1 / 1.4)
    return np.column_stack([np.clip(x, 0.03, 0.97), np.clip(y, 0.03, 0.97), width, weight])


@dataclass(frozen=True)
class _Ground:
    """The plots of the city, and what lies on them."""

    side: int

    @cached_property
    def axis(self) -> Floats:
        return (np.arange(self.side) + 0.5) / self.side

    def hill(self, x: float, y: float, width: float) -> Floats:
        """A Gaussian hill of volume 1 (in plots)."""
        across, down = (np.exp(-0.5 * ((self.axis - middle) / width) ** 2) for middle in (x, y))
        return np.outer(down / down.sum(), across / across.sum())

    def hills(self, hills: Floats) -> Floats:
        """Their weighted sum."""
        x, y, width, weight = hills.T
        across, down = (np.exp(-0.5 * ((self.axis[:, None] - middle) / width) ** 2) / width for middle in (x, y))
        return np.asarray((down * weight) @ across.T)

    @cached_property
    def land(self) -> Floats:
        """1 on land, 0 on the river, which winds east and widens, and on the sea it ends in."""
        x, y = self.axis, self.axis[:, None]
        river = 0.49 - 0.1 * np.sin(2 * np.pi * (0.9 * x + 0.08)) - 0.03 * np.sin(2 * np.pi * 2.3 * x)
        wet = np.abs(y - river) < 0.007 + 0.016 * x**2
        sea = x > 0.93 + 0.025 * np.sin(9 * y) + 0.3 * np.maximum(0.25 - y, 0)
        return np.where(wet | sea, 0.0, 1.0)

    @cached_property
    def park(self) -> Floats:
        """1 in the park."""
        x, y, radius = PARK
        return np.where((self.axis - x) ** 2 + (self.axis[:, None] - y) ** 2 < radius**2, 1.0, 0.0)

    def streets(self, luck: Floats, width: float = 0.0022) -> Floats:
        """Radial roads from the centre, busiest near it, and a ring road."""
        x, y = self.axis - CENTRE[0], self.axis[:, None] - CENTRE[1]
        radius = np.hypot(x, y)
        density = 0.35 * np.exp(-0.5 * ((radius - 0.2) / width) ** 2)
        for turn in (np.arange(RADIALS) + 0.6 * luck) / RADIALS * 2 * np.pi:
            along, beside = x * np.cos(turn) + y * np.sin(turn), y * np.cos(turn) - x * np.sin(turn)
            reach = np.where(along > 0, np.exp(-along / 0.3), 0.0)
            density = density + reach * np.exp(-0.5 * (beside / width) ** 2)
        coast = self.axis < 0.93 + 0.025 * np.sin(9 * self.axis[:, None])
        return np.asarray(density * coast)


DETAIL = 9  # the square around the box has 4^DETAIL plots


class PlotLevel(NamedTuple):
    """A level of a tree: its `cells` in all, those of them `touched` by plots, and which of these each plot is in."""

    level: int
    cells: int
    touched: int
    at: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class SyntheticTable:
    """The made-up city laid over a box: plots with people, and a tree whose cells are no smaller than plots.

    `base` is the base cell of each plot, `density` the law of where people are, `people` how many there are; `habits`
    say when, on all plots of the square, of which these are `inside` the box.

    >>> box = Box(2.2, 48.8, 2.5, 48.9)
    >>> SyntheticTable.of(Quadtree.around(box, 12), box, 1000).tree.depth
    9
    """

    tree: Quadtree | Hexagons
    box: Box
    columns: dict[str, Floats]
    base: Cells
    density: Floats
    people: NDArray[np.int64]
    habits: tuple[Habit, ...]
    inside: NDArray[np.bool_]

    @classmethod
    def of(cls, tree: Quadtree | Hexagons, box: Box, people: int) -> "SyntheticTable":
        """About this many people, none outside the box; the same every time."""
        square, stream = Quadtree.around(box, DETAIL), Stream.fixed(b"the city of a plan")
        plots = square.grid(DETAIL).ravel()
        west, south, east, north = square.bounds(plots)
        lon, lat = (west + east) / 2, (south + north) / 2
        inside = box.holds(lon, lat)
        columns = {"lon": lon[inside], "lat": lat[inside]}
        city = City.built(stream, 1 << DETAIL)
        density = city.day.density.ravel()[inside]
        quarter = Quarter(density / density.sum())
        rough = _no_finer(tree, float(np.median(square.area(plots[::97]))), box)
        base = rough.cell_at(columns, rough.depth)
        counts = quarter.counts(stream, people)
        return cls(rough, box, columns, base, quarter.density, counts, city.habits, inside)

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """Everybody gives as much as the rule allows, all of it in their plot."""
        return Votes.gathered(self.base_in(tree), self.people * bounding.sensitivity.l1)

    def base_in(self, tree: Tree) -> Cells:
        """The finest cell of a tree that each plot is in."""
        return self.base if tree == self.tree else tree.cell_at(self.columns, tree.depth)

    def misplaced(self, at: NDArray[np.int64], numbers: Floats) -> float:
        """The part of all people that a map puts in a wrong plot; `at` is the position of each plot's cell."""
        guess = np.maximum(numbers, 0)[at] / np.bincount(at, minlength=len(numbers))[at]
        return float(np.abs(guess / max(guess.sum(), 1e-9) - self.density).sum() / 2)

    def layers(self) -> list[PlotLevel]:
        """Every level, the coarsest first."""
        sizes, cells = [], self.tree.root
        for _ in range(self.tree.depth):
            sizes.append(len(cells))
            cells = self.tree.children(cells)
        sizes.append(len(cells))
        touched, at = np.unique(self.base, return_inverse=True)
        layers = [PlotLevel(self.tree.depth, sizes[-1], len(touched), at)]
        for level in reversed(range(self.tree.depth)):
            touched, above = np.unique(self.tree.parent(touched), return_inverse=True)
            at = above[at]
            layers.append(PlotLevel(level, sizes[level], len(touched), at))
        return layers[::-1]


def median(sizes: Floats, weights: NDArray[Any]) -> float:
    """The least size that half the weight does not exceed."""
    order = np.argsort(sizes)
    until = np.cumsum(weights[order])
    return float(sizes[order][np.searchsorted(until, until[-1] / 2)])


def middle(tree: Tree, box: Box, level: int) -> Cells:
    """The cell of a level in the middle of what a web map shows of a box."""
    south, north = np.clip([box.south, box.north], -MERCATOR_LATITUDE, MERCATOR_LATITUDE)
    columns = {"lon": np.array([(box.west + box.east) / 2]), "lat": np.array([(south + north) / 2])}
    return tree.cell_at(columns, level)


def _no_finer(tree: Quadtree | Hexagons, area: float, box: Box) -> Quadtree | Hexagons:
    """The same tree, without levels whose cells are smaller than a plot."""
    if isinstance(tree, Quadtree):
        return replace(tree, depth=min(tree.depth, DETAIL))
    fits = [level for level in range(tree.depth + 1) if tree.area(middle(tree, box, level))[0] >= area]
    return replace(tree, finest=tree.coarsest + max(fits, default=0))


BOX = Box(2.1, 54.65, 2.5, 54.881)
"""The city's square on a map."""

DAYS, START = 28, 1_788_220_800  # from Tuesday, 1 September 2026, 00:00 UTC
MOST_ROWS = 60
JITTER = 0.0006  # of the city's side: where exactly at home a phone is


@dataclass(frozen=True)
class DemoCity:
    """Rows of people who do not exist: each has a home and a workplace, goes out, and is on the road between.

    >>> rows = DemoCity(people=50, seed=1).rows
    >>> sorted(rows), len(np.unique(rows["person"]))
    (['lat', 'lon', 'person', 'ts'], 50)
    """

    people: int
    seed: int

    @cached_property
    def rows(self) -> dict[str, NDArray[np.int64] | Floats]:
        """Columns person, lon, lat, and ts in seconds since 1970, in order of time."""
        stream = Stream.fixed(f"demo city {self.seed}".encode())
        city = City.built(stream)
        busy = np.exp(1.3 + 0.8 * normal(stream, self.people))
        number = np.clip(busy.astype(np.int64), 1, MOST_ROWS)
        person = np.repeat(np.arange(self.people), number)
        luck = uniform(stream, len(person))
        x, y, hour = np.empty((3, len(person)))
        until = np.round(np.cumsum([0.0, *(habit.share for habit in city.habits)]), 9).tolist()
        for low, high, (_, quarter, own, usual, spread) in zip(until[:-1], until[1:], city.habits, strict=True):
            there = (low <= luck) & (luck < high)
            x[there], y[there] = self._at(stream, quarter, person[there], own)
            hour[there] = (usual + spread * normal(stream, int(there.sum()))) % 24
        day = np.floor(uniform(stream, len(person)) * DAYS)
        ts = START + np.floor((24 * day + hour) * 3600).astype(np.int64)
        order = np.argsort(ts, kind="stable")
        lon, lat = _degrees(x[order], y[order])
        return {"person": person[order], "lon": lon, "lat": lat, "ts": ts[order]}

    def _at(self, stream: Stream, quarter: Quarter, person: NDArray[np.int64], own: bool) -> Places:
        """For each row a place: one that its person has for good, or a new one."""
        if not own:
            return quarter.places(stream, len(person))
        x, y = (each[person] for each in quarter.places(stream, self.people))
        return (
            np.clip(x + JITTER * normal(stream, len(person)), 0, 1 - 1e-9),
            np.clip(y + JITTER * normal(stream, len(person)), 0, 1 - 1e-9),
        )

    def write(self, path: Path) -> None:
        """The rows as Parquet."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = self.rows
        ts = pa.array(rows["ts"]).cast(pa.timestamp("s", "UTC"))
        table = pa.table({**{name: pa.array(rows[name]) for name in ("person", "lon", "lat")}, "ts": ts})
        with whole(path) as part:
            pq.write_table(table, part, compression="zstd")

    @cached_property
    def votes(self) -> Floats:
        """The weight of each row if every person has one vote, shared out over their rows."""
        person = self.rows["person"].astype(np.int64)
        return 1.0 / np.bincount(person)[person]


def _degrees(x: Floats, y: Floats) -> Places:
    """Longitude and latitude of places in the city."""
    square = Quadtree.around(BOX, 0)
    return longitude(square.left + square.side * x), latitudes(square.top + square.side * y)


MOST_SLOTS = 200
"""Slots that a plan is tried for, at most: the city has hundreds of thousands of plots in each."""

EACH = 300
"""Seconds between the moments at which the city is looked at; fewer where slots are short."""


@dataclass(frozen=True, eq=False)
class CityInSlots:
    """The people of a made-up city in each slot: they do what they do at the hours of their habits, on all days alike.

    `density` is the law of where and when they are, float64[slots, plots] of sum 1, and `people` how many there are.

    >>> from hazemap.spatial.bounding_box import Box
    >>> from hazemap.spatial.quadtree import Quadtree, latitudes
    >>> from hazemap.temporal.time_slots import Clock
    >>> box = Box(2.2, 48.8, 2.5, 48.9)
    >>> city = CityInSlots.of(SyntheticTable.of(Quadtree.around(box, 6), box, 1_000), Clock.hours("UTC"), 1_000)
    >>> city.people.shape[0], bool(abs(city.density.sum() - 1) < 1e-9)
    (24, True)
    """

    city: SyntheticTable
    slots: Slots
    density: Floats
    people: NDArray[np.int64]

    @classmethod
    def of(cls, city: SyntheticTable, slots: Slots, people: int) -> "CityInSlots":
        """A city of about this many people, the same every time. `InputError` for more slots than a plan can try."""
        if len(slots.names) > MOST_SLOTS:
            raise InputError(f"a plan is tried for at most {MOST_SLOTS} slots; found {len(slots.names):,}")
        density = np.zeros((len(slots.names), len(city.base)))
        moments = moments_of(slots)
        for habit in city.habits:
            place = habit.quarter.density.ravel()[city.inside]
            density += np.outer(habit.share * shares_of(habit, slots, moments), place)
        density /= density.sum()
        return cls(city, slots, density, Quarter(density).counts(Stream.fixed(b"the slots of a plan"), people))

    def votes(self, tree: Tree, bounding: Bounding) -> Votes:
        """Everybody gives as much as the rule allows, all of it in their plot and slot."""
        if not isinstance(tree, TimedTree):
            return Votes.gathered(self.city.base_in(tree), self.people.sum(axis=0) * bounding.sensitivity.l1)
        slot, plot = np.nonzero(self.people)
        where = PlacesAndSlots(self.city.base_in(tree.tree)[plot], slot)
        return Votes.gathered(tree.numbered(where), self.people[slot, plot] * bounding.sensitivity.l1)

    def misplaced(self, made: SlotMaps) -> float:
        """The part of a slot's people that its map puts in a wrong plot; the mean of all slots, by their people."""
        return sum(self._wrong(made, slot) for slot in range(len(self.density)))

    def _wrong(self, made: SlotMaps, slot: int) -> float:
        shown = made.during([slot])
        at = shown.cells.locate(self.city.base_in(shown.cells.tree))
        guess = np.maximum(shown.values, 0)[at] / np.bincount(at, minlength=shown.cells.size)[at]
        people = float(self.density[slot].sum())
        return float(np.abs(guess * (people / max(guess.sum(), 1e-9)) - self.density[slot]).sum() / 2)


def moments_of(slots: Slots) -> Floats:
    """Moments that cover all slots evenly, seconds since 1970: four weeks, or all stretches of time."""
    if isinstance(slots, Spans):
        first, last = slots.edges[0], slots.edges[-1]
        number = max(min((last - first) // EACH, 1 << 20), 8 * len(slots.names))
        return np.asarray(first + (np.arange(number) + 0.5) * ((last - first) / number))
    return np.asarray(START + EACH * np.arange(DAYS * DAY // EACH) + EACH / 2)


def shares_of(habit: Habit, slots: Slots, moments: Floats) -> Floats:
    """The part of a habit that is in each slot: its hours are those that the clocks of the slots show."""
    hours = local(getattr(slots, "zone", "UTC"), moments) % DAY / HOUR
    away = np.abs(hours - habit.usual)
    away = np.minimum(away, 24 - away)
    often = np.exp(-0.5 * (away / habit.spread) ** 2)
    slot = slots.at(moments)
    found = np.bincount(slot[slot >= 0], often[slot >= 0], len(slots.names))
    return np.asarray(found / max(found.sum(), 1e-300))
