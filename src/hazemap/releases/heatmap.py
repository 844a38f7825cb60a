"""A map as a heatmap: its density under a Gaussian, with the error of every pixel, as a picture or a GeoTIFF."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hazemap.algorithms.emd_pyramids import DensePyramid, PublishedPyramid, Pyramid
from hazemap.algorithms.private_bounding_box import PrivateBoundingBox
from hazemap.cells import Cells
from hazemap.draw import draw_heatmap
from hazemap.draw.cell_painting import shapes_of
from hazemap.draw.heatmaps import shown_of_heatmap
from hazemap.draw.viewport import Viewport, ViewportBounds, ground, sheet
from hazemap.encoders import CountMinSketch, HaarWavelet
from hazemap.errors import FileError, InputError
from hazemap.estimate.confidence_margins import reach
from hazemap.estimate.gaussian_blur import blurred
from hazemap.machine_code.arrays import Floats
from hazemap.privacy.statement import Statement
from hazemap.releases.geotiff import write_bands
from hazemap.spatial.plane import ground_unit, plane_of, refuse_plane

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hazemap.releases.map_release import Release

FINE = 4.0
"""Pixels in the standard deviation of a blur, where the map is not too large for them."""

FEWEST, MOST = 192, 1536
"""Pixels along the longer side of a heatmap."""


@dataclass(frozen=True, eq=False)
class Heatmap:
    """Densities per km² on a grid of square pixels of the Web-Mercator sheet, float64[rows, columns] from the north; of
    a map on a plane in its `ground_unit`, and of its own sheet.

    `density` is the best guess and `unbiased` the estimate without bias, `stddev` at least its standard error: that of
    noise, with the people of a cell taken to be spread evenly in it. `metres` is the standard deviation of the Gaussian
    on the ground, at the latitude of the map's middle, or in the unit of a plane. NaN where no cell is near.
    """

    density: Floats
    unbiased: Floats
    stddev: Floats
    view: Viewport
    metres: float
    counted: str
    statement: Statement
    kurtosis: float

    @classmethod
    def of(cls, release: "Release", metres: float | None = None) -> "Heatmap":
        """The blur of a release's map: O(cells · pixels near them). By default `usual_blur` metres.

        `InputError` for cells that are no rectangles, and for a blur that is not above 0 or wider than the map.
        """
        geometry, cellmap = release.ground, release.map
        if not geometry.rectangles:
            raise InputError("a blur is for squares and rectangles: leave it out of this map")
        metres = usual_blur(release) if metres is None else metres
        cells, owner = geometry.pieces
        bounds, plane = _on_sheet(cellmap.cells.tree, cells), plane_of(cellmap.cells.tree)
        view = replace(Viewport.over(bounds), plane=plane)
        scale, unit = (view.unit, plane.unit) if plane else (ground(view.latitude), "m")
        sigma = metres / scale
        if not 0 < sigma <= max(view.width, view.height):
            width = max(view.width, view.height) * scale
            raise InputError(
                f"a blur is above 0 {unit}, and at most as wide as the map, {width:,.0f} {unit}; found {metres:g}"
            )
        x, y = _grid(view, sigma)
        km2 = geometry.km2[owner]
        some = km2 > 0
        km2 = np.where(some, km2, 1.0)
        pieces = np.bincount(owner, minlength=cellmap.cells.size)[owner]  # of one cell: their errors are one
        numbers = np.array([cellmap.values[owner], cellmap.unbiased[owner]]) * some / km2
        doubt = cellmap.stddev[owner] * some / km2 * np.sqrt(pieces)
        found = blurred(bounds, numbers, doubt, x, y, sigma, _correlated(release))
        density = np.maximum(found.means[0], 0)
        return cls(
            density, found.means[1], found.stddev, view, metres, release.counted, release.statement, release.kurtosis
        )

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Low and high ends for each pixel on its own; float64[rows, columns] twice."""
        margin = reach(confidence, self.kurtosis, at_most=True) * self.stddev
        return self.unbiased - margin, self.unbiased + margin

    def export(self, path: str | Path) -> None:
        """Write it as a Cloud-optimised GeoTIFF with the bands density, unbiased and stddev, per km²."""
        goal = Path(path)
        refuse_plane(self.view.plane, ".tif")
        if goal.suffix.lower() != ".tif":
            raise FileError(f"a heatmap is exported as .tif; found {str(path)!r}. Pictures are what `plot` draws")
        bands = {"density": self.density, "unbiased": self.unbiased, "stddev": self.stddev}
        tags = {"BLUR_METRES": f"{self.metres:g}", "UNIT": f"{self.counted} per km2"}
        write_bands(goal, bands, self.view, self.statement, tags)

    def shown_part(self, **part: Any) -> Any:
        """The region that a picture shows with this `frame` and `box`; None where it shows all of the map."""
        return shown_of_heatmap(self.density, self.stddev, self.view, **part)

    def plot(self, **options: Any) -> "Figure":
        """A picture of the density, and beside it of how sure it is; options are those of `draw_heatmap`."""
        usual = {"caption": self.statement.line(), "counted": self.counted, "metres": self.metres}
        return draw_heatmap(self.density, self.stddev, self.view, **{**usual, **options})


def usual_blur(release: "Release") -> float:
    """The side of the cell that the middle person is in, by the best guess: in metres, or in the unit of a plane."""
    people = np.maximum(release.map.values, 0)[release.ground.places]
    tree = release.cells.tree
    side = np.sqrt(ground_unit(tree).per * release.ground.km2[release.ground.places])
    if not (people @ side > 0):
        return float(side.max(initial=1.0))
    order = np.argsort(side, kind="stable")
    until = np.cumsum(people[order])
    return float(side[order][np.searchsorted(until, until[-1] / 2)])


def is_heatmap(algorithm: object) -> bool:
    """Whether a method makes maps near to the truth in earth mover's distance: these are drawn as heatmaps."""
    inner = algorithm.method if isinstance(algorithm, PrivateBoundingBox) else algorithm
    return isinstance(inner, Pyramid | PublishedPyramid | DensePyramid)


def _correlated(release: "Release") -> bool:
    """Whether the errors of neighbouring cells may go together: of wavelets and sketches; least squares parts them."""
    asked = (getattr(exchange.question, "encoder", None) for exchange in release.transcript)
    return any(isinstance(encoder, HaarWavelet | CountMinSketch) for encoder in asked)


def _on_sheet(tree: Any, cells: Cells) -> ViewportBounds:
    """West, south, east and north of rectangles on the sheet that pictures are drawn on."""
    if plane_of(tree):
        return shapes_of(tree, cells, np.ones(len(cells))).bounds
    west, south, east, north = tree.bounds(cells)
    (left, bottom), (right, top) = sheet(west, south), sheet(east, north)
    return left, bottom, right, top


def _grid(view: Viewport, sigma: float) -> tuple[Floats, Floats]:
    """The middles of square pixels: x from the west, y from the north."""
    longest = max(view.width, view.height)
    pixel = longest / np.clip(np.ceil(FINE * longest / sigma), FEWEST, MOST)
    columns, rows = (max(round(side / pixel), 1) for side in (view.width, view.height))
    x = view.west + (np.arange(columns) + 0.5) / columns * view.width
    y = view.north - (np.arange(rows) + 0.5) / rows * view.height
    return x, y
