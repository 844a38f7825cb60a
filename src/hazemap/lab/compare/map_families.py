"""Maps of many kinds, made up: coasts, islands, corridors, spikes, checkerboards, heavy tails, rings …

A family is a density over 256 × 256 pixels and a number of people. Everything is public and seeded by the family's
name, so that everybody has the same people in the same pixels. Rows and columns run from 0 to 1, row 0 in the
north. They consist of distances, bells, lines, hills and single pixels.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.machine_code.arrays import Floats
from hazemap.planning.synthetic_city import Quarter, normal, uniform
from hazemap.privacy.random_stream import Stream

SIDE = 256
AXIS = (np.arange(SIDE) + 0.5) / SIDE
ROW, COLUMN = np.meshgrid(AXIS, AXIS, indexing="ij")


def distance(row: float, column: float) -> Floats:
    """How far each pixel is from a place."""
    return np.hypot(ROW - row, COLUMN - column)


def bell(row: float, column: float, spread: float) -> Floats:
    """A Gaussian of sum 1."""
    bell = np.exp(-0.5 * (distance(row, column) / spread) ** 2)
    return np.asarray(bell / max(bell.sum(), 1e-300))


def segment(start: tuple[float, float], end: tuple[float, float]) -> Floats:
    """How far each pixel is from a straight line between two places."""
    along = np.subtract(end, start)
    part = ((ROW - start[0]) * along[0] + (COLUMN - start[1]) * along[1]) / max(float(along @ along), 1e-12)
    part = np.clip(part, 0, 1)
    away = np.hypot(ROW - start[0] - part * along[0], COLUMN - start[1] - part * along[1])
    return np.asarray(away, dtype=np.float64)


def hills(stream: Stream, steepness: float) -> Floats:
    """Smooth random heights of mean 0 and deviation 1: noise whose spectrum falls by this power of the frequency."""
    waves = np.fft.fftfreq(SIDE) * SIDE
    frequency = np.maximum(np.hypot(*np.meshgrid(waves, waves)), 1.0)
    heights = np.fft.ifft2(np.fft.fft2(normal(stream, SIDE * SIDE).reshape(SIDE, SIDE)) / frequency**steepness).real
    return np.asarray((heights - heights.mean()) / heights.std())


def pixels(places: NDArray[np.int64], weights: Floats) -> Floats:
    """Weights in some pixels, nothing elsewhere."""
    return np.asarray(np.bincount(places, weights, SIDE * SIDE).reshape(SIDE, SIDE), dtype=np.float64)


def anywhere(stream: Stream, number: int) -> NDArray[np.int64]:
    """So many pixels at random; some may come twice."""
    return (uniform(stream, number) * SIDE * SIDE).astype(np.int64)


class MapFamily(NamedTuple):
    """A density of any sum over the pixels, drawn with a stream, and how many people there are, nearly."""

    name: str
    what: str
    people: int
    density: Callable[[Stream], Floats]

    def map(self) -> GroundTruthMap:
        """Independent Poisson numbers of people in the pixels.

        >>> FAMILIES["dust"].map().people
        1989
        """
        stream = Stream.fixed(f"the map {self.name}".encode())
        density = self.density(stream)
        counts = Quarter(density / density.sum()).counts(stream, self.people)
        return GroundTruthMap.of(self.name, counts, self.what)


def _coast(stream: Stream) -> Floats:
    """Land where random hills are above the sea; the nearer to sea level, the more people."""
    heights = hills(stream, 1.8)
    return np.asarray(np.where(heights > 0.1, np.exp(-(heights - 0.1) / 0.25) + 0.02, 0.0))


def _islands(stream: Stream) -> Floats:
    """A dozen round islands of different sizes, full to the shore and fullest in the middle."""
    density = np.zeros((SIDE, SIDE))
    for row, column, size in uniform(stream, 36).reshape(12, 3):
        radius = 0.01 + 0.07 * size**3
        away = distance(row, column) / radius
        density += np.where(away < 1, 1 + 5 * np.exp(-4 * away**2), 0)
    return density


def _corridor(stream: Stream) -> Floats:
    """A winding valley with towns along it, and nobody beside it."""
    phase, *where = uniform(stream, 31)
    middle = 0.5 + 0.22 * np.sin(2 * np.pi * (1.3 * COLUMN + phase)) + 0.06 * np.sin(2 * np.pi * 4.1 * COLUMN)
    towns = sum((np.exp(-0.5 * ((COLUMN - at) / 0.012) ** 2) * (1 + 20 * at) for at in where), np.zeros((SIDE, SIDE)))
    return np.asarray(np.exp(-0.5 * ((ROW - middle) / 0.012) ** 2) * (1 + towns))


def _spike(stream: Stream) -> Floats:
    """Nine in ten in one pixel, the others spread evenly."""
    return np.full((SIDE, SIDE), 0.1 / SIDE**2) + pixels(anywhere(stream, 1), np.array([0.9]))


def _checkerboard(stream: Stream) -> Floats:  # noqa: ARG001 - nothing is drawn
    """Twenty by twenty squares, every other one empty: no border is one of a quadtree's but the middle."""
    return np.asarray((np.floor(ROW * 20) + np.floor(COLUMN * 20)) % 2)


