"""Scores of a released map, with names and units, and errors of range queries.

Range queries ask how many people are in a rectangle. The workloads are those of the literature on private maps: 2,000
rectangles of random shape and size, and as many squares of 2, 6 and 10 % of the area (Shaham et al. 2021). A workload
is public and comes from a seed, so that all methods get the same questions.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hazemap.errors import InputError
from hazemap.lab.compare import density_metrics as densities
from hazemap.lab.compare.earth_movers_distance import emd
from hazemap.lab.compare.ground_truth_maps import GroundTruthMap
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.privacy.random_stream import Stream

WORKLOADS: dict[str, float | None] = {"random": None, "2%": 0.02, "6%": 0.06, "10%": 0.10}
"""The share of the area that each rectangle of a workload has, before the border of the map cuts it."""

SMOOTHING = 20.0
"""People: the error of a count below it is divided by it, lest empty rectangles weigh without bound."""


class QueryRectangles(NamedTuple):
    """Rows north ≤ r < south and columns west ≤ c < east of a grid, int64[n] each; none is empty.

    >>> one = QueryRectangles(*np.array([[0], [2], [1], [3]]))
    >>> sums(np.arange(9).reshape(3, 3), one)
    array([12.])
    """

    north: Ints
    south: Ints
    west: Ints
    east: Ints


def rectangles(seed: bytes, shape: tuple[int, int], number: int = 2000, area: float | None = None) -> QueryRectangles:
    """A workload for a grid of `shape` pixels, the same for the same seed.

    Centres are uniform on the map. Without an `area`, height and width are uniform up to those of the map, each
    on its own; with one, each rectangle is a small copy of the map with this share of its area. What lies outside
    the map is cut off, and pixels that are touched belong.
    """
    if min(shape) < 1 or number < 1 or (area is not None and not 0 < area <= 1):
        raise InputError(
            f"rectangles need a grid, a number of them and an area up to 1; found {shape}, {number}, {area}"
        )
    stream = Stream.fixed(b"rectangles " + seed)
    luck = (stream.words(4 * number) >> np.uint64(11)).astype(np.float64).reshape(4, number) * 2.0**-53
    return laid(luck[:2], luck[2:] if area is None else np.full((2, number), np.sqrt(area)), shape)


def workloads(seed: bytes, shape: tuple[int, int], number: int = 2000) -> dict[str, QueryRectangles]:
    """All of `WORKLOADS` for a grid, by name."""
    return {name: rectangles(name.encode() + b" " + seed, shape, number, area) for name, area in WORKLOADS.items()}


def laid(centres: Floats, sizes: Floats, shape: tuple[int, int]) -> QueryRectangles:
    """The pixels that rectangles touch: float64[2, n] of centres and of sizes, rows first, as parts of the map."""
    sides = []
    for centre, size, pixels in zip(centres, sizes, shape, strict=True):
        start = np.clip(np.floor(centre * pixels - size * pixels / 2), 0, pixels - 1).astype(np.int64)
        end = np.clip(np.ceil(centre * pixels + size * pixels / 2), 1, pixels).astype(np.int64)
        sides += [start, np.maximum(end, start + 1)]
    return QueryRectangles(*sides)


def sums(numbers: ArrayLike, asked: QueryRectangles) -> Floats:
    """What a grid holds in each rectangle, float64[n]: O(pixels + n), by cumulative sums (exact for whole numbers)."""
    grid = np.asarray(numbers)
    if grid.ndim != 2:
        raise InputError(f"rectangles are asked of a grid of rows and columns, not of {grid.ndim} axes")
    outside = (asked.north < 0) | (asked.south > grid.shape[0]) | (asked.west < 0) | (asked.east > grid.shape[1])
    if outside.any():
        raise InputError(f"rectangles of a larger grid were asked of one of {grid.shape} pixels")
    table = np.zeros((grid.shape[0] + 1, grid.shape[1] + 1), np.int64 if grid.dtype.kind in "iub" else np.float64)
    inner = table[1:, 1:]
    np.cumsum(grid, axis=0, out=inner)
    np.cumsum(inner, axis=1, out=inner)
    north, south, west, east = asked
    return np.asarray(table[south, east] - table[north, east] - table[south, west] + table[north, west], np.float64)


def relative_errors(exact: ArrayLike, found: ArrayLike, smoothing: float = SMOOTHING) -> Floats:
    """|found − exact| / max(exact, smoothing) of each answer, as a fraction.

    >>> relative_errors([100.0, 0.0], [90.0, 5.0])
    array([0.1 , 0.25])
    """
    exact, found = np.asarray(exact, np.float64), np.asarray(found, np.float64)
    if exact.shape != found.shape or not smoothing > 0:
        raise InputError("every exact answer is compared with one that was found, with a smoothing above 0")
    return np.asarray(np.abs(found - exact) / np.maximum(exact, smoothing))


def mre(true: ArrayLike, estimate: ArrayLike, asked: QueryRectangles, smoothing: float = SMOOTHING) -> float:
    """Mean relative error of the counts in rectangles, as a fraction (times 100 for the per cent of most papers).

    Both maps are counts of people, not densities, and an estimate may be negative.
    """
    return float(relative_errors(sums(true, asked), sums(estimate, asked), smoothing).mean())


VERSION = 1
"""Raised whenever a score means something else than before: what was measured before is measured again."""

WORKLOAD = b"the queries of comparisons"
"""The seed of the rectangles: everybody asks the same ones."""

EMD_DEPTH = 8
"""The earth mover's distance is taken between maps of 4^8 pixels: exact in about a second."""

