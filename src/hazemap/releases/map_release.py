"""What is published: a map with its statement, and all that is needed to check it and to ask it questions."""

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from hazemap.arrays import Floats
from hazemap.cellmap import CellMap, Independent, Reading
from hazemap.errors import FileError, InputError
from hazemap.estimate.disaggregation import EvenDisaggregation, finer
from hazemap.estimate.empirical_bayes import BY_AREA
from hazemap.estimate.overdispersion import Overdispersion
from hazemap.privacy.statement import Statement
from hazemap.queries import Algorithm, Prices
from hazemap.releases.cell_geometry import CellGeometry
from hazemap.releases.estimates import Estimate, after_choosing, estimate, estimate_cut
from hazemap.releases.file_metadata import UnknownMethod
from hazemap.releases.region_weights import Region, shares_in, weights
from hazemap.session import Transcript

if TYPE_CHECKING:
    from geopandas import GeoDataFrame
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from hazemap.releases.k_median_centres import Centres

AnyPath = str | os.PathLike[str]


@dataclass(frozen=True, eq=False)
class Release:
    """A published map. Every question is answered from what is in it, so asking costs no privacy.

    >>> from hazemap.cells import Leaves
    >>> from hazemap.spatial.bounding_box import Box
    >>> from hazemap.spatial.quadtree import Quadtree
    >>> from hazemap.privacy.budget import PureDP
    >>> from hazemap.privacy.statement import A_PERSON
    >>> from hazemap.tables.contribution_bounding import AtMostRows
    >>> leaves = Leaves.at_level(Quadtree.world(depth=1), 1)
    >>> counts = CellMap.independent(leaves, np.array([40.0, 30, 20, 10]), np.full(4, 2.0), 0.0)
    >>> statement = Statement(
    ...     "demo", A_PERSON, "one person added or removed", PureDP(1), AtMostRows(1), "curator",
    ...     (), "discrete Laplace", (), (), "flat", "2026-01-02T03:04:05Z", "0.1.0",
    ... )
    >>> release = Release(counts, statement, None, ())
    >>> print(release.count(Box(-180, 0, 180, 86)))
    70.0 ± 2.8 people (95 % interval 64.0 … 76.0)
    """

    map: CellMap
    statement: Statement
    algorithm: object
    transcript: Transcript

    @classmethod
    def open(cls, path: AnyPath) -> "Release":
        """What `save` wrote, GeoParquet or GeoTIFF; `FileError` for a foreign, damaged or newer file."""
        from hazemap.releases.open_file import opened

        return cls(*opened(Path(path)))

    def save(self, path: AnyPath) -> None:
        """Write everything to one file: `.parquet` for any map, `.tif` (a COG) for a regular grid of squares."""
        from hazemap.releases import geotiff as raster
        from hazemap.releases import map_geoparquet as file

        writers = {".parquet": file.write, ".tif": raster.write}
        writer = writers.get(Path(path).suffix.lower())
        if writer is None:
            raise FileError(
                f"a release is saved as {' or '.join(writers)}; found {str(path)!r}."
                " For other formats use export: they hold the numbers, but cannot be opened again"
            )
        writer(self, Path(path))

    def export(self, path: AnyPath, pixel: float | None = None) -> None:
        """Write the numbers for other tools: `.geojson`, `.gpkg`, `.fgb`, `.pmtiles`, `.csv` or `.tif`.

        A `.tif` is drawn at the level of the finest cell, or with pixels of at most `pixel` metres (at the
        equator). Every format carries the statement; beside a `.csv` stands a `.csv.statement.json`.
        """
        from hazemap.releases.exports import export

        export(self, Path(path), pixel)

    @property
    def counted(self) -> str:
        """What a count of 1 is: people, rows or visits."""
        return self.statement.bounding.counted

    def count(self, region: Region, confidence: float = 0.95) -> Estimate:
        """How many are in a region: a `Box`, a polygon (shapely, GeoJSON) in degrees, a cell's name or several.

        What lies outside the map is not counted; `InputError` for a region with no part of the map in it. Where its
        border cuts cells, the interval has the doubt of where in them people are. Some milliseconds for a map of
        100,000 cells, and at most a second for the first question.
        """
        return self._asked(region, weights(self.ground, region), confidence)

    def beyond(self, region: Region, confidence: float = 0.95) -> Estimate:
        """How many are outside a region: elsewhere on the map, and outside it (`nowhere`) where that was asked.

        A region with no part of the map in it leaves everybody outside.
        """
        return self._asked(region, shares_in(self.ground, region), confidence, outside=True)

    def _asked(self, region: Region, shares: Floats, confidence: float, outside: bool = False) -> Estimate:
        """How many are inside a region, or outside, of which the shares of the cells' areas are inside."""
        if not ((shares > 0) & (shares < 1)).any():
            return estimate(self.map, 1 - shares if outside else shares, self.counted, confidence)
        parts, best = shares, float(shares @ self.map.values)
        noise = self._finer.noise
        if isinstance(noise, EvenDisaggregation):
            # The best guess of where in a cell its people are; a tenth of it is by area alone, as in the picture.
            fine = shares_in(self._finer_ground, region) * np.maximum(self._finer.values, 0)
            inside = np.bincount(noise.holder, fine, noise.size)
            best = float(fine.sum()) if self.shown is self._finer else best
            guess = np.divide(inside, self.map.values, out=shares.copy(), where=self.map.values > 0)
            parts = np.where((shares > 0) & (shares < 1), BY_AREA * shares + (1 - BY_AREA) * guess.clip(0, 1), shares)
        if outside:
            parts, best = 1 - parts, float(self.map.values.sum()) - best
        found = estimate_cut(self.map, parts, self.clumping, self.counted, confidence)
        return replace(found, best=best)

    def total(self, confidence: float = 0.95) -> Estimate:
        """How many are in all places."""
        return estimate(self.map, self.map.places.astype(float), self.counted, confidence)

    @property
    def caution(self) -> str | None:
        """What to tell whoever made a map in which there may be nobody at all; None for others."""
        total = self.total()
        if total.low > 0:
            return None
        return (
            f"{total}: the noise hides whether there are any {total.counted} at all, so this map says next to nothing"
        )

    @property
    def nowhere(self) -> Estimate | None:
        """How many are in no cell: outside the map or without a usable coordinate; None if it was not asked."""
        return self.outside_map()

    def outside_map(self, confidence: float = 0.95) -> Estimate | None:
        """`nowhere`, as sure as asked for."""
        if self.map.places.all():
            return None
        return estimate(self.map, (~self.map.places).astype(float), self.counted, confidence)

    def density(self, lon: float, lat: float, confidence: float = 0.95) -> Estimate:
        """How many per square kilometre in the cell around a point in degrees."""
        leaves = self.map.cells
        base = leaves.tree.cell_at({"lon": np.array([lon]), "lat": np.array([lat])}, leaves.tree.depth)
        position = int(leaves.locate(base)[0])
        if position < 0 or not self.map.places[position]:
            west, south, east, north = self.ground.extent
            raise InputError(
                f"the point {lon:g},{lat:g} lies outside the map, which covers"
                f" {west:.6g},{south:.6g},{east:.6g},{north:.6g} (west,south,east,north in degrees)"
            )
        one = np.zeros(leaves.size)
        one[position] = 1 / self.ground.km2[position]
        return estimate(self.map, one, f"{self.counted} per km²", confidence)

    def top(self, k: int, by: Literal["count", "density"] = "count", confidence: float = 0.95) -> "GeoDataFrame":
        """The k cells with the largest best guess, by count or per square kilometre, as rows of the table.

        The largest of many noisy numbers are more likely too large than too small. So `low` … `high` are longer here
        than those of the whole table: of the k intervals, that part holds the truth on average, though the cells were
        chosen for their numbers (`after_choosing`).
        """
        if k < 1 or by not in ("count", "density"):
            raise InputError(f"ask for at least 1 cell, by 'count' or 'density'; found {k} by {by!r}")
        places, km2 = self.ground.places, self.ground.km2
        places = places[km2[places] > 0]
        size = self.map.values[places] / (km2[places] if by == "density" else 1)
        chosen = places[np.argsort(-size, kind="stable")[:k]]
        return self._frame(chosen, after_choosing(confidence, len(chosen), len(places)))

    def centres(self, k: int) -> "Centres":
        """The k places that people have the least way to together (k-median), from the best guess of every cell.

        Nobody's way to the nearest of some places changes by more than they are moved, so on a map whose earth mover's
        distance to the truth is D (in people · metres; a person more or fewer is the map's diameter) *any* k places
        cost what they truly do, give or take D: a map that is near is a coreset. If the places are at most a times as
        dear as the best on the map, they are at most a times the truly best and (a + 1) D dearer. D is at most λ times
        the least cost of k places and O(√k/(λ ε)) sides of the map more for `PublishedPyramid` of order k/λ² cells
        (Ghazi et al. 2022, corollary A.1, probability 0.99), so they cost at most (a + λ + a λ) times the best and
        (a + 1) times that noise; other methods have no such theorem, but smaller D where we measured it. The search is
        exact for few cells, and else within a = 10 of any places, but for how far people are from their cells' middles.

        The picture is used as it is, not made to sum to 1. Ways are great circles, in metres. Fewer than k places if
        there are fewer cells. No randomness: the same release gives the same places.
        """
        from hazemap.releases.k_median_centres import centres

        return centres(self, k)

    def to_geodataframe(self) -> "GeoDataFrame":
        """Every place as a row: name, level, count, unbiased, stddev, low, high, area_km2, per_km2, geometry.

        `count` is the best guess; `low` … `high` holds the truth of a cell with probability 95 % or more.
        Cells that stand together with cells inside them have the outline and area that these leave over.
        """
        return self._frame(self.ground.places)

    def to_dataframe(self) -> "DataFrame":
        """`to_geodataframe` without geometry, in a tenth of the time."""
        import pandas as pd

        from hazemap.releases.map_columns import columns

        return pd.DataFrame(columns(self, self.ground.places))

    def _frame(self, positions: NDArray[np.int64], confidence: float = 0.95) -> "GeoDataFrame":
        import geopandas as gpd

        from hazemap.releases.map_columns import columns

        outlines = self.ground.outlines(positions)
        return gpd.GeoDataFrame(columns(self, positions, confidence), geometry=outlines, crs="EPSG:4326")

    def plot(self, **options: Any) -> "Figure":
        """A picture of the map; beneath it how many it does not show, and the statement.

        Options are those of `hazemap.draw.draw_map`; without any it shows all of the map.
        """
        from hazemap.draw import draw_map, shown_part
        from hazemap.releases.people_outside import PeopleOutside

        frame = {name: options[name] for name in ("frame", "box") if name in options}
        usual = {"caption": self.statement.line(), "counted": self.counted}
        if "note" not in options:
            usual["note"] = str(PeopleOutside.of(self, shown_part(self.map, **frame)))
        return draw_map(self.map, **{**usual, **options})

    def replay(self, prices: Prices) -> "Release":
        """The same release, made again from its stored answers: `TranscriptMismatch` if they do not fit.

        `prices` are those of the trust model that answered, for the budget of the statement.
        """
        from hazemap.session import replay

        if isinstance(self.algorithm, UnknownMethod):
            raise FileError(
                f"this release was made by a method that this hazemap does not know ({self.statement.method},"
                f" hazemap {self.statement.version}): replay it with that version or a newer one"
            )
        algorithm = cast(Algorithm[CellMap], self.algorithm)
        made = replay(algorithm, prices, self.statement.budget, self.transcript).value
        return Release(made, self.statement, self.algorithm, self.transcript)

    def _repr_html_(self) -> str:
        from hazemap.releases.notebook_card import card

        return card(self)

    @cached_property
    def ground(self) -> CellGeometry:
        """The cells on the ground: areas, outlines."""
        return CellGeometry(self.map.cells)

    @cached_property
    def shown(self) -> CellMap:
        """The map as pictures show it: cut finer where its best guess tells how people lie inside cells."""
        return self._finer if self.map.reading is Reading.LIKELY else self.map

    @cached_property
    def _finer(self) -> CellMap:
        """The map cut finer where its best guess tells how people lie inside cells, whether pictures show it or not."""
        return finer(self.map)

    @cached_property
    def _finer_ground(self) -> CellGeometry:
        return CellGeometry(self._finer.cells)

    @cached_property
    def clumping(self) -> Overdispersion:
        """How unevenly people lie inside cells, as far as the numbers of the cells tell."""
        return Overdispersion.of(self.map)

    @cached_property
    def kurtosis(self) -> float:
        """The largest excess kurtosis of any answer: no cell's own can be larger, as variances only mix them."""
        if isinstance(self.map.noise, Independent):
            return self.map.noise.kurtosis
        return max((exchange.answer.kurtosis for exchange in self.transcript), default=0.0)
