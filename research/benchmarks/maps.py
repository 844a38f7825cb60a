"""The maps that the heatmap paper is measured on: people in pixels, as tables and pictures; its measures of error."""

import sys
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from hazemap.cells import Leaves, Tree
from hazemap.engines.memory import MemoryTable
from hazemap.errors import FileError
from hazemap.lab.compare.ground_truth_maps import owners
from hazemap.spatial.quadtree import Quadtree
from hazemap.tables.votes import Votes
from research.benchmarks.city import SHARED
from research.compare.evaluation_datasets import evaluation_datasets

DATA = SHARED / "data"


class Pixels:
    """A table of pixels, each with a number of people of one row: `votes` is all that a trust model asks of it."""

    def __init__(self, columns: dict[str, np.ndarray], people: np.ndarray) -> None:
        self.columns, self.people = columns, people.astype(np.int64)
        self._known: tuple[Tree, Votes] | None = None

    def votes(self, tree: Tree, bounding) -> Votes:  # noqa: ARG002 - everybody has one row
        """The people in the base cells of a tree."""
        if self._known is None or self._known[0] != tree:
            cells = tree.cell_at(self.columns, tree.depth)
            self._known = tree, Votes.gathered(cells[cells != 0], self.people[cells != 0])
        return self._known[1]


@dataclass(frozen=True, eq=False)
class Place:
    """A picture of people, int64[2^depth, 2^depth], somewhere on Earth: where it lies does not matter."""

    name: str
    truth: np.ndarray

    @cached_property
    def tree(self) -> Quadtree:
        """Its base cells are the pixels."""
        return Quadtree(0.2939453125, 0.3759765625, 2.0**-10, self.truth.shape[0].bit_length() - 1)

    @cached_property
    def centres(self) -> dict[str, np.ndarray]:
        """The middle of every pixel in degrees, row by row."""
        west, south, east, north = self.tree.bounds(self.tree.grid(self.tree.depth).ravel())
        return {"lon": (west + east) / 2, "lat": (south + north) / 2}

    @cached_property
    def table(self) -> Pixels:
        """Everybody."""
        return self.some(self.truth)

    def some(self, counts: np.ndarray) -> Pixels:
        """Some of them."""
        there = counts.ravel() > 0
        return Pixels({name: column[there] for name, column in self.centres.items()}, counts.ravel()[there])

    def sample(self, people: int, rng: np.random.Generator) -> np.ndarray:
        """So many of them, drawn without replacement; the same shape as the truth."""
        drawn = rng.multivariate_hypergeometric(self.truth.ravel(), people, method="marginals")
        return drawn.reshape(self.truth.shape)

    def picture(self, cells: Leaves, values: np.ndarray) -> np.ndarray:
        """A map as a number a pixel: every cell spread evenly over the pixels that it owns."""
        at = owners(cells, self.tree)
        pixels = np.bincount(at.ravel(), minlength=cells.size)
        return (values / np.maximum(pixels, 1))[at]

    def coarse(self, counts: np.ndarray, level: int) -> np.ndarray:
        """A picture as seen at a level, spread evenly over pixels again."""
        block = self.truth.shape[0] >> level
        sums = counts.reshape(1 << level, block, 1 << level, block).sum(axis=(1, 3)) / block**2
        return np.repeat(np.repeat(sums, block, axis=0), block, axis=1)


@cache
def new_york() -> Place:
    """The picture of the paper: 1024², a grey level is a number of people, 54.6 M."""
    return _of("New York", "new-york")


@cache
def city() -> Place:
    """The synthetic city: 1024², 3.5 M people."""
    return _of("the city", "city")


def _of(name: str, known: str) -> Place:
    try:
        return Place(name, evaluation_datasets(SHARED).map(known).counts)
    except FileError as error:
        sys.exit(f"skipped: {error}")