def _heavy_tail(stream: Stream) -> Floats:
    """One pixel in twenty has someone, by Pareto's law with index 1.1."""
    number = SIDE * SIDE // 20
    return pixels(anywhere(stream, number), uniform(stream, number) ** (-1 / 1.1))


def _commuter_rings(stream: Stream) -> Floats:  # noqa: ARG001 - nothing is drawn
    """A core and four rings of suburbs around it, thin country between them."""
    away = distance(0.47, 0.52)
    rings = sum((np.exp(-0.5 * ((away - at) / 0.012) ** 2) / at for at in (0.1, 0.2, 0.3, 0.4)), 0.05 + 0 * away)
    return np.asarray(rings + 30 * np.exp(-0.5 * (away / 0.02) ** 2))


def _rivers(stream: Stream) -> Floats:
    """Settlements along a river and its branches, which fork six times."""
    ends, nearest = [(1.0, 0.5, -np.pi / 2)], np.full((SIDE, SIDE), 2.0)
    for fork in range(7):
        luck, grown = uniform(stream, 4 * len(ends)).reshape(-1, 2, 2), []
        for (row, column, angle), both in zip(ends, luck, strict=True):
            for side, (turn, length) in zip((-1, 1), both, strict=True):
                new = angle + side * (0.2 + 0.6 * turn)
                step = 0.22 * 0.78**fork * (0.6 + 0.8 * length)
                end = (row + step * np.sin(new), column + step * np.cos(new))
                nearest = np.minimum(nearest, segment((row, column), end))
                grown.append((*end, new))
        ends = grown
    return np.exp(-nearest / 0.006)


def _streets(stream: Stream) -> Floats:
    """A grid of streets a pixel wide, nobody between them; each street has its own number of people."""
    rows, columns = np.exp(normal(stream, SIDE)), np.exp(normal(stream, SIDE))
    rows[np.arange(SIDE) % 11 != 3] = 0
    columns[np.arange(SIDE) % 17 != 5] = 0
    return np.asarray(rows[:, None] + columns)


def _villages(stream: Stream) -> Floats:
    """Four hundred villages, the r-th largest with 1/r of the people of the largest (Zipf)."""
    where = uniform(stream, 800).reshape(400, 2)
    return sum((bell(row, column, 0.004) / rank for rank, (row, column) in enumerate(where, 1)), np.zeros((SIDE, SIDE)))


def _gradient(stream: Stream) -> Floats:  # noqa: ARG001 - nothing is drawn
    """A hundred times as many people in the south-east as in the north-west, and no step between."""
    return np.asarray(100.0 ** ((ROW + COLUMN) / 2))