DENSITIES = {
    "mse": densities.mse,
    "l1": densities.l1,
    "l2": densities.l2,
    "kl": densities.kl,
    "similarity": densities.similarity,
    "pearson": densities.pearson,
    "mape": densities.mape,
    "smape": densities.smape,
    "maape": densities.maape,
}
"""What is said of the density that a map shows, pixel by pixel; `densities` has the formulas."""

MRE = {"random": "mre", "2%": "mre_2", "6%": "mre_6", "10%": "mre_10"}
"""The column of each workload's mean relative error; `unbiased_` stands before that of the unbiased numbers."""

Scores = dict[str, float]


@dataclass(frozen=True, eq=False)
class Scorer:
    """The truth, and what of it every score asks again and again."""

    truth: GroundTruthMap

    @cached_property
    def asked(self) -> dict[str, QueryRectangles]:
        """The range queries, by workload."""
        return workloads(WORKLOAD, self.truth.counts.shape)

    @cached_property
    def _together(self) -> QueryRectangles:
        """All workloads one after the other, so that a picture is summed up once."""
        return QueryRectangles(*(np.concatenate(parts) for parts in zip(*self.asked.values(), strict=True)))

    @cached_property
    def _exact(self) -> Floats:
        return sums(self.truth.counts, self._together)

    @cached_property
    def _density(self) -> Floats:
        return densities.density(self.truth.counts)

    @cached_property
    def _coarse(self) -> Floats:
        return seen_at(self._density, min(EMD_DEPTH, self.truth.tree.depth))

    def ranges(self, picture: Floats) -> Scores:
        """Mean relative error of each workload, as a fraction, from people in each pixel (perhaps below 0)."""
        errors = relative_errors(self._exact, sums(picture, self._together))
        parts = np.split(errors, np.cumsum([len(one.north) for one in self.asked.values()])[:-1])
        return {MRE[name]: float(part.mean()) for name, part in zip(WORKLOADS, parts, strict=True)}

    def all(self, shown: Floats, unbiased: Floats) -> Scores:
        """Range queries on both readings of a map, and every score of the density that it shows."""
        found = self.ranges(shown)
        found |= {f"unbiased_{name}": error for name, error in self.ranges(unbiased).items()}
        estimate = densities.density(shown)
        return found | {name: score(self._density, estimate) for name, score in DENSITIES.items()}

    def moved(self, shown: Floats) -> Scores:
        """Exact earth mover's distance: ground metric L1, the side of the map is 1; about 1 CPU second."""
        estimate = seen_at(densities.density(shown), min(EMD_DEPTH, self.truth.tree.depth))
        return {"emd": emd(self._coarse, estimate)}


def seen_at(density: Floats, depth: int) -> Floats:
    """A square density in 4^depth larger pixels."""
    side, block = 1 << depth, len(density) >> depth
    return np.asarray(density.reshape(side, block, side, block).sum(axis=(1, 3)))


@dataclass(frozen=True)
class MetricLabel:
    """A column of results: the words of an axis, what it is multiplied by to be shown, and how a table writes it.

    >>> MEASURES["mre"].written(0.0058)
    '0.580'
    """

    score: str
    words: str
    short: str
    factor: float = 1.0
    form: str = ".3f"
    logarithmic: bool = True
    higher: bool = False
    plain: bool = False
    """No score: none is the best, and none needs an interval."""

    def written(self, number: float) -> str:
        """As in a table; empty where nothing was measured."""
        return "" if number != number else format(number * self.factor, self.form)  # noqa: PLR0124 - NaN alone


_EVERY = (
    MetricLabel("mre", "mean relative error of random rectangles, %", "rectangles, %", 100),
    MetricLabel("mre_2", "mean relative error of squares of 2 % of the area, %", "2 % squares, %", 100),
    MetricLabel("mre_6", "mean relative error of squares of 6 % of the area, %", "6 % squares, %", 100),
    MetricLabel("mre_10", "mean relative error of squares of 10 % of the area, %", "10 % squares, %", 100),
    MetricLabel(
        "unbiased_mre", "mean relative error of random rectangles, unbiased numbers, %", "rectangles, unbiased, %", 100
    ),
    MetricLabel("l1", "L1 of the density (0 to 2)", "L1"),
    MetricLabel("l2", "L2 of the density", "L2", form=".4f"),
    MetricLabel("mse", "MSE of the density, 10⁻¹²", "MSE, 10⁻¹²", 1e12, ".3g"),
    MetricLabel("kl", "Kullback–Leibler divergence, nats", "KL, nats"),
    MetricLabel("similarity", "similarity (1 is best)", "similarity", logarithmic=False, higher=True),
    MetricLabel("pearson", "Pearson’s correlation (1 is best)", "Pearson", logarithmic=False, higher=True),
    MetricLabel("emd", "earth mover’s distance (L1, side of the map = 1)", "EMD, sides of the map", form=".4f"),
    MetricLabel(
        "advantage", "how often an attacker tells apart who is there, beyond chance", "told apart", logarithmic=False
    ),
    MetricLabel("bound", "what no attacker exceeds", "at most", form=".2f", logarithmic=False, plain=True),
    MetricLabel("located", "newcomers found between two maps, %", "newcomers found, %", 100, ".0f", logarithmic=False),
    MetricLabel("chance", "newcomers found by chance, %", "by chance, %", 100, ".0f", logarithmic=False, plain=True),
    MetricLabel("seconds", "CPU seconds of a release", "CPU s", form=".3g"),
    MetricLabel("cells", "cells", "cells", form=",.0f", plain=True),
)
MEASURES = {measure.score: measure for measure in _EVERY}
"""Every score that tables and figures show. Experiments that measure more add the labels of theirs."""
