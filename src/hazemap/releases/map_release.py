"""A published map with its statement, and all that is needed to verify and query it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from hazemap import codec
from hazemap.cellmap import CellMap, Independent, Reading
from hazemap.cells import Leaves
from hazemap.errors import FileError, InputError
from hazemap.estimate.confidence_margins import Ends, intervals
from hazemap.estimate.empirical_bayes import BY_AREA
from hazemap.estimate.overdispersion import Overdispersion
from hazemap.estimate.report_intervals import asymmetry_margin
from hazemap.estimate.smooth_disaggregation import EvenDisaggregation, finer
from hazemap.files.number_text import per
from hazemap.machine_code.arrays import Floats, Ints
from hazemap.privacy.statement import Statement
from hazemap.queries.algorithm_session import Transcript
from hazemap.releases.base_release import Bands, BaseRelease, Rows
from hazemap.releases.cell_geometry import CellGeometry, name_column
from hazemap.releases.estimates import Estimate, PeopleOutside, after_choosing, estimate, estimate_cut
from hazemap.releases.file_metadata import FORMAT, MapContents
from hazemap.releases.region_weights import Region, shares_in, weights
from hazemap.spatial.plane import ground_unit, plane_of

if TYPE_CHECKING:
    from geopandas import GeoDataFrame
    from matplotlib.figure import Figure

    from hazemap.releases.gis.layer_styles import LayerStyle
    from hazemap.releases.heatmap import Heatmap
    from hazemap.releases.k_median_centres import Centres
    from hazemap.releases.release_difference import ReleaseDifference


@dataclass(frozen=True, eq=False, repr=False)
class Release(BaseRelease, contents=MapContents):
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
    ...     (), "discrete Laplace", (), (), "flat", "2026-01-02", "0.1.0",
    ... )
    >>> release = Release(counts, statement, None, ())
    >>> print(release.count(Box(-180, 0, 180, 86)))
    70.0 people (95 % interval 64.0 … 76.0)
    """

    map: CellMap
    statement: Statement
    algorithm: object
    transcript: Transcript

    HOLDS: ClassVar[str] = "a map"
    SUFFIXES: ClassVar[tuple[str, ...]] = (".parquet", ".tif")
    MADE: ClassVar[str] = "map"

    @property
    def cells(self) -> Leaves:
        """The cells of the map; with `NOWHERE`, where people outside the map were counted."""
        return self.map.cells

    def count(self, region: Region, confidence: float = 0.95) -> Estimate:
        """How many are in a region: a `Box`, a polygon (shapely, GeoJSON) in degrees, a cell's name or several.

        What lies outside the map is not counted; `InputError` for a region with no part of the map in it. Where its
        border cuts cells, the interval has the doubt of where in them people are. Some milliseconds for a map of
        100,000 cells, and at most a second for the first question.
        """
        return self._asked(region, weights(self.ground, region), confidence)

    def estimate(self, weights: Floats, counted: str, confidence: float = 0.95) -> Estimate:
        """Σ weights · cells with the error of noise alone: float64[cells], in what `counted` says.

        Of one cell it is what its row says (`intervals`), which knows the law of the noise less exactly.
        """
        kurtosis = self.kurtosis if np.count_nonzero(weights) == 1 else None
        return estimate(self.map, weights, counted, confidence, self.asymmetry(confidence), kurtosis)

    def beyond(self, region: Region, confidence: float = 0.95) -> Estimate:
        """How many are outside a region: elsewhere on the map, and outside it (`nowhere`) where that was asked.

        A region with no part of the map in it leaves everybody outside.
        """
        return self._asked(region, shares_in(self.ground, region), confidence, outside=True)

    def _asked(self, region: Region, shares: Floats, confidence: float, outside: bool = False) -> Estimate:
        """How many are inside a region, or outside, of which the shares of the cells' areas are inside."""
        if not ((shares > 0) & (shares < 1)).any():
            return self.estimate(1 - shares if outside else shares, self.counted, confidence)
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
        return estimate_cut(self.map, parts, best, self.clumping, self.counted, confidence, self.asymmetry(confidence))

    def since(self, before: "Release") -> "ReleaseDifference":
        """What changed in each cell since another release, and where it is more than noise explains."""
        from hazemap.releases.release_difference import ReleaseDifference

        return ReleaseDifference.of(before, self)

    def asymmetry(self, confidence: float) -> float:
        """What skewed noise adds to the margin of a cell: the most of any answer, as cells only average them."""
        laws = {exchange.answer.chances for exchange in self.transcript}
        return max((asymmetry_margin(law, confidence) for law in laws if law is not None), default=0.0)

    def total(self, confidence: float = 0.95) -> Estimate:
        """How many are in all places."""
        return self.estimate(self.map.places.astype(float), self.counted, confidence)

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
        return self.estimate((~self.map.places).astype(float), self.counted, confidence)

    def density(self, lon: float, lat: float, confidence: float = 0.95) -> Estimate:
        """How many per square kilometre in the cell around a point in degrees."""
        position = self.cell_at(lon, lat)
        one = np.zeros(self.cells.size)
        one[position] = 1 / self.ground.km2[position]
        return self.estimate(one, per(self.counted, ground_unit(self.cells.tree).name), confidence)

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
        import geopandas as gpd

        columns = self.columns(chosen, after_choosing(confidence, len(chosen), len(places)))
        return gpd.GeoDataFrame(columns, geometry=self.ground.outlines(chosen), crs=self.crs)

    def centres(self, k: int, confidence: float = 0.95) -> "Centres":
        """The k places with the least total distance to people (k-median), by the best guess of every cell.

        Nobody's way to the nearest of some places changes by more than they are moved, so on a map whose earth mover's
        distance to the truth is D (in people · metres; a person more or fewer is the map's diameter) *any* k places
        cost what they truly do, give or take D: a map that is near is a coreset. If the places are at most a times as
        dear as the best on the map, they are at most a times the truly best and (a + 1) D dearer. D is at most λ times
        the least cost of k places and O(√k/(λ ε)) sides of the map more for `PublishedPyramid` of order k/λ² cells
        (Ghazi et al. 2022, corollary A.1, probability 0.99), so they cost at most (a + λ + a λ) times the best and
        (a + 1) times that noise; other methods have no such theorem, but smaller D where we measured it. The search is
        exact for few cells, and else within a = 10 of any places, but for how far people are from their cells' middles.

        The picture is used as it is, not made to sum to 1. Ways are great circles, in metres. Fewer than k places if
        there are fewer cells. No randomness: the same release gives the same places. Numbers and ways have intervals of
        the noise, with this confidence, as if the places had been chosen beforehand (`Centres`).
        """
        if plane_of(self.cells.tree):
            raise InputError("centres are found on the ground, along great circles: a plane has none")
        from hazemap.releases.k_median_centres import centres

        return centres(self, k, confidence)

    def columns(self, positions: Ints | None = None, confidence: float = 0.95) -> dict[str, NDArray[Any]]:
        """Every place as a row: name, level, best_guess, unbiased, stddev, low, high, area_km2, per_km2.

        `low` … `high` holds the truth of a cell with probability 95 % or more, and the best guess of it; `per_km2` is
        the best guess of the density.
        Cells that stand together with cells inside them have the outline and area that these leave over.
        """
        positions = self.ground.places if positions is None else positions
        numbers = [each[positions] for each in (self.map.values, self.map.unbiased, self.map.stddev)]
        return self._table(positions, numbers, self.kurtosis, confidence)

    def _table(
        self, cells: Ints, numbers: Sequence[Floats], kurtosis: float, confidence: float, times: int = 1
    ) -> dict[str, NDArray[Any]]:
        """The columns of numbers of some cells, float64[cells · times]: values, unbiased ones, their standard errors.

        The numbers of a cell follow each other: O(cells · times).
        """
        values, unbiased, stddev = numbers
        leaves, km2 = self.map.cells, np.repeat(self.ground.km2[cells], times)
        low, high = intervals(values, unbiased, stddev, kurtosis, confidence, self.asymmetry(confidence))
        unit = ground_unit(leaves.tree).column
        return {
            name_column(leaves.tree): np.repeat(np.array(leaves.tree.names(leaves.cells[cells]), dtype=object), times),
            "level": np.repeat(leaves.levels[cells].astype(np.int16), times),
            "best_guess": values,
            "unbiased": unbiased,
            "stddev": stddev,
            "low": low,
            "high": high,
            f"area_{unit}": km2,
            f"per_{unit}": np.divide(values, km2, out=np.full(len(km2), np.nan), where=km2 > 0),
        }

    def outlines(self) -> NDArray[Any]:
        """What each place owns, as polygons in degrees."""
        return self.ground.outlines(self.ground.places)

    def rows(self, most: int) -> Iterator[Rows]:
        """The table in blocks of so many rows; before them a block without rows, for their types."""
        places = self.ground.places
        for block in (places[:0], *(places[start : start + most] for start in range(0, len(places), most))):
            yield Rows(self.columns(block), self.ground.outlines(block), 1)

    def label(self) -> dict[str, Any]:
        """Tree and reading; and the numbers of `NOWHERE`, since it is no place on a map."""
        nowhere = None
        for at in np.flatnonzero(~self.map.places).tolist():
            numbers = [float(array[at]) for array in (self.map.values, self.map.unbiased, self.map.stddev)]
            nowhere = dict(zip(("position", "best_guess", "unbiased", "stddev"), [at, *numbers], strict=True))
        tree, how = codec.to_json(self.cells.tree), self.map.reading.value
        return {"format": FORMAT, "tree": tree, "nowhere": nowhere, "reading": how}

    def bands(self, column: str | None) -> Bands:
        """The best guess of how many are in each pixel."""
        if column is not None:
            raise FileError(f"the .tif of a map holds its counts: leave the column {column!r} out")
        return Bands(("best_guess",), [self.map.values], True, {}, self.ground)

    def layer_styles(self) -> "tuple[LayerStyle, ...]":
        """Density, hatched where it is not sure."""
        from hazemap.releases.gis.layer_styles import density_style

        return (density_style([self.map], self.counted),)

    def summary(self) -> list[str]:
        """Statement, total, number of cells, and whom the map leaves out."""
        size = f"{len(self.ground.places):,} cells"
        return [self.statement.line(), f"Total {self.total()}", size, str(PeopleOutside.of(self))]

    @property
    def thumbnail(self) -> tuple[Floats, bool]:
        """People per square kilometre."""
        km2 = self.ground.km2
        return np.divide(self.map.values, km2, out=np.zeros(len(km2)), where=km2 > 0), True

    def plot(self, **options: Any) -> "Figure":
        """A picture of the map; beneath it how many it does not show, and the statement.

        Options are those of `hazemap.draw.draw_map`; without any it shows all of the map.
        """
        from hazemap.draw import draw_map

        usual: dict[str, Any] = {"caption": self.statement.line(), "counted": self.counted, "title": self.heading}
        if "note" not in options:
            usual["note"] = self.note(**options)
        usual["fine"] = self.shown if self.borrowed is None else self.borrowed
        if self.borrowed is not None:
            usual["hatched"] = self.maybe_empty
        return draw_map(self.map, **{**usual, **options})

    def note(self, **options: Any) -> str:
        """What stands beneath a picture: how many it does not show, and where its detail is from."""
        from hazemap.draw import shown_part

        frame = {name: options[name] for name in ("frame", "box") if name in options}
        said = str(PeopleOutside.of(self, shown_part(self.map, **frame)))
        return f"{said} {self.said_of_detail}".strip()

    def page_data(self, title: str | None = None) -> dict[str, Any]:
        """What a page is told of the map."""
        from hazemap.releases.page.map_payload import map_payload

        return map_payload(self, title)

    def heatmap(self, metres: float | None = None) -> "Heatmap":
        """The density under a Gaussian of this standard deviation, with its error; by default as fine as the cells.

        As the eye sees a map, and as Ghazi et al. (2022) compare maps. The best guess and the unbiased estimate are
        blurred alike, and the error is that of noise: the people of a cell are taken to be spread evenly in it.
        """
        from hazemap.releases.heatmap import Heatmap

        return Heatmap.of(self, metres)

    @cached_property
    def shown(self) -> CellMap:
        """The map as pictures show it: cut finer where its best guess tells how people lie inside cells."""
        return self._finer if self.map.reading is Reading.LIKELY else self.map

    @cached_property
    def _finer(self) -> CellMap:
        """The map cut finer where its best guess tells how people lie inside cells, whether pictures show it or not."""
        return finer(self.map)

    @cached_property
    def heading(self) -> str | None:
        """What stands above a picture where nobody says: the slots that a map is of."""
        return None

    @cached_property
    def said_of_detail(self) -> str:
        """What is told of detail that is finer than what was counted."""
        return ""

    @cached_property
    def said_of_outside(self) -> str:
        """What is told of those outside the map where the map has no number of them."""
        return "were not counted"

    @cached_property
    def borrowed(self) -> CellMap | None:
        """Where people are drawn inside cells though nobody measured it (`TimedRelease.borrowing`)."""
        return None

    @property
    def maybe_empty(self) -> NDArray[np.bool_]:
        """Of which cells the own interval reaches down to nobody; bool[cells]."""
        found: NDArray[np.bool_] = self.intervals().low <= 0
        return found

    def intervals(self, confidence: float = 0.95) -> Ends:
        """The interval of each cell on its own, of its best guess: see `hazemap.estimate.confidence_margins`."""
        return intervals(
            self.map.values, self.map.unbiased, self.map.stddev, self.kurtosis, confidence, self.asymmetry(confidence)
        )

    @cached_property
    def _finer_ground(self) -> CellGeometry:
        return CellGeometry(self._finer.cells)

    @cached_property
    def clumping(self) -> Overdispersion:
        """How unevenly people lie inside cells, as far as the numbers of the cells tell."""
        return Overdispersion.of(self.map)

    @cached_property
    def kurtosis(self) -> float:
        """The largest excess kurtosis of any answer: no cell's own can be larger, as variances only mix them.

        A release as it was made and the same one from its file know this alone, so their intervals are the same.
        """
        alone = self.map.noise.kurtosis if isinstance(self.map.noise, Independent) else 0.0
        return max((exchange.answer.kurtosis for exchange in self.transcript), default=alone)