def _cascade(stream: Stream) -> Floats:
    """Each square's people are dealt to its quarters by chance, eight times: rough at every scale."""
    density = np.ones((1, 1))
    while len(density) < SIDE:
        density = density.repeat(2, axis=0).repeat(2, axis=1)
        density *= np.exp(0.9 * normal(stream, density.size)).reshape(density.shape)
    return density


def _half_empty(stream: Stream) -> Floats:  # noqa: ARG001 - nothing is drawn
    """Spread evenly west of a straight border, nobody east of it."""
    return np.where(COLUMN + 0.2 * ROW < 0.53, 1.0, 0.0)


def _campus(stream: Stream) -> Floats:
    """Eight buildings of equal size in an empty field."""
    where = uniform(stream, 16).reshape(8, 2)
    return sum(
        (np.where(np.maximum(abs(ROW - row), abs(COLUMN - column)) < 0.02, 1.0, 0.0) for row, column in where),
        np.zeros((SIDE, SIDE)),
    )


def _lakes(stream: Stream) -> Floats:
    """Even country with round lakes."""
    density = np.ones((SIDE, SIDE))
    for row, column, size in uniform(stream, 60).reshape(20, 3):
        density[distance(row, column) < 0.02 + 0.09 * size] = 0
    return density


def _bay(stream: Stream) -> Floats:
    """A city on a bay: one third is sea, and people are fewer the farther from a centre on the shore."""
    shore = 0.36 + 0.03 * hills(stream, 2.2)
    away = distance(0.55, 0.42)
    return np.asarray(np.where(shore < COLUMN, np.exp(-away / 0.12) + 0.01, 0.0))


def _two_towns(stream: Stream) -> Floats:  # noqa: ARG001 - nothing is drawn
    """A large town, a small one, and thin country."""
    return 0.6 * bell(0.31, 0.28, 0.06) + 0.2 * bell(0.7, 0.77, 0.02) + 0.2 / SIDE**2


def _patchwork(stream: Stream) -> Floats:
    """Sixty districts, each the places nearest to one, each spread evenly with a density of its own."""
    where, densities = uniform(stream, 120).reshape(60, 2), np.exp(1.5 * normal(stream, 60))
    return np.asarray(densities[np.argmin([distance(row, column) for row, column in where], axis=0)])


def _highways(stream: Stream) -> Floats:
    """Twelve straight roads across the map, and few people between them."""
    density = np.full((SIDE, SIDE), 0.02)
    for at, to, turn in uniform(stream, 36).reshape(12, 3):
        ends = ((0.0, at), (1.0, to)) if turn < 0.5 else ((at, 0.0), (to, 1.0))
        density += np.exp(-((segment(*ends) / 0.004) ** 2))
    return density


def _hill_country(stream: Stream) -> Floats:
    """A smooth random landscape, with e³ times as many people on high places as on low ones."""
    return np.exp(1.5 * hills(stream, 2.0))


def _dust(stream: Stream) -> Floats:  # noqa: ARG001 - nothing is drawn
    """A few people spread evenly."""
    return np.ones((SIDE, SIDE))


def _spikes(stream: Stream) -> Floats:
    """Fifty full pixels, the r-th with 1/r of the people of the first, and nobody else."""
    return pixels(anywhere(stream, 50), 1 / np.arange(1.0, 51))


def _band(stream: Stream) -> Floats:  # noqa: ARG001 - nothing is drawn
    """A slanting band with sharp edges, a tenth of the map, ten times as full as the rest."""
    return np.where(abs(ROW - 0.3 - 0.45 * COLUMN) < 0.06, 10.0, 1.0)


def _crescent(stream: Stream) -> Floats:
    """A crescent of people, fullest at one end, with clusters on it."""
    away, angle = distance(0.5, 0.5), np.arctan2(ROW - 0.5, COLUMN - 0.5)
    clusters = 1 + sum((3 * np.exp(-(((angle - at * 3) / 0.05) ** 2)) for at in uniform(stream, 12)), 0 * away)
    return np.asarray(np.exp(-0.5 * ((away - 0.33) / 0.03) ** 2) * np.exp(-0.6 * abs(angle)) * clusters)