@cache
def africa(name: str, west: float, north: float, pixels: int = 64, people: int = 10_000_000) -> Place:
    """A crop of people per km² in pixels of 10 arc-minutes, scaled to so many people."""
    import rasterio

    path = DATA / "rasters" / "afripop2020.tif"
    if not path.exists():
        sys.exit("skipped: the raster of Africa (../shared/data/rasters) is not here")
    with rasterio.open(path) as picture:
        row, column = picture.index(west, north)
        density = picture.read(1)[row : row + pixels, column : column + pixels]
    density = np.where(np.isfinite(density) & (density > 0), density, 0).astype(float)
    shares = (density / density.sum()).ravel()
    counts = np.random.default_rng(1).multinomial(people, shares).reshape(pixels, pixels)
    return Place(name, counts.astype(np.int64))


def lagos() -> Place:
    """The coast from Togo to the delta of the Niger: dense, people all over the map."""
    return africa("around Lagos", 0.0, 13.0)


def coast() -> Place:
    """The Atlantic coast of the Sahara: people in few places along the shore."""
    return africa("a desert coast", -17.6, 30.0)


@dataclass(frozen=True, eq=False)
class Checkins:
    """People with several places each: how often each was where, in the pixels of a square around Tokyo."""

    place: Place
    rows: MemoryTable

    @cached_property
    def single(self) -> MemoryTable:
        """Everybody's most visited pixel alone."""
        base = self.place.tree.cell_at(self.rows.columns, self.place.tree.depth)
        pairs, first, visits = np.unique(
            np.column_stack([self.rows.person, base.view(np.int64)]), axis=0, return_index=True, return_counts=True
        )
        order = np.lexsort((-visits, pairs[:, 0]))
        _, begins = np.unique(pairs[order, 0], return_index=True)
        chosen = first[order[begins]]
        return MemoryTable(self.rows.person[chosen], {name: c[chosen] for name, c in self.rows.columns.items()})


@cache
def tokyo(depth: int = 7) -> Checkins:
    """2,173 people, 306,778 check-ins. The truth is everybody's own distribution, summed, in 1/10,000 of a person."""
    import pyarrow.parquet as pq

    path = DATA / "foursquare_tokyo_2012_2013_no_ts.parquet"
    if not path.exists():
        sys.exit("skipped: the check-ins of Tokyo (../shared/data) are not here")
    table = pq.read_table(path, columns=["user", "lon", "lat"])
    person, lon, lat = (table[name].to_numpy() for name in ("user", "lon", "lat"))
    here = Place("Tokyo", np.zeros((1 << depth, 1 << depth), dtype=np.int64))
    west, south, east, north = (float(edge[0]) for edge in here.tree.bounds(here.tree.root))
    span = max(np.ptp(lon), np.ptp(lat)) * 1.0001
    columns = {
        "lon": west + (lon - lon.min()) / span * (east - west),
        "lat": south + (lat - lat.min()) / span * (north - south),
    }
    rows = MemoryTable(person.astype(np.int64), columns)
    pixel = np.searchsorted(np.sort(here.tree.grid(depth).ravel()), here.tree.cell_at(columns, depth))
    order = np.argsort(here.tree.grid(depth).ravel())
    each = 1 / np.bincount(person)[person]
    truth = np.bincount(order[pixel], each, 4**depth).reshape(here.truth.shape)
    return Checkins(Place("Tokyo", np.rint(truth * 10_000).astype(np.int64)), rows)


def errors(place: Place, picture: np.ndarray) -> dict[str, float]:
    """The measures of the paper (table 3, appendix A.1), of densities: both maps clipped at 0 and normalised to sum 1.

    MAPE puts the least positive density where the truth is 0; sMAPE is |p − q|/(p + q), MAAPE arctan |p − q|/p.
    """
    p, q = place.truth / place.truth.sum(), np.clip(picture, 0, None)
    q = q / q.sum() if q.sum() > 0 else q
    gap, some = np.abs(p - q), (p + q) > 0
    return {
        "mse": float((gap**2).mean()),
        "l1": float(gap.sum()),
        "mape": float((gap / np.where(p > 0, p, p[p > 0].min())).mean()),
        "smape": float(np.divide(gap, p + q, out=np.zeros_like(p), where=some).mean()),
        "maape": float(np.arctan2(gap, p).mean()),
    }
