"""Pictures of shares: for every mark the share of people in each cell, and beside it how sure it is or how many."""

import math
from collections.abc import Mapping
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from hazemap.arrays import Floats
from hazemap.cellmap import CellMap
from hazemap.draw.cell_densities import DensitySurface
from hazemap.draw.cell_painting import Colours, Palette, shapes_of
from hazemap.draw.colour_scales import ERROR_COLOURS, DensityScale, ValueScale
from hazemap.draw.figure_layout import MARGIN, FigureLayout
from hazemap.draw.ground import Ground
from hazemap.draw.legends import draw_bar, draw_densities, draw_graticule, draw_values
from hazemap.draw.viewport import MapExtent, Viewport
from hazemap.errors import InputError
from hazemap.spatial.bounding_box import Box

if TYPE_CHECKING:
    from pathlib import Path

    from geopandas import GeoDataFrame
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STRIP = 0.56  # inches above each panel: legend, scale bar
GAP, EDGE = 0.35, 0.22  # inches between panels, and left of and below one with degrees
MOST_ACROSS = 3
TALLEST = 0.85  # of the page's width
NARROWEST_PAGE, WIDEST_PAGE = 5.0, 24.0  # inches
WIDEST_INTERVAL = 50.0  # per cent: shares that are known less well are not shown


class Beside(Enum):
    """What stands beside the map of a share."""

    WIDTH = "width"
    DENSITY = "density"
    NOTHING = "nothing"


def draw_shares(
    cellmap: CellMap,
    shares: Mapping[str, Floats],
    widths: Mapping[str, Floats],
    *,
    beside: Beside = Beside.WIDTH,
    title: str | None = None,
    caption: str = "",
    counted: str = "people",
    outlines: "Path | str | GeoDataFrame | None" = None,
    base: bool = True,
    frame: MapExtent = MapExtent.MAP,
    box: Box | None = None,
    note: str = "",
    width: float = 10.0,
) -> "Figure":
    """A map of the share of each mark, all in one scale; cells of which it is not known (NaN) are grey.

    `beside` them are the `widths` of their 95 % intervals, or the density of people (`cellmap`), or nothing. Shares and
    widths are float64[cells]. Other options are those of `draw_map`. Looks at released numbers alone.
    """
    if not shares:
        raise InputError("a picture of shares needs at least one mark")
    if not NARROWEST_PAGE <= width <= WIDEST_PAGE:
        raise InputError(f"a picture is {NARROWEST_PAGE:g} to {WIDEST_PAGE:g} inches wide; found {width}")
    surface = DensitySurface.of(cellmap)
    view = surface.framed(frame, box)
    ground = Ground.of(view, outlines, base)
    panels = [(name, "share") for name in shares]
    panels += [(name, "width") for name in widths] if beside is Beside.WIDTH else []
    panels += [("", "density")] if beside is Beside.DENSITY else []

    across_page = min(len(panels), len(shares) if beside is Beside.WIDTH and len(shares) > 1 else 2, MOST_ACROSS)
    inner = width - 2 * MARGIN - EDGE - GAP * (across_page - 1)
    across = min(inner / across_page, TALLEST * width * view.aspect)
    rows = math.ceil(len(panels) / across_page)
    high = STRIP + across / view.aspect + EDGE
    page_width = across * across_page + GAP * (across_page - 1) + EDGE + 2 * MARGIN
    page = FigureLayout.ruled(page_width, rows * high, title, caption, note)
    known = np.concatenate([each[np.isfinite(each)] for each in shares.values()])
    scale, doubt = _scale(known), ValueScale(0.0, WIDEST_INTERVAL, ERROR_COLOURS)
    density = DensityScale.of([surface], view)
    for number, (name, what) in enumerate(panels):
        left = MARGIN + EDGE + (number % across_page) * (across + GAP)
        top = page.top + number // across_page * high
        axes = page.panel(left, top + STRIP, across, view, f"{name} {what}".strip())
        bar = min(2.2, 0.42 * across)
        if what == "density":
            surface.shapes.fill(axes, view, surface.density, density.colours)
            draw_densities(page, left, top, bar, density, counted, "km²")
        elif what == "share":
            _fill(axes, cellmap, 100 * shares[name], view, scale.colours)
            draw_values(page, left, top, bar, scale, f"{name}, % of {counted}", "not known" if across > 3 else "")
        else:
            numbers = np.minimum(100 * widths[name], WIDEST_INTERVAL)
            _fill(axes, cellmap, numbers, view, doubt.colours)
            draw_values(page, left, top, bar, doubt, f"{name}: width of the 95 % interval, points")
        ground.draw(axes, 0.6 if what == "share" else 0.35, names=number == 0)
        if number == 0:
            draw_graticule(axes, view)
            draw_bar(axes, view, across / view.aspect)
    return page.figure


def _scale(known: Floats) -> ValueScale:
    """From the least share to the greatest, in per cent, in even steps: at least 5 points, and within 0 … 100."""
    if not known.size:
        return ValueScale(0.0, 100.0)
    low, high = (100 * float(np.quantile(known, rank)) for rank in (0.01, 0.99))
    low, high = 5 * math.floor(low / 5), 5 * math.ceil(high / 5)
    return ValueScale(float(low if low < high else max(low - 5, 0)), float(high if low < high else min(low + 5, 100)))


def _fill(axes: "Axes", cellmap: CellMap, numbers: Floats, view: Viewport, palette: Palette) -> None:
    """Cells without a number first, so that none of them is averaged with one that has one."""
    places, known = cellmap.places, np.isfinite(numbers)
    for some, colours in ((places & ~known, _unknown), (places & known, palette)):
        if some.any():
            shapes = shapes_of(cellmap.cells.tree, cellmap.cells.cells[some])
            shapes.fill(axes, view, np.where(known, numbers, 0)[some], colours)


def _unknown(values: Floats) -> Colours:
    return ValueScale(0.0, 1.0).colours(np.full(values.shape, np.nan))