def _farmsteads(stream: Stream) -> Floats:
    """Twenty-five small squares in empty country, some four times as full as others."""
    density = np.zeros((SIDE, SIDE))
    for row, column, size, full in uniform(stream, 100).reshape(25, 4):
        inside = np.maximum(abs(ROW - row), abs(COLUMN - column)) < 0.006 + 0.014 * size
        density[inside] += 4.0**full
    return density


def _festival(stream: Stream) -> Floats:
    """Four fifths on one round meadow, the others on three small ones."""
    (row, column), *others = uniform(stream, 8).reshape(4, 2)
    small = sum((distance(*at) < 0.015 for at in others), np.zeros((SIDE, SIDE)))
    large = np.where(distance(row, column) < 0.05, 1.0, 0.0)
    return np.asarray(0.8 * large / large.sum() + 0.2 * small / small.sum())


def _mesh(stream: Stream) -> Floats:
    """Slanting lanes a pixel wide in two directions, nobody between them; each lane has its own number of people."""
    rows, columns = np.meshgrid(np.arange(SIDE), np.arange(SIDE), indexing="ij")
    density = np.zeros((SIDE, SIDE))
    for at, every in ((rows + columns, 13), (2 * rows - columns + SIDE, 38)):
        weights = np.exp(normal(stream, 3 * SIDE))
        density += np.where(at % every == 0, weights[at], 0)
    return density


def _parcels(stream: Stream) -> Floats:
    """Two hundred parcels, each the places nearest to one, half of them empty and the others evenly full."""
    where, luck = uniform(stream, 400).reshape(200, 2), uniform(stream, 200)
    nearest = np.argmin([distance(row, column) for row, column in where], axis=0)
    return np.asarray(np.where(luck < 0.5, 0.0, 1 + luck)[nearest])


def _pond(stream: Stream) -> Floats:  # noqa: ARG001 - nothing is drawn
    """Spread evenly inside an ellipse, nobody outside it."""
    return np.where(((ROW - 0.44) / 0.22) ** 2 + ((COLUMN - 0.57) / 0.37) ** 2 < 1, 1.0, 0.0)


def _spiral(stream: Stream) -> Floats:  # noqa: ARG001 - nothing is drawn
    """One arm that winds out from a centre, and thins."""
    away, angle = distance(0.48, 0.53), np.arctan2(ROW - 0.48, COLUMN - 0.53)
    turn = np.mod(away / 0.11 - angle / (2 * np.pi) + 0.5, 1) - 0.5
    return np.asarray(np.exp(-0.5 * (turn * 0.11 / 0.012) ** 2 - away / 0.2))


def _terraces(stream: Stream) -> Floats:  # noqa: ARG001 - nothing is drawn
    """Nine even steps across the map, each twice as full as the one before."""
    return np.asarray(2.0 ** np.floor(9 * (0.7 * ROW + 0.3 * COLUMN)))


def _stations(stream: Stream) -> Floats:
    """Stops along three straight lines, and thin country."""
    density = np.full((SIDE, SIDE), 0.15 / SIDE**2)
    for start, end in uniform(stream, 12).reshape(3, 2, 2):
        for along, size in uniform(stream, 26).reshape(13, 2):
            row, column = start + along * (end - start)
            density += 0.85 / 39 * (0.4 + 1.2 * size) * bell(row, column, 0.006)
    return density


def _donut(stream: Stream) -> Floats:  # noqa: ARG001 - nothing is drawn
    """An even ring with sharp edges, empty inside and outside."""
    return np.where(abs(distance(0.52, 0.49) - 0.335) < 0.085, 1.0, 0.0)


def _allotments(stream: Stream) -> Floats:
    """Twelve by twelve rectangles of irregular sides, each even, with numbers by Pareto's law with index 1.5."""
    rows, columns = (np.searchsorted(np.sort(uniform(stream, 11)), AXIS) for _ in range(2))
    weights = uniform(stream, 144).reshape(12, 12) ** (-1 / 1.5)
    return np.asarray(weights[rows[:, None], columns])


