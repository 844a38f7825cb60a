"""A city that does not exist, to try things on: a river, a sea, a centre, districts, arterial roads, a park.

Everything about it is public and seeded, so nothing here is noise: floats decide. Places are on a square of
`side`² plots, row 0 in the north.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Floats
from hazemap.privacy.random_stream import Stream

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
    """Where people may be found for one reason: a density over the plots, float64[side, side], of sum 1."""

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
        """About how many of so many people are on each plot: independent Poisson numbers, int64[side, side]."""
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
    """Where its people live, work, go out and travel.

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

    @cached_property
    def day(self) -> Quarter:
        """Everyone, at any time of day: 40 % at home, 25 % at work, 20 % out, 15 % on the way."""
        parts = ((0.4, self.homes), (0.25, self.offices), (0.2, self.venues), (0.15, self.streets))
        return Quarter(sum((share * part.density for share, part in parts), np.zeros_like(self.homes.density)))


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