def _homesteads(stream: Stream) -> Floats:
    """Three thousand single pixels at random, and a small town."""
    number = 3000
    homes = pixels(anywhere(stream, number), -np.log(uniform(stream, number) + 1e-12))
    return np.asarray(0.7 * homes / homes.sum() + 0.3 * bell(0.63, 0.34, 0.02))


def _rounded(stream: Stream) -> Floats:
    """Hill country whose coordinates were rounded: one pixel in sixty-four has anybody."""
    density = np.zeros((SIDE, SIDE))
    density[4::8, 4::8] = _hill_country(stream)[4::8, 4::8]
    return density


def _stops(stream: Stream) -> Floats:
    """Three thousand stops on even country, much the same in size."""
    return pixels(anywhere(stream, 3000), np.exp(0.5 * normal(stream, 3000)))


def _delta(stream: Stream) -> Floats:
    """A fan of land that widens to the sea, cut into strips by arms of a river, and fullest where they part."""
    away, angle = distance(0.12, 0.5), np.arctan2(COLUMN - 0.5, ROW - 0.12)
    full = np.exp(normal(stream, 9))
    strip = np.clip(((angle + 0.9) / 0.2).astype(np.int64), 0, 8)
    water = np.abs(np.mod((angle + 0.9) / 0.2 + 0.5, 1) - 0.5) < 0.08
    land = (abs(angle) < 0.9) & (away < 0.8) & ~water
    return np.asarray(np.where(land, full[strip] * np.exp(-away / 0.35), 0.0))


def _suburb(stream: Stream) -> Floats:
    """A hundred and twenty closes of equal size, each a round cluster, on a grid that chance has moved."""
    moved = uniform(stream, 240).reshape(120, 2)
    where = ((k // 12 + 0.25 + 0.5 * moved[k, 0], k % 12 + 0.25 + 0.5 * moved[k, 1]) for k in range(120))
    return sum((bell(0.05 + 0.09 * row, 0.02 + 0.08 * column, 0.011) for row, column in where), np.zeros((SIDE, SIDE)))


def _frontier(stream: Stream) -> Floats:
    """Two countries with a winding border, one six times as full, and a town on either side of a bridge."""
    waves = 0.06 * np.sin(9 * COLUMN + 6 * uniform(stream, 1)[0]) + 0.03 * np.sin(23 * COLUMN)
    land = np.where(0.55 + waves > ROW, 6.0, 1.0)
    return np.asarray(land / land.sum() + 0.25 * (bell(0.5, 0.66, 0.018) + 0.5 * bell(0.63, 0.66, 0.012)))


def _hedgerows(stream: Stream) -> Floats:
    """Along the borders of ninety fields, and few people in them."""
    where = uniform(stream, 180).reshape(90, 2)
    nearest = np.sort([distance(row, column) for row, column in where], axis=0)[:2]
    return np.asarray(0.05 + np.exp(-(((nearest[1] - nearest[0]) / 0.008) ** 2)))


def _camps(stream: Stream) -> Floats:
    """Fourteen round camps in empty country, of three sizes and equally dense."""
    where = uniform(stream, 28).reshape(14, 2)
    camps = (distance(row, column) < 0.01 * (1 + k % 3) for k, (row, column) in enumerate(where))
    return sum((np.where(camp, 1.0, 0.0) for camp in camps), np.zeros((SIDE, SIDE)))


def _clusters(stream: Stream) -> Floats:
    """Eight regions, each of twelve towns, each of eight quarters, all with numbers of their own."""
    density = np.zeros((SIDE, SIDE))
    for row, column in 0.12 + 0.76 * uniform(stream, 16).reshape(8, 2):
        for north, east, size in zip(*normal(stream, 36).reshape(3, 12), strict=True):
            for up, right, full in zip(*normal(stream, 24).reshape(3, 8), strict=True):
                place = (row + 0.07 * north + 0.012 * up, column + 0.07 * east + 0.012 * right)
                density += np.exp(size + full) * bell(*place, 0.003)
    return density


FAMILIES = {
    family.name: family
    for family in (
        MapFamily("coast", "a coast with bays, full along the shore", 200_000, _coast),
        MapFamily("islands", "twelve islands in a sea", 100_000, _islands),
        MapFamily("corridor", "towns along a winding valley", 150_000, _corridor),
        MapFamily("spike", "nine in ten in one pixel, the others spread evenly", 100_000, _spike),
        MapFamily("checkerboard", "20 × 20 squares, every other one empty", 200_000, _checkerboard),
        MapFamily("heavy-tail", "one pixel in twenty has someone, by Pareto's law", 300_000, _heavy_tail),
        MapFamily("commuter-rings", "a core and four rings around it", 400_000, _commuter_rings),
        MapFamily("rivers", "along a river that forks", 100_000, _rivers),
        MapFamily("streets", "on streets a pixel wide", 300_000, _streets),
        MapFamily("villages", "four hundred villages by Zipf's law", 150_000, _villages),
        MapFamily("gradient", "a hundred times fuller from corner to corner", 500_000, _gradient),
        MapFamily("cascade", "rough at every scale", 1_000_000, _cascade),
        MapFamily("half-empty", "spread evenly on one side of a border", 50_000, _half_empty),
        MapFamily("campus", "eight buildings in a field", 3_000, _campus),
        MapFamily("lakes", "even country with lakes", 150_000, _lakes),
        MapFamily("bay", "a city on a bay, one third sea", 300_000, _bay),
        MapFamily("two-towns", "two towns and thin country", 80_000, _two_towns),
        MapFamily("patchwork", "sixty districts, each spread evenly", 250_000, _patchwork),
        MapFamily("highways", "along straight roads", 120_000, _highways),
        MapFamily("hill-country", "a smooth random landscape", 400_000, _hill_country),
        MapFamily("dust", "two thousand people spread evenly", 2_000, _dust),
        MapFamily("spikes", "fifty full pixels", 30_000, _spikes),
        MapFamily("band", "a slanting band ten times as full as the rest", 60_000, _band),
        MapFamily("crescent", "a crescent with clusters on it", 40_000, _crescent),
        MapFamily("farmsteads", "twenty-five small squares in empty country", 5_000, _farmsteads),
        MapFamily("festival", "one full meadow and three small ones", 4_000, _festival),
        MapFamily("mesh", "on slanting lanes a pixel wide", 200_000, _mesh),
        MapFamily("parcels", "two hundred parcels, every other one empty", 100_000, _parcels),
        MapFamily("spiral", "one arm that winds out from a centre", 120_000, _spiral),
        MapFamily("terraces", "nine even steps, each twice as full", 200_000, _terraces),
        MapFamily("stations", "stops along three lines", 80_000, _stations),
        MapFamily("donut", "an even ring", 60_000, _donut),
        MapFamily("allotments", "irregular rectangles by Pareto's law", 300_000, _allotments),
        MapFamily("homesteads", "single homes and a small town", 25_000, _homesteads),
        MapFamily("pond", "spread evenly inside an ellipse", 30_000, _pond),
        MapFamily("rounded", "hill country with rounded coordinates", 200_000, _rounded),
        MapFamily("stops", "three thousand stops on even country", 500_000, _stops),
        MapFamily("delta", "a fan of land between the arms of a river", 90_000, _delta),
        MapFamily("suburb", "a hundred and twenty round closes", 40_000, _suburb),
        MapFamily("frontier", "two countries and a town on their border", 150_000, _frontier),
        MapFamily("hedgerows", "along the borders of fields", 70_000, _hedgerows),
        MapFamily("camps", "fourteen round camps in empty country", 15_000, _camps),
        MapFamily("clusters", "quarters of towns of regions", 350_000, _clusters),
    )
}
"""Every family by its name."""
